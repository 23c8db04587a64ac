//! Comparison in pairs: both sides did the same work within a second or two of each other, so anything that
//! slows the machine for longer than that slows both and leaves their ratio alone.

use serde::{Deserialize, Serialize};

use crate::bootstrap;
use crate::statistics::trimmed_mean;

/// What one unit of work cost on each side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub stock: f64,
    pub hasten: f64,
}

impl Pair {
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.stock / self.hasten
    }
}

/// A value and the interval that holds the truth in 95 of 100 measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Half the interval's width, relative to the value.
    #[must_use]
    pub fn uncertainty(self) -> f64 {
        (self.high - self.low) / (2.0 * self.value)
    }
}

/// How many times more the stock side costs; `None` below two usable pairs.
///
/// Ratios multiply, so they are averaged as logarithms: a gain and a loss of the same factor cancel.
#[must_use]
pub fn ratio(pairs: &[Pair]) -> Option<Estimate> {
    let logs: Vec<f64> = pairs.iter().map(|pair| pair.ratio().ln()).filter(|log| log.is_finite()).collect();
    let (low, high) = bootstrap::interval(&logs)?;
    let value = trimmed_mean(&logs);
    // The corrected interval of a very skewed sample may end just before its own centre.
    Some(Estimate { value: value.exp(), low: low.min(value).exp(), high: high.max(value).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(ratios: &[f64]) -> Vec<Pair> {
        ratios.iter().map(|ratio| Pair { stock: 100.0 * ratio, hasten: 100.0 }).collect()
    }

    #[test]
    fn gain_and_loss_cancel() {
        let estimate = ratio(&pairs(&[2.0, 0.5, 2.0, 0.5])).unwrap();
        assert!((estimate.value - 1.0).abs() < 1e-12);
        assert!(estimate.low < 0.7 && estimate.high > 1.4, "{estimate:?}");
    }

    #[test]
    fn unusable_pairs_are_left_out() {
        let mut measured = pairs(&[2.0, 2.0, 2.0]);
        measured.push(Pair { stock: 1.0, hasten: 0.0 });
        assert_eq!(ratio(&measured).map(|estimate| estimate.value.round()), Some(2.0));
        assert_eq!(ratio(&pairs(&[2.0])), None);
        assert_eq!(ratio(&[]), None);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_inverts_the_value(ratios in prop::collection::vec(0.2..5.0f64, 2..20)) {
            let measured = pairs(&ratios);
            let swap = |pair: &Pair| Pair { stock: pair.hasten, hasten: pair.stock };
            let swapped: Vec<Pair> = measured.iter().map(swap).collect();
            let product = ratio(&measured).unwrap().value * ratio(&swapped).unwrap().value;
            prop_assert!((product - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_interval_holds_the_value(ratios in prop::collection::vec(0.2..5.0f64, 2..20)) {
            let estimate = ratio(&pairs(&ratios)).unwrap();
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
    }
}
