//! The memory of a service.

use std::fs;

use super::process::Process;

/// The unit in `/proc/PID/stat` on x86-64.
const PAGE: u64 = 4096;
const KIB: u64 = 1024;

/// The processes' mapped memory, in bytes; shared memory is counted several times.
pub(super) fn resident(processes: &[Process]) -> u64 {
    processes.iter().filter_map(|process| process.alive()).map(|stat| stat.resident_pages * PAGE).sum()
}

/// The peak of their memory, from the largest sum seen.
///
/// A single process knows its own peak. For several, the sum is scaled by the present degree of sharing: reading
/// that more often would take the service's own locks.
pub(super) fn peak(pids: &[u32], largest_sum: u64) -> u64 {
    if let [pid] = pids {
        return fs::read_to_string(format!("/proc/{pid}/status"))
            .ok()
            .and_then(|status| kib(&status, "VmHWM:"))
            .map_or(largest_sum, |peak| peak.max(largest_sum));
    }
    let rollups =
        || pids.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok());
    let total = |name| rollups().filter_map(|rollup| kib(&rollup, name)).sum::<u64>();
    let (resident, own) = (total("Rss:"), total("Pss:"));
    if resident == 0 { largest_sum } else { (largest_sum as f64 * own as f64 / resident as f64) as u64 }
}

/// A field of one of the kernel's tables, in bytes.
fn kib(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_bytes() {
        let status = "Name:\tnode\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        assert_eq!((kib(status, "VmHWM:"), kib(status, "VmX:")), (Some(2 << 20), None));
    }

    #[test]
    fn what_two_processes_share_counts_once() {
        let own = std::process::id();
        let alone = peak(&[own], 0);
        assert!(alone > 1 << 20);
        // The same process twice: its pages are counted twice in numerator and denominator, so nothing changes.
        assert!(peak(&[own, own], 1 << 30) <= 1 << 30);
        assert_eq!(peak(&[], 77), 77);
    }
}
