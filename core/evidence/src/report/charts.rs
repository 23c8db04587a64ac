//! Geometry of the page's charts; the template only places it.

use serde::Serialize;

use super::{Case, Report, Side};

/// A position along an axis, in per cent, and its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// A logarithmic axis of ratios that always shows 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct RatioAxis {
    low: f64,
    high: f64,
}

impl RatioAxis {
    pub(super) fn of<C: Case>(report: &Report<C>) -> Self {
        let ratios = report.rows.iter().map(|row| row.cpu_ratio);
        let low = ratios.clone().map(|ratio| ratio.low).fold(1.0, f64::min);
        let high = ratios.map(|ratio| ratio.high).fold(1.2, f64::max);
        Self { low: (low * 0.93).max(0.05), high: (high * 1.07).min(100.0) }
    }

    pub(super) fn position(self, ratio: f64) -> f64 {
        let share = (ratio / self.low).ln() / (self.high / self.low).ln();
        round(share.clamp(0.0, 1.0) * 100.0)
    }

    pub(super) fn ticks(self) -> Vec<Tick> {
        const CANDIDATES: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 50.0];
        let shown = CANDIDATES.into_iter().filter(|tick| (self.low..=self.high).contains(tick));
        shown.map(|tick| Tick { at: self.position(tick), label: format!("{tick}×") }).collect()
    }
}

/// Width and height of a latency chart in its own units; the page scales it.
pub(super) const WIDTH: f64 = 320.0;
pub(super) const HEIGHT: f64 = 150.0;

/// Latency curves of both sides over percentiles.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LatencyChart {
    pub(super) stock: String,
    pub(super) hasten: String,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
}

impl LatencyChart {
    pub(super) fn new(stock: &Side, hasten: &Side) -> Self {
        let curves = [&stock.latency, &hasten.latency];
        let top = curves.iter().flat_map(|curve| curve.iter()).map(|&(_, us)| us).max().unwrap_or(1).max(1);
        let step = nice_step(top as f64);
        let top = (top as f64 / step).ceil() * step;
        let path = |curve: &[(f64, u64)]| {
            let place = |&(percentile, us): &(f64, u64)| {
                format!("{:.1},{:.1}", x(percentile), HEIGHT * (1.0 - us as f64 / top))
            };
            curve.iter().map(place).collect::<Vec<_>>().join(" ")
        };
        let y_tick = |index: u32| {
            let us = f64::from(index) * step;
            Tick { at: round(HEIGHT * (1.0 - us / top)), label: duration(us) }
        };
        Self {
            stock: path(&stock.latency),
            hasten: path(&hasten.latency),
            x_ticks: [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9")]
                .map(|(percentile, label)| Tick { at: round(x(percentile)), label: label.to_owned() })
                .to_vec(),
            y_ticks: (0..=(top / step).round() as u32).map(y_tick).collect(),
        }
    }
}

/// Each factor of ten nearer to 100 % takes the same width, so the tail is as visible as the middle.
fn x(percentile: f64) -> f64 {
    let nines = -(1.0 - percentile.min(99.9) / 100.0).log10();
    WIDTH * nines / 3.0
}

/// A step of 1, 2 or 5 times a power of ten that yields two to five ticks.
pub(super) fn nice_step(top: f64) -> f64 {
    let rough = top / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&step| step >= rough)
        .unwrap_or(rough)
}

fn duration(us: f64) -> String {
    match us {
        0.0 => "0".to_owned(),
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 10_000.0 && us % 1000.0 != 0.0 => format!("{:.1} ms", us / 1000.0),
        us if us < 1_000_000.0 => format!("{:.0} ms", us / 1000.0),
        us => format!("{:.1} s", us / 1_000_000.0),
    }
}

pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_divides_gain_from_loss() {
        let axis = RatioAxis { low: 0.5, high: 2.0 };
        assert_eq!(axis.position(1.0), 50.0);
        assert_eq!(axis.position(0.5), 0.0);
        assert_eq!(axis.position(9.0), 100.0);
        assert!(axis.ticks().iter().any(|tick| tick.label == "1×"));
    }

    #[test]
    fn percentiles_spread_by_nines() {
        assert_eq!(x(0.0), 0.0);
        assert!((x(90.0) - WIDTH / 3.0).abs() < 1e-9);
        assert!((x(99.9) - WIDTH).abs() < 1e-9);
        assert!(x(100.0).is_finite());
    }

    #[test]
    fn durations_have_the_unit_that_reads_best() {
        let labels = [0.0, 200.0, 1000.0, 2500.0, 150_000.0, 2_000_000.0].map(duration);
        assert_eq!(labels, ["0", "200 µs", "1 ms", "2.5 ms", "150 ms", "2.0 s"]);
    }

    proptest! {
        #[test]
        fn few_ticks_for_every_height(top in 1.0..1e8f64) {
            let ticks = (top / nice_step(top)).ceil();
            prop_assert!((1.0..=5.0).contains(&ticks), "{ticks} ticks for {top}");
        }
    }
}
