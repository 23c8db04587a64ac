//! Who lost what, and whether it belonged to a killed worker: no other loss is excused.

use std::collections::HashSet;
use std::time::Duration;

/// A request not answered as it should have been. Times are since the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub what: String,
    pub nature: Nature,
    /// The client's end; `None` if it never had one.
    pub port: Option<u16>,
    /// When the client started connecting, was connected, and noticed.
    pub began: Duration,
    pub connected: Duration,
    pub noticed: Duration,
    /// The worker that answered earlier on this connection, or started to answer.
    pub worker: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// An earlier request was answered on the connection, which ended before the first byte of this answer: every
    /// client must expect that and repeat the request (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
    Unanswered,
    /// The connection ended.
    Cut,
    /// A wrong status, a wrong byte, a broken record, nothing at all: no process's end explains it.
    Fault,
}

/// A worker that was stopped, examined, and killed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kill {
    /// From when it was stopped until another was there.
    pub at: Duration,
    pub until: Duration,
    /// The killed worker, and those that ended with it.
    pub workers: Vec<u32>,
    /// The clients' ends of its connections when it was stopped.
    pub ports: HashSet<u16>,
    /// No other worker accepted meanwhile.
    pub was_alone: bool,
}

/// Workers told to finish serving their clients and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    pub at: Duration,
    pub old: Vec<u32>,
}

/// What happened to one server.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub kills: Vec<Kill>,
    pub reloads: Vec<Reload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The worker of the connection was killed.
    Killed,
    /// The client came while there was no worker, because the only one had been killed.
    Nobody,
    /// The worker was told to end and closed an idle connection; the request was repeated.
    Repeated,
    Failed,
}

impl History {
    #[must_use]
    pub fn judge(&self, loss: &Loss) -> Verdict {
        match loss.nature {
            Nature::Fault => Verdict::Failed,
            _ if self.kills.iter().any(|kill| kill.had(loss)) => Verdict::Killed,
            _ if self.kills.iter().any(|kill| kill.kept_out(loss)) => Verdict::Nobody,
            Nature::Unanswered if self.reloads.iter().any(|reload| reload.retired(loss)) => Verdict::Repeated,
            Nature::Unanswered | Nature::Cut => Verdict::Failed,
        }
    }
}

impl Kill {
    /// The connection was among the killed worker's. Ports are reused, so the times must match, too; and the
    /// connection's own record of its worker must not contradict.
    fn had(&self, loss: &Loss) -> bool {
        let is_listed = loss.port.is_some_and(|port| self.ports.contains(&port));
        let fits = loss.began <= self.at && loss.noticed >= self.at;
        is_listed && fits && loss.worker.is_none_or(|worker| self.workers.contains(&worker))
    }

    /// The client connected, or tried to, between the end of the only worker and the start of the next.
    fn kept_out(&self, loss: &Loss) -> bool {
        self.was_alone && loss.worker.is_none() && loss.began <= self.until && loss.connected >= self.at
    }
}

impl Reload {
    fn retired(&self, loss: &Loss) -> bool {
        self.at <= loss.noticed && loss.worker.is_some_and(|worker| self.old.contains(&worker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A worker with one connection, killed at 100.
    fn history(was_alone: bool) -> History {
        let kill = Kill { at: at(100), until: at(103), workers: vec![7], ports: [4000].into(), was_alone };
        History { kills: vec![kill], reloads: vec![Reload { at: at(50), old: vec![5, 6] }] }
    }

    fn loss(nature: Nature, port: u16, began: u64, noticed: u64, worker: Option<u32>) -> Loss {
        let (began, noticed) = (at(began), at(noticed));
        Loss { what: String::new(), nature, port: Some(port), began, connected: began, noticed, worker }
    }

    #[test]
    fn only_connections_of_the_killed_worker_are_excused() {
        let judge = |port, began, noticed, worker| {
            history(false).judge(&loss(Nature::Cut, port, began, noticed, worker))
        };
        assert_eq!(judge(4000, 99, 101, Some(7)), Verdict::Killed);
        assert_eq!(judge(4000, 99, 101, None), Verdict::Killed);
        assert_eq!(judge(4001, 99, 101, None), Verdict::Failed, "another connection at the same time");
        assert_eq!(judge(4000, 99, 101, Some(8)), Verdict::Failed, "another worker's");
        assert_eq!(judge(4000, 98, 99, None), Verdict::Failed, "lost before");
        assert_eq!(judge(4000, 101, 102, None), Verdict::Failed, "the port again, later");
    }

    #[test]
    fn who_finds_nobody_is_excused_only_if_there_was_nobody() {
        let late = loss(Nature::Cut, 4001, 101, 102, None);
        assert_eq!(history(true).judge(&late), Verdict::Nobody);
        assert_eq!(history(false).judge(&late), Verdict::Failed);
        assert_eq!(history(true).judge(&Loss { port: None, ..late.clone() }), Verdict::Nobody, "refused");
        assert_eq!(
            history(true).judge(&Loss { began: at(104), connected: at(104), ..late }),
            Verdict::Failed
        );
        let served = loss(Nature::Cut, 4001, 101, 102, Some(7));
        assert_eq!(history(true).judge(&served), Verdict::Failed, "somebody was there");
    }

    #[test]
    fn an_idle_connection_may_be_closed_by_a_worker_that_was_told_to_end() {
        let judge = |nature, noticed, worker| history(false).judge(&loss(nature, 1, 40, noticed, worker));
        assert_eq!(judge(Nature::Unanswered, 51, Some(5)), Verdict::Repeated);
        assert_eq!(judge(Nature::Unanswered, 51, Some(9)), Verdict::Failed, "nobody told this one");
        assert_eq!(judge(Nature::Unanswered, 49, Some(5)), Verdict::Failed, "before it was told");
        assert_eq!(judge(Nature::Cut, 51, Some(5)), Verdict::Failed, "in the middle of an answer");
    }

    #[test]
    fn nothing_excuses_a_wrong_answer() {
        let wrong = loss(Nature::Fault, 4000, 99, 101, Some(7));
        assert_eq!(history(true).judge(&wrong), Verdict::Failed);
    }
}
