//! The engines of a page, and the reports of its processes on them.

use super::Snapshot;
use crate::{BreakerState, Engine, EngineClass, Fault};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use hasten_guard::clock::boot_ns;

/// An engine of the processes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    pub engine: Engine,
    pub class: EngineClass,
    /// The device it runs on; empty for software.
    pub device: String,
    /// The time limit of an operation; `None` if there is none.
    pub timeout: Option<Duration>,
}

/// A writer's latest report on an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineReport {
    pub state: BreakerState,
    /// What the breaker last opened for; kept when it closes.
    pub fault: Option<Fault>,
    /// Time since boot of the last change; see [`boottime`].
    pub since: Duration,
    /// Time since boot at which an open breaker tries the engine again.
    pub probe: Option<Duration>,
}

/// Time since boot, including suspend: the clock of a page's times.
pub fn boottime() -> Duration {
    Duration::from_nanos(boot_ns())
}

impl EngineReport {
    /// The report that speaks for all: the gravest, and the oldest among equals.
    pub fn gravest<'a>(reports: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        reports.into_iter().max_by_key(|report| (report.state.gravity(), Reverse(report.since))).copied()
    }
}

impl Snapshot {
    pub fn engine(&self, engine: Engine) -> Option<&EngineInfo> {
        self.engines.iter().find(|info| info.engine == engine)
    }

    /// The report on the engine from each process that has used it, by its number inside its namespace. Processes that
    /// have ended leave their last report behind, so select only those that are alive.
    ///
    /// Threads of a process share a breaker, and the thread that saw the last change reports it.
    pub fn reports(&self, engine: Engine, is_alive: impl Fn(u32) -> bool) -> BTreeMap<u32, EngineReport> {
        let mut reports = BTreeMap::<u32, EngineReport>::new();
        for writer in self.writers.iter().filter(|writer| is_alive(writer.pid)) {
            if let Some(report) = writer.reports[engine.index()] {
                let latest = reports.entry(writer.pid).or_insert(report);
                if report.since > latest.since {
                    *latest = report;
                }
            }
        }
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: BreakerState, since: u64) -> EngineReport {
        EngineReport { state, fault: None, since: Duration::from_secs(since), probe: None }
    }

    #[test]
    fn the_gravest_speaks_for_all_and_the_oldest_of_equals() {
        use BreakerState::{Closed, Disabled, HalfOpen, Open};
        let all =
            [report(Closed, 1), report(Open, 9), report(Disabled, 2), report(Open, 5), report(HalfOpen, 3)];
        assert_eq!(EngineReport::gravest(&all), Some(all[3]));
        assert_eq!(EngineReport::gravest(&all[..1]), Some(all[0]));
        assert_eq!(
            EngineReport::gravest(&[report(Closed, 7), report(Disabled, 8)]),
            Some(report(Disabled, 8))
        );
        assert_eq!(EngineReport::gravest(&[]), None);
    }
}
