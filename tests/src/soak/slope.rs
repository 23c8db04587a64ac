//! How fast something grows, by an estimate that is robust against a few wild samples.

/// A slope with the interval that holds it in 95 of 100 repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Fewer points say nothing about an interval.
const LEAST: usize = 5;

/// The maximum number of blocks of a long run.
const BLOCKS: usize = 60;

/// Samples taken in quick succession are nearly the same, and would make the interval too narrow: at least this many
/// are merged into one.
const BLOCK: usize = 8;

impl Slope {
    /// The median of the slopes between any two points (Theil and Sen), with Sen's rank-based interval; `None` if
    /// there are too few points.
    #[must_use]
    pub fn of(samples: &[(f64, f64)]) -> Option<Self> {
        let points = blocks(samples);
        let mut slopes = Vec::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let later = points[at + 1..].iter().filter(|(later, _)| later > x);
            slopes.extend(later.map(|(later, other)| (other - y) / (later - x)));
        }
        if points.len() < LEAST || slopes.is_empty() {
            return None;
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let count = points.len() as f64;
        // 1.96 standard deviations of Kendall's statistic.
        let width = 1.96 * (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
        let last = slopes.len() as f64 - 1.0;
        let ranked = |rank: f64| slopes[rank.clamp(0.0, last) as usize];
        Some(Self {
            value: median(&mut slopes.clone()),
            low: ranked(((last + 1.0 - width) / 2.0).floor()),
            high: ranked(((last + 1.0 + width) / 2.0).ceil()),
        })
    }
}

/// The minimum of consecutive samples: clients come and go, a leak stays.
fn blocks(samples: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = samples.len().div_ceil(BLOCKS).max(BLOCK);
    let least = |block: &[(f64, f64)]| {
        let middle = median(&mut block.iter().map(|(x, _)| *x).collect::<Vec<_>>());
        (middle, block.iter().map(|(_, y)| *y).fold(f64::INFINITY, f64::min))
    };
    samples.chunks_exact(size).map(least).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::random::Random;

    /// Something that grows by `growth` each second, plus noise.
    fn series(growth: f64, noise: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(3);
        let one = |second: i32| {
            let x = f64::from(second);
            (x, 30_000.0 + growth * x + random.between(0, noise) as f64)
        };
        (0..200).map(one).collect()
    }

    #[test]
    fn growth_is_found_and_noise_is_not() {
        let grows = Slope::of(&series(5.0, 100)).unwrap();
        assert!(grows.low > 4.0 && grows.high < 6.0, "{grows:?}");
        let rests = Slope::of(&series(0.0, 100)).unwrap();
        assert!(rests.low <= 0.0 && rests.high >= 0.0, "{rests:?}");
        assert!(rests.high - rests.low < 1.0, "{rests:?}");
    }

    #[test]
    fn one_wild_value_does_not_matter() {
        let mut samples = series(5.0, 100);
        samples[17].1 = 1e9;
        samples[90].1 = 0.0;
        let slope = Slope::of(&samples).unwrap();
        assert!((slope.value - 5.0).abs() < 1.0, "{slope:?}");
    }

    #[test]
    fn what_stands_still_grows_by_nothing() {
        let samples: Vec<_> = (0..100).map(|second| (f64::from(second), 12.0)).collect();
        assert_eq!(Slope::of(&samples), Some(Slope { value: 0.0, low: 0.0, high: 0.0 }));
    }

    #[test]
    fn a_handful_of_samples_has_no_slope() {
        assert_eq!(Slope::of(&series(1.0, 1)[..LEAST * BLOCK - 1]), None);
        assert_eq!(Slope::of(&[]), None);
        assert_eq!(Slope::of(&[(1.0, 2.0); 100]), None, "nothing has passed");
    }
}
