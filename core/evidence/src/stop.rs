//! When enough has been measured.

use crate::paired::{Pair, ratio};

/// Stops once the interval is narrow enough. It never looks at where the interval lies: stopping as soon as it
/// leaves 1 would find a difference between any two equal servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    /// Below this the interval itself is a guess.
    pub min_pairs: usize,
    pub max_pairs: usize,
    /// Half the interval's width relative to the value.
    pub uncertainty: f64,
}

impl StopRule {
    #[must_use]
    pub fn is_enough(&self, pairs: &[Pair]) -> bool {
        pairs.len() >= self.max_pairs
            || pairs.len() >= self.min_pairs
                && ratio(pairs).is_some_and(|ratio| ratio.uncertainty() <= self.uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StopRule = StopRule { min_pairs: 6, max_pairs: 12, uncertainty: 0.01 };

    fn alternating(count: usize, spread: f64) -> Vec<Pair> {
        let stock = |index: usize| if index.is_multiple_of(2) { 100.0 } else { 100.0 + spread };
        (0..count).map(|index| Pair { stock: stock(index), hasten: 100.0 }).collect()
    }

    #[test]
    fn quiet_measurements_stop_at_the_minimum() {
        assert!(!RULE.is_enough(&alternating(5, 0.1)));
        assert!(RULE.is_enough(&alternating(6, 0.1)));
    }

    #[test]
    fn noisy_ones_go_on_to_the_maximum() {
        assert!(!RULE.is_enough(&alternating(11, 30.0)));
        assert!(RULE.is_enough(&alternating(12, 30.0)));
    }
}
