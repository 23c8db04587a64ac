//! A service and its copies: one as it is, and one with hasten, which must answer alike.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use hasten_bench::drive::requests::fetch;
use hasten_bench::drive::{self, FailureKind, Load, Protocol, Target};
use hasten_probe::listen;
use hasten_units::{Copies, Manager, Outcome, TrialError, Unit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// What the copies have shown.
pub(super) enum Verdict {
    /// At these ports.
    Same(Vec<String>),
    /// The one with hasten did something else.
    Different(String),
    /// Not even the one without starts, apart from its network.
    NoStart(String),
    Unknown(String),
}

/// What a stranger gets at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Tls13,
    Tls12,
    Http,
    /// It may speak another protocol.
    Nothing,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls13 => "TLS 1.3",
            Self::Tls12 => "TLS 1.2",
            Self::Http => "HTTP",
            Self::Nothing => "no answer to HTTP",
        })
    }
}

type Answers = Vec<(SocketAddr, Answer)>;

pub(super) fn run(manager: &dyn Manager, unit: &Unit, variables: &[(String, OsString)]) -> Verdict {
    let tried = manager.copies(unit).and_then(|copies| {
        let stock = match started(&*copies, &[])? {
            Ok(shown) => shown.answers,
            Err(why) => return Ok(Verdict::NoStart(why)),
        };
        Ok(match started(&*copies, variables)? {
            Ok(shown) if !shown.is_loaded => Verdict::Different("does not load hasten".into()),
            Ok(shown) => compared(&stock, &shown.answers),
            Err(why) => Verdict::Different(format!("does not start with hasten: {why}")),
        })
    });
    tried.unwrap_or_else(|error| Verdict::Unknown(error.to_string()))
}

/// What a copy has shown while it was up.
struct Shown {
    answers: Answers,
    is_loaded: bool,
}

/// What a copy shows; what it said last if it does not start.
fn started(
    copies: &dyn Copies,
    variables: &[(String, OsString)],
) -> Result<Result<Shown, String>, TrialError> {
    let outcome = match copies.start(variables)? {
        Outcome::Up(copy) => {
            answers(&copy).map(|answers| Shown { answers, is_loaded: copy.has_loaded() == Some(true) })
        }
        Outcome::Down { why, last_words } if last_words.is_empty() => Err(why),
        Outcome::Down { last_words, .. } => Err(last_words[last_words.len().saturating_sub(2)..].join("; ")),
    };
    copies.stop()?;
    Ok(outcome)
}

fn compared(stock: &Answers, accelerated: &Answers) -> Verdict {
    let of = |answers: &Answers, address: &SocketAddr| {
        answers.iter().find(|(known, _)| known == address).map(|(_, answer)| *answer)
    };
    for (address, answer) in stock {
        match of(accelerated, address) {
            Some(other) if other == *answer => {}
            Some(other) => {
                return Verdict::Different(format!(
                    "gives {other} at {address} with hasten, and {answer} without"
                ));
            }
            None => return Verdict::Different(format!("does not listen at {address} with hasten")),
        }
    }
    if stock.is_empty() {
        return Verdict::Unknown("a copy listens at no TCP port".into());
    }
    Verdict::Same(
        stock.iter().map(|(address, answer)| format!("{answer} at port {}", address.port())).collect(),
    )
}

/// What it answers at each of its ports, asked from within its network.
fn answers(copy: &Unit) -> Result<Answers, String> {
    let pid = copy.process().ok_or("it has no process")?;
    let ask = || -> io::Result<Answers> {
        let network = File::open(format!("/proc/{pid}/ns/net"))?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(listen::in_namespace_of(pid).into_iter().map(|address| (address, answer(address))).collect())
    };
    // The thread is in the other network, and ends there.
    let asked = thread::scope(|scope| scope.spawn(ask).join());
    let asked = asked.map_err(|_| "the trial has ended early".to_owned())?;
    asked.map_err(|error| format!("cannot reach its network: {error}"))
}

/// TLS by many connections at once, so that there are batches; else HTTP.
fn answer(address: SocketAddr) -> Answer {
    const PATIENCE: Duration = Duration::from_secs(3);
    let target = Target { address, certificate: None, body: None };
    let serves = |protocol, concurrency| {
        let load = Load {
            concurrency,
            protocol,
            duration: Duration::from_millis(300),
            timeout: PATIENCE,
            ..Load::default()
        };
        drive::run(&target, &load).is_ok_and(|outcome| {
            // A page that is not there is served as well as any.
            let refused = outcome.failures.count(FailureKind::Status);
            outcome.ops + refused > 0 && outcome.failures.total() == refused
        })
    };
    for (protocol, answer) in [(Protocol::Tls13, Answer::Tls13), (Protocol::Tls12, Answer::Tls12)] {
        if serves(protocol, 1) && serves(protocol, 64) {
            return answer;
        }
    }
    match fetch(address, "/", PATIENCE) {
        Err(error) if error.kind() != io::ErrorKind::Other => Answer::Nothing,
        // Likewise.
        _ => Answer::Http,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(list: &[(&str, Answer)]) -> Answers {
        list.iter().map(|(address, answer)| (address.parse().unwrap(), *answer)).collect()
    }

    #[test]
    fn copies_must_answer_alike() {
        let stock = answers(&[("127.0.0.1:80", Answer::Http), ("127.0.0.1:443", Answer::Tls13)]);
        assert!(matches!(compared(&stock, &stock), Verdict::Same(ports) if ports.len() == 2));
        let silent = answers(&[("127.0.0.1:80", Answer::Http), ("127.0.0.1:443", Answer::Nothing)]);
        assert!(matches!(compared(&stock, &silent), Verdict::Different(what) if what.contains(":443")));
        assert!(matches!(
            compared(&stock, &answers(&[("127.0.0.1:80", Answer::Http)])),
            Verdict::Different(_)
        ));
        assert!(matches!(compared(&answers(&[]), &stock), Verdict::Unknown(_)));
    }
}
