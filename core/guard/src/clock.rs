//! The clocks of breakers, time limits, costs and pools, all in nanoseconds. None but [`thread_cpu_ns`] is a system call.

/// `CLOCK_BOOTTIME`, as on the counter page: it does not go back, and counts while the machine sleeps.
pub fn boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// `CLOCK_MONOTONIC`, for durations of a few microseconds.
#[inline]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time of day, to a few milliseconds. Unlike the monotonic clock, it also counts while a process lies on a disk.
#[inline]
pub fn time_of_day() -> u64 {
    read(libc::CLOCK_REALTIME_COARSE)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the right type; all of these clocks exist since Linux 2.6.39.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
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
