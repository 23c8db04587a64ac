//! Which CPU the server's worker and the load driver stay on, so that they do not take each other's time.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may use, in ascending order.
#[must_use]
pub fn allowed() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Keeps the calling thread, and every process it starts from now on, on one CPU.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Runs `action` on one CPU; processes that it starts stay there.
pub fn on_cpu<T>(cpu: usize, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    pin_current_thread(cpu)?;
    let result = action();
    sched_setaffinity(None, &before)?;
    result
}
