//! Durations of a few microseconds, for the break-even table, and the time of day, for the age of pools.

/// Nanoseconds on the monotonic clock; a read of the vDSO, no system call.
#[inline]
#[must_use]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local variable; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of the time of day, to a few milliseconds. Unlike the monotonic clock, it also counts while a process lies on
/// a disk.
#[inline]
#[must_use]
pub fn time_of_day() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local variable; CLOCK_REALTIME_COARSE exists since Linux 2.6.32.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
