//! Time without the standard library's clocks, which do not offer boot time.

/// Nanoseconds of a `CLOCK_…`, or 0 where the kernel does not have it.
pub(crate) fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; on failure it stays 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
