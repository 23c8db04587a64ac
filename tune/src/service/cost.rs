//! The cost of a service.

use std::time::Duration;

use hasten_bench::cpu;

/// Clock ticks per second in `/proc`: a part of the kernel's interface on x86-64.
const TICKS: u64 = 100;

/// CPU time of all processes of a service at the moment of reading.
///
/// The scheduler's accounts are exact but end with each thread. The kernel's ticks include ended threads, in steps of
/// 10 ms.
#[derive(Clone, Debug, Default)]
pub struct CpuTimes {
    pub(super) threads: cpu::CpuTimes,
    pub(super) ticks: u64,
    pub(super) processes: usize,
}

impl CpuTimes {
    /// The time used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        let exact = self.threads.since(&earlier.threads);
        let ticks = Duration::from_millis(self.ticks.saturating_sub(earlier.ticks) * 1000 / TICKS);
        // Each process is rounded by at most two ticks; anything beyond belongs to ended threads.
        let rounding =
            Duration::from_millis(2000 / TICKS) * u32::try_from(self.processes).unwrap_or(u32::MAX);
        if ticks > exact + rounding + exact / 50 { ticks } else { exact }
    }
}
