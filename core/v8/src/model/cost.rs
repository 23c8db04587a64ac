//! The cost of a scavenge: a fixed part, and a part for each byte that it copies or promotes.

use super::observe::{MB, Observed, median};

/// The cost of a promoted byte, in copied ones. It has been copied once before, and lies next to similar objects.
const PROMOTED: f64 = 0.3;

/// The fixed cost of a scavenge, in MB of survivors. If all scavenges of a trace are alike, it cannot be separated from
/// them, and this is its usual value.
const USUAL_FIXED: f64 = 0.2;

/// How many scavenges of the usual shape are added for each one of the trace: if all are alike, or recorded in tenths
/// of a millisecond, the line through them is uncertain.
const PRIOR: f64 = 1.0;

/// Errors beyond this many typical errors are reduced: a pause during which the machine was busy with something else
/// does not measure work.
const OUTLIER: f64 = 3.0;
const ROUNDS: usize = 12;

/// Milliseconds; the bytes are in MB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub fixed: f64,
    pub per_survivor: f64,
}

impl Cost {
    pub(crate) fn of(observed: &Observed) -> Cost {
        let points: Vec<(f64, f64)> = observed
            .scavenges()
            .map(|step| (work(step.copied, step.promoted), step.pause_ms))
            .filter(|(survivors, pause)| survivors.is_finite() && pause.is_finite())
            .collect();
        let total: f64 = points.iter().map(|(_, pause)| pause).sum();
        let work: f64 = points.iter().map(|(survivors, _)| survivors + USUAL_FIXED).sum();
        if total <= 0.0 {
            return Cost { fixed: 0.0, per_survivor: 0.0 };
        }
        let usual = Cost { fixed: USUAL_FIXED * total / work, per_survivor: total / work };
        let mut cost = usual;
        for _ in 0..ROUNDS {
            cost = fitted(&points, cost, usual);
        }
        cost
    }

    pub(crate) fn pause(&self, copied: f64, promoted: f64) -> f64 {
        self.fixed + self.per_survivor * work(copied, promoted)
    }
}

/// In MB of copied bytes.
fn work(copied: f64, promoted: f64) -> f64 {
    (copied + PROMOTED * promoted) / MB
}

/// One round of least squares, relative to the pause expected so far.
fn fitted(points: &[(f64, f64)], cost: Cost, usual: Cost) -> Cost {
    let expected = |survivors: f64| (cost.fixed + cost.per_survivor * survivors).max(0.01);
    let errors = points.iter().map(|(survivors, pause)| (pause / expected(*survivors) - 1.0).abs()).collect();
    let typical = median(errors).max(0.02);
    let (mut one, mut x, mut xx, mut y, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut add = |weight: f64, survivors: f64, pause: f64| {
        one += weight;
        x += weight * survivors;
        xx += weight * survivors * survivors;
        y += weight * pause;
        xy += weight * survivors * pause;
    };
    for (survivors, pause) in points {
        let error = (pause / expected(*survivors) - 1.0).abs() / typical;
        let trust = (OUTLIER / error.max(OUTLIER)).powi(2);
        add(trust / expected(*survivors).powi(2), *survivors, *pause);
    }
    // The usual shape: scavenges that kept nothing, and scavenges that kept much.
    let most = points.iter().map(|(survivors, _)| *survivors).fold(1.0, f64::max);
    let weight = PRIOR * points.len() as f64 / 2.0;
    for survivors in [0.0, 2.0 * most] {
        let pause = usual.fixed + usual.per_survivor * survivors;
        add(weight / expected(survivors).powi(2), survivors, pause);
    }
    let determinant = one * xx - x * x;
    if determinant.is_nan() || determinant <= 0.0 {
        return usual;
    }
    let per_survivor = ((one * xy - x * y) / determinant).max(0.0);
    let fixed = ((y - per_survivor * x) / one).max(0.0);
    // If the line would start below zero, the survivors account for everything.
    let per_survivor = if fixed > 0.0 { per_survivor } else { xy / xx };
    Cost { fixed, per_survivor }
}
