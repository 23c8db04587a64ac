//! CPU time of a server: every thread of every process below a root, from the scheduler's own books.
//!
//! `schedstat` counts nanoseconds on a CPU; `stat` would count ticks of 10 ms. A running thread's entry may lag by
//! one scheduler tick, so readers let the server fall idle before they look.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Threads of a process tree with the CPU time each had used when the tree was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    threads: HashMap<u32, u64>,
}

impl CpuTimes {
    /// Reads the process `root` and all its descendants; processes that end meanwhile are left out.
    #[must_use]
    pub fn of_tree(root: u32) -> Self {
        let mut times = Self::default();
        let mut pending = vec![root];
        while let Some(pid) = pending.pop() {
            times.add_process(Path::new("/proc"), pid, &mut pending);
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

    /// Whether there is no thread at all: the root does not exist or may not be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    fn add_process(&mut self, proc: &Path, pid: u32, children: &mut Vec<u32>) {
        let Ok(tasks) = fs::read_dir(proc.join(pid.to_string()).join("task")) else { return };
        for task in tasks.flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            if let Some(nanos) = read("schedstat").split(' ').next().and_then(|field| field.parse().ok()) {
                self.threads.insert(tid, nanos);
            }
            children
                .extend(read("children").split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
}
