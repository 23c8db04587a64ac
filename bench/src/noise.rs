//! What else the machine was doing, from the kernel's totals.

use std::fs;
use std::time::Duration;

use hasten_evidence::warning::Warning;

/// Less is normal on any virtual machine.
const STEAL_LIMIT: f64 = 2.0;
/// An idle system stays below this.
const NEIGHBOUR_LIMIT: f64 = 10.0;
/// The unit of `/proc/stat`.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of the whole machine since it started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTimes {
    busy: u64,
    steal: u64,
    total: u64,
}

impl MachineTimes {
    #[must_use]
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let (idle, steal) = (at(3) + at(4), at(7));
        let busy = at(0) + at(1) + at(2) + at(5) + at(6);
        Self { busy, steal, total: busy + idle + steal }
    }

    /// What is suspicious about the time since `earlier`, in which the measurement itself used `ours`.
    #[must_use]
    pub fn warnings_since(self, earlier: Self, ours: Duration) -> Vec<Warning> {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 {
            return Vec::new();
        }
        let percent = |ticks: f64| ticks * 100.0 / total as f64;
        let ours = ours.as_secs_f64() / TICK.as_secs_f64();
        let steal = percent(self.steal.saturating_sub(earlier.steal) as f64);
        let neighbours = percent(self.busy.saturating_sub(earlier.busy) as f64 - ours);
        let mut warnings = Vec::new();
        if steal > STEAL_LIMIT {
            warnings.push(Warning::Steal { percent: steal });
        }
        if neighbours > NEIGHBOUR_LIMIT {
            warnings.push(Warning::Neighbours { percent: neighbours });
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_neighbours_are_told_from_the_measurement() {
        let before = MachineTimes::parse("cpu  100 0 100 1000 0 0 0 10 0 0\ncpu0 1 1 1 1\n");
        let after = MachineTimes::parse("cpu  180 0 140 1060 0 0 0 30 0 0\n");
        // 200 ticks passed: 120 busy, 60 idle, 20 stolen. 80 of the busy ones were ours.
        let warnings = after.warnings_since(before, Duration::from_millis(800));
        assert_eq!(warnings, [Warning::Steal { percent: 10.0 }, Warning::Neighbours { percent: 20.0 }]);
        let warnings = after.warnings_since(before, Duration::from_millis(1200));
        assert_eq!(warnings, [Warning::Steal { percent: 10.0 }]);
    }

    #[test]
    fn no_time_and_no_data_are_no_warning() {
        let times = MachineTimes::parse("");
        assert_eq!(times.warnings_since(times, Duration::ZERO), []);
    }

    #[test]
    fn this_machine_has_times() {
        assert!(MachineTimes::now().total > 0);
    }
}
