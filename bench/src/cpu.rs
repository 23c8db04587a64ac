//! CPU time of a server: every thread of every process below a root, from the scheduler's own accounts.
//!
//! `schedstat` counts nanoseconds on a CPU; `stat` would count ticks of 10 ms. A running thread's entry may lag by
//! one scheduler tick, so readers let the server fall idle first.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Threads of a process tree with the CPU time each had used when the tree was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    threads: HashMap<u32, u64>,
}

impl CpuTimes {
    /// Reads the process `root` and all its descendants; processes that end meanwhile are skipped.
    #[must_use]
    pub fn of_tree(root: u32) -> Self {
        let mut times = Self::default();
        let mut pending = vec![root];
        while let Some(pid) = pending.pop() {
            times.add_process(pid, &mut pending);
        }
        times
    }

    /// The time used since `earlier`.
    ///
    /// Threads are matched one by one: a sum over the tree would jump back when a worker with a long history exits.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = |(tid, now): (&u32, &u64)| {
            let before = earlier.threads.get(tid).copied().unwrap_or(0);
            now.saturating_sub(before)
        };
        Duration::from_nanos(self.threads.iter().map(used).sum())
    }

    /// The sum of both trees.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.threads.extend(other.threads);
        self
    }

    /// Whether there is no thread at all: the root does not exist or may not be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    fn add_process(&mut self, pid: u32, descendants: &mut Vec<u32>) {
        for (tid, task) in tasks(pid) {
            let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            if let Some(nanos) = schedstat.split(' ').next().and_then(|field| field.parse().ok()) {
                self.threads.insert(tid, nanos);
            }
        }
        descendants.extend(children(pid));
    }
}

/// CPU time of the calling process.
#[must_use]
pub fn of_this_process() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// CPU time of the calling thread.
#[must_use]
pub fn of_this_thread() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// The direct children of a process.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let of_task = |(_, task): (u32, PathBuf)| fs::read_to_string(task.join("children")).unwrap_or_default();
    let lists: Vec<String> = tasks(pid).map(of_task).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// The threads of a process: id and directory.
fn tasks(pid: u32) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread;
    use std::time::Instant;

    fn times(threads: &[(u32, u64)]) -> CpuTimes {
        CpuTimes { threads: threads.iter().copied().collect() }
    }

    #[test]
    fn a_worker_that_ends_takes_nothing_away_and_a_new_one_counts_in_full() {
        let before = times(&[(1, 100), (2, 5_000)]);
        let after = times(&[(1, 150), (3, 30)]);
        assert_eq!(after.since(&before), Duration::from_nanos(80));
    }

    #[test]
    fn counts_the_children_of_the_root() {
        let mut shell =
            Command::new("sh").args(["-c", "timeout 20 sh -c 'while :; do :; done' & wait"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while children(shell.id()).is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let busy = children(shell.id());
        let before = CpuTimes::of_tree(shell.id());
        thread::sleep(Duration::from_millis(200));
        let used = CpuTimes::of_tree(shell.id()).since(&before);
        for child in &busy {
            Command::new("kill").arg(child.to_string()).status().unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(busy.len(), 1);
        assert!(used > Duration::from_millis(20), "the busy child used {used:?}");
        assert!(used < Duration::from_secs(5), "the busy child used {used:?}");
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_threads() {
        assert!(CpuTimes::of_tree(u32::MAX).is_empty());
    }
}
