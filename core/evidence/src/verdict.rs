//! What may be claimed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::paired::Estimate;

/// A smaller effect is not called a difference, however narrow the interval: two processes of the same program
/// already differ by that much, depending on where their memory happens to lie.
pub const NOISE_FLOOR: f64 = 0.01;

/// The outcome of a comparison; `faster` and `slower` describe hasten against stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    #[serde(rename = "faster")]
    Faster,
    #[serde(rename = "slower")]
    Slower,
    #[serde(rename = "no difference")]
    NoDifference,
    /// Some work was not done correctly; its cost means nothing.
    #[serde(rename = "failed")]
    Failed,
}

impl Verdict {
    /// Judges the ratio stock/hasten of the costs.
    #[must_use]
    pub fn of(ratio: Estimate, failures: u64) -> Self {
        if failures > 0 {
            Self::Failed
        } else if ratio.low > 1.0 && ratio.value > 1.0 + NOISE_FLOOR {
            Self::Faster
        } else if ratio.high < 1.0 && ratio.value < 1.0 / (1.0 + NOISE_FLOOR) {
            Self::Slower
        } else {
            Self::NoDifference
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(low: f64, value: f64, high: f64) -> Verdict {
        Verdict::of(Estimate { value, low, high }, 0)
    }

    #[test]
    fn only_an_interval_without_one_is_a_difference() {
        assert_eq!(verdict(1.5, 1.7, 1.9), Verdict::Faster);
        assert_eq!(verdict(0.99, 1.7, 1.9), Verdict::NoDifference);
        assert_eq!(verdict(0.5, 0.6, 0.7), Verdict::Slower);
        assert_eq!(verdict(0.5, 0.6, 1.01), Verdict::NoDifference);
    }

    #[test]
    fn an_effect_below_the_floor_is_none() {
        assert_eq!(verdict(1.004, 1.006, 1.008), Verdict::NoDifference);
        assert_eq!(verdict(0.992, 0.994, 0.996), Verdict::NoDifference);
    }

    #[test]
    fn one_failure_is_enough() {
        let ratio = Estimate { value: 5.0, low: 4.9, high: 5.1 };
        assert_eq!(Verdict::of(ratio, 1), Verdict::Failed);
    }

    #[test]
    fn names_in_json_are_the_names_on_the_terminal() {
        for verdict in [Verdict::Faster, Verdict::Slower, Verdict::NoDifference, Verdict::Failed] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
    }
}
