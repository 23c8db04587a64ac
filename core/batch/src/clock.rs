//! Durations of a few microseconds, for the break-even table, and the time of day, for the age of pools.

/// Nanoseconds on the monotonic clock; a read of the vDSO, no system call.
#[must_use]
#[inline]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of the time of day, to a few milliseconds. Unlike the monotonic clock, it also counts while a process lies on
/// a disk.
#[must_use]
#[inline]
pub fn time_of_day() -> u64 {
    read(libc::CLOCK_REALTIME_COARSE)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local variable; both clocks exist since Linux 2.6.32.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
