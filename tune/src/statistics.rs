//! Inference from many comparisons with few values each.

use hasten_evidence::paired::{Estimate, Pair};
use hasten_evidence::statistics::median;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A normal distribution's standard deviation is 1.4826 times its median deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// Values further from the middle of their group than this many standard deviations are moved to that distance: one
/// round that a neighbour disturbed must not hide what the others show.
const CLIP: f64 = 3.0;

/// An effect, as the logarithm of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    pub freedom: f64,
}

impl Effect {
    /// The two-sided error probability of calling it a difference.
    #[must_use]
    pub fn p(self) -> f64 {
        if self.error > 0.0 { 2.0 * self.student().cdf(-(self.mean / self.error).abs()) } else { 1.0 }
    }

    /// The bound below which the true effect lies with this probability.
    #[must_use]
    pub fn bound(self, probability: f64) -> f64 {
        self.mean + self.student().inverse_cdf(probability) * self.error
    }

    /// As a ratio, with a 95 % interval.
    #[must_use]
    pub fn ratio(self) -> Estimate {
        let (low, high) = (self.bound(0.025), self.bound(0.975));
        Estimate { value: self.mean.exp(), low: low.exp(), high: high.exp() }
    }

    fn student(self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.freedom.max(1.0)).expect("the degrees of freedom are positive")
    }
}

/// Ratios multiply, so they are compared as logarithms.
#[must_use]
pub fn logs(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|pair| pair.ratio().ln()).collect()
}

/// The effect of each group, with a common spread: two or three values alone say next to nothing about theirs. `None`
/// for groups without a value, and for all if no group has two.
#[must_use]
pub fn effects(groups: &[&[f64]]) -> Vec<Option<Effect>> {
    let clipped = clipped(groups);
    let deviations = clipped.iter().flat_map(|group| group.iter().map(|value| (value - mean(group)).powi(2)));
    let squares: f64 = deviations.sum();
    let freedom: usize = clipped.iter().map(|group| group.len().saturating_sub(1)).sum();
    if freedom == 0 {
        return vec![None; groups.len()];
    }
    let spread = (squares / freedom as f64).sqrt();
    let effect = |group: &Vec<f64>| {
        (!group.is_empty()).then(|| Effect {
            mean: mean(group),
            error: spread / (group.len() as f64).sqrt(),
            freedom: freedom as f64,
        })
    };
    clipped.iter().map(effect).collect()
}

/// Groups with their extremes clipped.
fn clipped(groups: &[&[f64]]) -> Vec<Vec<f64>> {
    let spread = robust_spread(groups);
    let clip = |group: &&[f64]| {
        let center = median(group);
        let (low, high) = (center - CLIP * spread, center + CLIP * spread);
        group.iter().map(|value| if spread > 0.0 { value.clamp(low, high) } else { *value }).collect()
    };
    groups.iter().map(clip).collect()
}

/// The standard deviation within groups, from the median deviation.
fn robust_spread(groups: &[&[f64]]) -> f64 {
    let in_group = |group: &[f64]| {
        // The median of few values lies near them: two of three are pulled towards it.
        let (center, size) = (median(group), group.len() as f64);
        let widen = (size / (size - 1.0)).sqrt();
        group.iter().map(|value| (value - center).abs() * widen).collect::<Vec<_>>()
    };
    let deviations: Vec<f64> =
        groups.iter().filter(|group| group.len() >= 2).flat_map(|group| in_group(group)).collect();
    if deviations.is_empty() { 0.0 } else { MAD_TO_DEVIATION * median(&deviations) }
}

/// The relative standard deviation of one measurement, from pairs of the same thing: each difference contains two of
/// them.
#[must_use]
pub fn spread_of_pairs(logs: &[f64]) -> f64 {
    let squares: f64 = clipped(&[logs])[0].iter().map(|log| log * log).sum();
    (squares / (2.0 * logs.len().max(1) as f64)).sqrt()
}

/// The smallest effect that `pairs` pairs detect in four of five cases.
#[must_use]
pub fn visible(spread: f64, pairs: usize) -> f64 {
    let student =
        StudentsT::new(0.0, 1.0, (pairs.max(2) - 1) as f64).expect("at least one degree of freedom");
    let power = student.inverse_cdf(0.8);
    let error = spread * (2.0 / pairs.max(2) as f64).sqrt();
    ((student.inverse_cdf(0.975) + power) * error).exp_m1()
}

/// Error probabilities corrected for their number. Holm, S. (1979), A Simple Sequentially Rejective Multiple Test
/// Procedure.
#[must_use]
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![1.0; values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max((values.len() - rank) as f64 * values[index]).min(1.0);
        corrected[index] = largest;
    }
    corrected
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// R 4.5: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`.
    #[test]
    fn holm_agrees_with_r() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-12, "{corrected:?}");
        }
    }

    /// Student's t by hand: mean 0.02, standard deviation 0.01, three values, so t = 3.4641 with 2 degrees.
    #[test]
    fn one_group_is_students_t() {
        let effect = effects(&[&[0.01, 0.02, 0.03]])[0].unwrap();
        assert!((effect.mean / effect.error - 3.4641).abs() < 1e-4);
        assert!((effect.p() - 0.0742).abs() < 1e-4, "{}", effect.p());
    }

    #[test]
    fn the_spread_is_that_of_all_groups() {
        let quiet: &[f64] = &[0.10, 0.10];
        let effects = effects(&[quiet, &[0.00, 0.02], &[-0.02, 0.0], &[]]);
        assert!(effects[0].unwrap().error > 0.005);
        assert_eq!(effects[0].unwrap().freedom, 3.0);
        assert_eq!(effects[3], None);
    }

    #[test]
    fn one_disturbed_round_does_not_hide_an_effect() {
        let groups: [&[f64]; 4] = [
            &[0.12, 0.11, 0.60, 0.12],
            &[0.01, -0.01, 0.0, 0.01],
            &[0.0, 0.01, 0.0, -0.01],
            &[0.0, 0.02, 0.01, 0.0],
        ];
        let effects = effects(&groups);
        assert!(effects[0].unwrap().p() < 1e-3);
        assert!(effects[0].unwrap().mean < 0.2);
        assert!(effects[1].unwrap().p() > 0.05);
    }

    #[test]
    fn more_pairs_show_smaller_effects() {
        assert!((visible(0.02, 10) - 0.0286).abs() < 5e-4, "{}", visible(0.02, 10));
        assert!(visible(0.02, 20) < visible(0.02, 10));
    }

    proptest! {
        #[test]
        fn correction_never_makes_a_claim_easier(values in prop::collection::vec(0.0..=1.0f64, 1..40)) {
            for (value, corrected) in values.iter().zip(holm(&values)) {
                prop_assert!(corrected >= *value && corrected <= 1.0);
            }
        }
    }
}
