//! One-line charts.

const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each value; every value above zero is visible.
pub(super) fn bars(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match *value {
        value if value > 0.0 && most > 0.0 => BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8)],
        _ => BARS[0],
    };
    values.iter().map(bar).collect()
}

/// Equal stretches between `from` and `to`, each with the values in it combined by `join`.
pub(super) fn buckets(
    values: impl Iterator<Item = (f64, f64)>,
    (from, to): (f64, f64),
    count: usize,
    join: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut buckets = vec![0.0; count];
    let length = (to - from).max(f64::MIN_POSITIVE);
    for (at, value) in values {
        let bucket = ((at - from) / length * count as f64).max(0.0) as usize;
        let bucket = &mut buckets[bucket.min(count - 1)];
        *bucket = join(*bucket, value);
    }
    buckets
}

/// Fills gaps with the last known value.
pub(super) fn continued(mut values: Vec<f64>) -> Vec<f64> {
    for at in 1..values.len() {
        if values[at] == 0.0 {
            values[at] = values[at - 1];
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_known_last_fills_gaps() {
        assert_eq!(continued(vec![0.0, 2.0, 0.0, 0.0, 3.0, 0.0]), [0.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn a_single_short_pause_among_long_ones_is_visible() {
        assert_eq!(bars(&[0.0, 0.001, 500.0, 1000.0]), "·▁▄█");
        assert_eq!(bars(&[0.0, 0.0]), "··");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn values_fall_into_the_stretch_of_their_time() {
        let values = [(10.0, 1.0), (14.9, 2.0), (15.0, 4.0), (20.0, 8.0), (99.0, 1.0)];
        assert_eq!(buckets(values.into_iter(), (10.0, 20.0), 2, |a, b| a + b), [3.0, 13.0]);
        assert_eq!(buckets(values.into_iter(), (10.0, 20.0), 2, f64::max), [2.0, 8.0]);
        assert_eq!(buckets(values.into_iter().take(1), (10.0, 10.0), 3, f64::max), [1.0, 0.0, 0.0]);
    }
}
