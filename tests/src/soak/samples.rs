//! The resources of a server's processes, second by second.

use std::fs;
use std::time::Duration;

use super::heap;
use super::station::{Clock, Station};

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub at: Duration,
    /// Requests answered up to then.
    pub answers: u64,
    pub generation: u32,
    /// The master first.
    pub processes: Vec<Holding>,
    /// Whether the master is its only worker.
    pub is_single: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    pub pid: u32,
    pub resident_kib: u64,
    /// Pages shared by several processes count proportionally.
    pub proportional_kib: u64,
    pub descriptors: u64,
    /// For a worker, if its heap could be read.
    pub allocated: Option<u64>,
}

impl Sample {
    #[must_use]
    pub fn of(station: &Station, clock: Clock) -> Self {
        let (master, mut workers) = (station.pid(), station.workers());
        let is_single = workers == [master];
        let holding = if is_single { Holding::of_worker(master) } else { Holding::of(master) };
        workers.retain(|worker| *worker != master);
        Self {
            at: clock.now(),
            answers: station.answered(),
            generation: station.generation(),
            processes: std::iter::once(holding).chain(workers.into_iter().map(Holding::of_worker)).collect(),
            is_single,
        }
    }

    /// The sum over the whole tree.
    #[must_use]
    pub fn sum(&self, of: fn(&Holding) -> u64) -> u64 {
        self.processes.iter().map(of).sum()
    }

    #[must_use]
    pub fn descriptors(&self) -> u64 {
        self.sum(|holding| holding.descriptors)
    }

    #[must_use]
    pub fn master(&self) -> &Holding {
        &self.processes[0]
    }

    #[must_use]
    pub fn workers(&self) -> &[Holding] {
        &self.processes[usize::from(!self.is_single)..]
    }
}

impl Holding {
    /// Zero for a process that has just ended.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let field = |name: &str| {
            let rest = rollup.lines().find_map(|line| line.strip_prefix(name));
            rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Self {
            pid,
            resident_kib: field("Rss:"),
            proportional_kib: field("Pss:"),
            descriptors: descriptors as u64,
            allocated: None,
        }
    }

    fn of_worker(pid: u32) -> Self {
        Self { allocated: heap::allocated(pid), ..Self::of(pid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_something_and_one_that_does_not_exist_nothing() {
        let this = Holding::of(std::process::id());
        assert!(this.resident_kib >= this.proportional_kib && this.proportional_kib > 0, "{this:?}");
        assert!(this.descriptors >= 3, "{this:?}");
        assert_eq!(Holding::of(u32::MAX), Holding { pid: u32::MAX, ..Holding::default() });
    }
}
