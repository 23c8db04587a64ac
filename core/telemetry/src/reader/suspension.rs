//! Whether the processes of a page suspend handshakes.

use super::Snapshot;
use crate::{Doubt, Suspension};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The report of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspensionReport {
    pub state: Suspension,
    /// Why suspension is off.
    pub doubt: Option<Doubt>,
    /// Time since boot of the last change; see [`crate::boottime`].
    pub since: Duration,
}

/// The processes of a page with the same report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspensionShare {
    /// The oldest of these reports.
    pub report: SuspensionReport,
    pub processes: usize,
    /// How many processes have reported anything.
    pub of: usize,
    /// Time since boot at which this was the state.
    pub now: Duration,
}

impl SuspensionShare {
    /// The reports of a page's live processes: those that are off first, then in page order.
    pub fn all(snapshot: &Snapshot, is_alive: impl Fn(u32) -> bool, now: Duration) -> Vec<Self> {
        let reports = snapshot.suspensions(is_alive);
        let mut shares = BTreeMap::<_, Self>::new();
        for report in reports.values() {
            let place = (report.state != Suspension::Off, report.state, report.doubt);
            let share =
                shares.entry(place).or_insert(Self { report: *report, processes: 0, of: reports.len(), now });
            share.processes += 1;
            share.report.since = share.report.since.min(report.since);
        }
        shares.into_values().collect()
    }

    /// How long this has been the state.
    pub fn age(&self) -> Duration {
        self.now.saturating_sub(self.report.since)
    }
}

impl Snapshot {
    /// Each process's report, by its number inside its namespace. Processes that have ended leave their last report
    /// behind, so select only those that are alive.
    pub fn suspensions(&self, is_alive: impl Fn(u32) -> bool) -> BTreeMap<u32, SuspensionReport> {
        let mut reports = BTreeMap::<u32, SuspensionReport>::new();
        for writer in self.writers.iter().filter(|writer| is_alive(writer.pid)) {
            if let Some(report) = writer.suspension {
                let first = reports.entry(writer.pid).or_insert(report);
                if report.state.precedence() > first.state.precedence() {
                    *first = report;
                }
            }
        }
        reports
    }
}

/// As people read it: the state, and why suspension is off.
impl fmt::Display for SuspensionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.doubt {
            Some(doubt) => write!(f, "{} ({doubt})", self.state),
            None => write!(f, "{}", self.state),
        }
    }
}

/// The same, with the number of processes that report it if they differ.
impl fmt::Display for SuspensionShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.report)?;
        if self.processes < self.of {
            write!(f, " in {} of {} processes", self.processes, self.of)?;
        }
        Ok(())
    }
}
