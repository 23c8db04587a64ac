//! The clocks of breakers, time limits, costs and pools, all in nanoseconds. None but [`thread_cpu_ns`] is a system call.
//!
//! The kernel is asked, not the C library: another preloaded library may have wrapped the latter, with a different
//! notion of the time, and with a lock that its caller may hold at this moment.

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

/// `CLOCK_BOOTTIME`, as on the counter page: it is monotonic, and continues while the machine sleeps.
pub fn boot_ns() -> u64 {
    read(DynamicClockId::Boottime)
}

/// `CLOCK_MONOTONIC`, for durations of a few microseconds.
#[inline]
pub fn now() -> u64 {
    read(DynamicClockId::Known(ClockId::Monotonic))
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    read(DynamicClockId::Known(ClockId::ThreadCPUTime))
}

/// The time of day, to a few milliseconds. Unlike the monotonic clock, it also advances while a process is saved on
/// disk.
#[inline]
pub fn time_of_day() -> u64 {
    read(DynamicClockId::Known(ClockId::RealtimeCoarse))
}

/// Zero where the kernel does not have the clock; all of these exist since Linux 2.6.39.
#[inline]
fn read(clock: DynamicClockId<'_>) -> u64 {
    let Ok(time) = clock_gettime_dynamic(clock) else { return 0 };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::{boot_ns, now, thread_cpu_ns};

    #[test]
    fn all_go_on_while_a_thread_works() {
        let start = (boot_ns(), now(), thread_cpu_ns());
        while boot_ns() == start.0 || now() == start.1 || thread_cpu_ns() == start.2 {}
    }
}
