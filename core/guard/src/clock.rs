//! The clock of breakers and time limits, and that of costs.

/// `CLOCK_BOOTTIME` in nanoseconds, as on the counter page: it does not go back, and counts while the machine sleeps.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// CPU time of this thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the right type; both clocks exist since Linux 2.6.39.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::{now_ns, thread_cpu_ns};

    #[test]
    fn both_go_on_while_a_thread_works() {
        let (now, cpu) = (now_ns(), thread_cpu_ns());
        while now_ns() == now || thread_cpu_ns() == cpu {}
    }
}
