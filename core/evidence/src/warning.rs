//! What may have spoilt a measurement, and the cure.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::paired::Pair;
use crate::statistics::{median, outliers};

/// A reason to trust the numbers less. Each says what was seen and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// The hypervisor gave this share of the CPU time to others.
    Steal { percent: f64 },
    /// Unrelated processes used this share of all CPUs.
    Neighbours { percent: f64 },
    /// Pairs far from all others.
    Outliers { count: usize, pairs: usize },
    /// The stock side's cost moved by this much from the first to the second half.
    Drift { percent: f64 },
    /// The interval is wider than the rule required when time was up.
    Wide { percent: f64 },
    /// The load driver, not the server, was the limit.
    DriverLimit { percent: f64 },
    /// Driver and server had to share a core.
    SharedCore,
    /// No hasten library is loaded in the accelerated server.
    NotAccelerated { server: String },
    /// The output is larger than the rules about sizes allow: all of it, or one file.
    Larger { what: String, percent: f64 },
    /// Two programs are of different releases, where only a library of theirs should differ.
    Releases { programs: [String; 2] },
    /// Something to be measured is missing.
    Missing { what: String, why: String },
}

impl Warning {
    /// How bad it is, for choosing the worst of several of the same kind.
    pub(crate) fn severity(&self) -> f64 {
        match self {
            Self::Steal { percent }
            | Self::Neighbours { percent }
            | Self::Drift { percent }
            | Self::Wide { percent }
            | Self::DriverLimit { percent }
            | Self::Larger { percent, .. } => percent.abs(),
            Self::Outliers { count, pairs } => *count as f64 / *pairs as f64,
            Self::SharedCore | Self::NotAccelerated { .. } | Self::Releases { .. } | Self::Missing { .. } => {
                0.0
            }
        }
    }

    /// Whether both say the same, perhaps with different numbers.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NotAccelerated { server }, Self::NotAccelerated { server: other }) => server == other,
            (Self::Larger { what, .. }, Self::Larger { what: other, .. }) => what == other,
            (Self::Missing { what, .. }, Self::Missing { what: other, .. }) => what == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// What the pairs themselves reveal.
    #[must_use]
    pub fn of_pairs(pairs: &[Pair]) -> Vec<Self> {
        let mut warnings = Vec::new();
        let logs: Vec<f64> = pairs.iter().map(|pair| pair.ratio().ln()).collect();
        let count = outliers(&logs);
        // One odd pair is what the trimmed mean is for.
        if count * 5 > pairs.len() {
            warnings.push(Self::Outliers { count, pairs: pairs.len() });
        }
        if pairs.len() >= 4 {
            let stock: Vec<f64> = pairs.iter().map(|pair| pair.stock).collect();
            let (first, second) = stock.split_at(stock.len() / 2);
            let percent = (median(second) / median(first) - 1.0) * 100.0;
            if percent.abs() > 5.0 {
                warnings.push(Self::Drift { percent });
            }
        }
        warnings
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal { percent } => write!(
                f,
                "the hypervisor took {percent:.0} % of the CPU time away: use a machine with dedicated CPUs, or \
                 repeat at a quieter time"
            ),
            Self::Neighbours { percent } => write!(
                f,
                "other processes used {percent:.0} % of the CPUs: stop them (see `top`) and repeat"
            ),
            Self::Outliers { count, pairs } => write!(
                f,
                "{count} of {pairs} pairs are far from the others: something ran now and then, for example a cron \
                 job; repeat"
            ),
            Self::Drift { percent } => write!(
                f,
                "the stock server's cost moved by {percent:+.0} % during the measurement, as when the clock \
                 frequency changes: set `cpupower frequency-set -g performance`, let the machine warm up, repeat"
            ),
            Self::Wide { percent } => write!(
                f,
                "the interval is ± {percent:.1} % wide when the time is up: repeat on a quieter machine or without \
                 --quick"
            ),
            Self::DriverLimit { percent } => write!(
                f,
                "the load driver used {percent:.0} % of its CPUs, so the server was not always busy: throughput \
                 and latency say little here, and a machine with more CPUs would show more"
            ),
            Self::SharedCore => f.write_str(
                "the load driver shares a core with the server: throughput and latency suffer; use a machine with \
                 at least two cores",
            ),
            Self::NotAccelerated { server } => write!(
                f,
                "{server} runs without a hasten library, so both sides are the same: \
                 `hasten run --dry-run -- {server}` says why"
            ),
            Self::Larger { what, percent } => write!(
                f,
                "{what} became {percent:.1} % larger than the original's output, more than the rules allow: please \
                 report it"
            ),
            Self::Releases { programs: [one, other] } => write!(
                f,
                "{one} and {other} are different releases, which is a part of their difference: build both from one source"
            ),
            Self::Missing { what, why } => write!(f, "{what} is not measured: {why}"),
        }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(costs: &[(f64, f64)]) -> Vec<Pair> {
        costs.iter().map(|&(stock, hasten)| Pair { stock, hasten }).collect()
    }

    #[test]
    fn quiet_pairs_give_no_warning() {
        let quiet = pairs(&[(100.0, 50.0), (101.0, 50.2), (99.0, 50.1), (100.5, 49.8)]);
        assert_eq!(Warning::of_pairs(&quiet), []);
    }

    #[test]
    fn a_cost_that_moves_is_a_drift() {
        let moving = pairs(&[(100.0, 50.0), (100.0, 50.0), (120.0, 60.0), (120.0, 60.0)]);
        let warnings = Warning::of_pairs(&moving);
        assert!(matches!(warnings[..], [Warning::Drift { percent }] if (percent - 20.0).abs() < 1e-9));
        assert!(warnings[0].to_string().contains("cpupower"), "the cure is missing");
    }

    #[test]
    fn many_odd_pairs_are_a_warning_and_one_is_not() {
        let steady = [(100.0, 50.0), (100.1, 50.0), (99.9, 50.0), (100.2, 50.0), (99.8, 50.0)];
        let one = [&steady[..], &[(100.0, 90.0)]].concat();
        let two = [&one[..], &[(100.0, 20.0)]].concat();
        assert_eq!(Warning::of_pairs(&pairs(&one)), []);
        assert_eq!(Warning::of_pairs(&pairs(&two)), [Warning::Outliers { count: 2, pairs: 7 }]);
    }
}
