use std::time::Duration;

use hasten_evidence::stop::StopRule;

/// How long a row takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Discarded at the start of every row, while caches, pools and the acceleration's own measurements settle.
    pub warm_up: Duration,
    pub round: Duration,
    pub rule: StopRule,
    /// A row with enough pairs for an interval ends here, however wide that is.
    pub limit: Duration,
}

impl Pace {
    #[must_use]
    pub fn quick() -> Self {
        Self {
            warm_up: Duration::from_millis(300),
            round: Duration::from_millis(400),
            rule: StopRule { min_pairs: 6, max_pairs: 10, uncertainty: 0.01 },
            limit: Duration::from_secs(11),
        }
    }

    #[must_use]
    pub fn full() -> Self {
        Self {
            warm_up: Duration::from_secs(1),
            round: Duration::from_millis(800),
            rule: StopRule { min_pairs: 8, max_pairs: 20, uncertainty: 0.005 },
            limit: Duration::from_secs(45),
        }
    }

    /// The approximate time for one row.
    pub(crate) fn estimate(&self) -> Duration {
        // A round ends with its last operation, and its results may be checked after that.
        const TAIL: Duration = Duration::from_millis(250);
        let pairs = u32::try_from((self.rule.min_pairs + self.rule.max_pairs) / 2).unwrap_or(u32::MAX);
        (self.warm_up + TAIL) * 2 + (self.round + TAIL) * 2 * pairs
    }
}
