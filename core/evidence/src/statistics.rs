//! The location of a handful of noisy numbers.

/// The middle value, or the mean of the two middle ones; NaN for no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    quantile_of_sorted(&sorted(values), 0.5)
}

/// The mean without the lowest and the highest fifth; NaN for no values.
///
/// A single round that a neighbour disturbed does not move it, and unlike the median it is smooth enough for
/// the bootstrap.
#[must_use]
pub fn trimmed_mean(values: &[f64]) -> f64 {
    trimmed_mean_of(&mut values.to_vec())
}

/// Like [`trimmed_mean`], sorting in place.
pub(crate) fn trimmed_mean_of(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 5;
    let kept = &values[cut..values.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// The `q`-quantile of ascending values, interpolated linearly.
pub(crate) fn quantile_of_sorted(values: &[f64], q: f64) -> f64 {
    let position = q.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    values[below] + (values[above] - values[below]) * (position - below as f64)
}

/// How many values lie more than 3.5 robust standard deviations from the median.
#[must_use]
pub fn outliers(values: &[f64]) -> usize {
    let center = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    // 1.4826: a normal distribution's standard deviation is this many times its median deviation.
    let limit = 3.5 * 1.4826 * median(&deviations);
    deviations.iter().filter(|&&deviation| deviation > limit && deviation > 0.0).count()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn trimmed_mean_forgets_the_extremes() {
        assert_eq!(trimmed_mean(&[1.0, 2.0, 3.0, 4.0, 1e9]), 3.0);
        assert_eq!(trimmed_mean(&[1.0, 3.0]), 2.0);
        assert!(trimmed_mean(&[]).is_nan());
    }

    #[test]
    fn outliers_are_counted_and_ordinary_noise_is_not() {
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02, 0.98, 1.5]), 1);
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02, 0.98]), 0);
        assert_eq!(outliers(&[1.0; 5]), 0);
    }

    proptest! {
        #[test]
        fn location_lies_within_the_values(values in prop::collection::vec(-1e6..1e6f64, 1..50)) {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let slack = 1e-9 * (1.0 + low.abs().max(high.abs()));
            for location in [median(&values), trimmed_mean(&values)] {
                prop_assert!(location >= low - slack && location <= high + slack);
            }
        }

        #[test]
        fn order_does_not_matter(mut values in prop::collection::vec(-1e6..1e6f64, 1..50)) {
            let before = (median(&values), trimmed_mean(&values), outliers(&values));
            values.reverse();
            prop_assert_eq!(before, (median(&values), trimmed_mean(&values), outliers(&values)));
        }
    }
}
