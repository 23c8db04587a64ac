//! The plot of speed and compression: a curve for each engine, a point for each level.

use std::collections::BTreeMap;

use serde::Serialize;

use super::charts::{Tick, nice_step, round};
use super::{Bytes, Case, Report, STOCK};
use crate::statistics::median;

/// In the plot's own units; the page scales it.
const WIDTH: f64 = 470.0;
const HEIGHT: f64 = 330.0;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Frontier {
    width: f64,
    height: f64,
    curves: Vec<Curve>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
}

#[derive(Clone, Debug, Serialize)]
struct Curve {
    name: String,
    /// The index of a page colour.
    style: usize,
    /// Through all points, in SVG syntax.
    line: String,
    points: Vec<Point>,
}

#[derive(Clone, Debug, Serialize)]
struct Point {
    x: f64,
    y: f64,
    /// Only some levels are written beside their point: there is no room for all.
    level: String,
    title: String,
}

/// The measurements, by level.
type Levels = BTreeMap<u8, Vec<Bytes>>;

impl Frontier {
    /// `None` if no row belongs in it.
    pub(super) fn of<C: Case>(report: &Report<C>) -> Option<Self> {
        let series = series(report);
        let all: Vec<Bytes> =
            series.iter().flat_map(|(_, levels)| levels.values().map(|all| middle(all))).collect();
        let axes = Axes::of(&all)?;
        let curves = series.into_iter().enumerate();
        Some(Self {
            width: WIDTH,
            height: HEIGHT,
            curves: curves.map(|(style, (name, levels))| axes.curve(style, name, &levels)).collect(),
            x_ticks: axes.x_ticks(),
            y_ticks: axes.y_ticks(),
        })
    }
}

/// The stock side first, then the report's subject, then the others in order.
fn series<C: Case>(report: &Report<C>) -> Vec<(String, Levels)> {
    let mut series = vec![(STOCK.to_owned(), Levels::new())];
    let claims = report.claims();
    let others = report.rows.iter().filter(|row| !row.case.is_claim());
    for row in claims.chain(others) {
        let Some((name, level)) = row.case.curve() else { continue };
        let (Some(stock), Some(bytes)) = (row.stock.bytes, row.hasten.bytes) else { continue };
        series[0].1.entry(level).or_default().push(stock);
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, levels)) => levels.entry(level).or_default().push(bytes),
            None => series.push((name, Levels::from([(level, vec![bytes])]))),
        }
    }
    series
}

/// The stock side is measured anew beside each engine.
fn middle(all: &[Bytes]) -> Bytes {
    let of = |field: fn(&Bytes) -> f64| median(&all.iter().map(field).collect::<Vec<_>>());
    Bytes {
        wire_bytes_per_op: of(|bytes| bytes.wire_bytes_per_op),
        mb_per_cpu_s: of(|bytes| bytes.mb_per_cpu_s),
        compression: of(|bytes| bytes.compression),
    }
}

/// Speed to the right, logarithmic; compression upwards.
struct Axes {
    slowest: f64,
    fastest: f64,
    least: f64,
    most: f64,
    step: f64,
}

impl Axes {
    fn of(all: &[Bytes]) -> Option<Self> {
        let range = |field: fn(&Bytes) -> f64| {
            let values = all.iter().map(field).filter(|value| value.is_finite() && *value > 0.0);
            values.fold(None, |range: Option<(f64, f64)>, value| {
                let (low, high) = range.unwrap_or((value, value));
                Some((low.min(value), high.max(value)))
            })
        };
        let (slowest, fastest) = range(|bytes| bytes.mb_per_cpu_s)?;
        let (least, most) = range(|bytes| bytes.compression)?;
        let step = nice_step((most - least).max(0.1));
        Some(Self {
            slowest: slowest * 0.8,
            fastest: fastest * 1.25,
            least: (least / step).floor() * step,
            most: ((most / step).floor() + 1.0) * step,
            step,
        })
    }

    fn x(&self, speed: f64) -> f64 {
        round(WIDTH * (speed / self.slowest).ln() / (self.fastest / self.slowest).ln())
    }

    fn y(&self, compression: f64) -> f64 {
        round(HEIGHT * (self.most - compression) / (self.most - self.least))
    }

    fn curve(&self, style: usize, name: String, levels: &Levels) -> Curve {
        let ends = [levels.keys().next().copied(), levels.keys().last().copied(), Some(6)];
        let point = |(&level, all): (&u8, &Vec<Bytes>)| {
            let Bytes { mb_per_cpu_s, compression, .. } = middle(all);
            Point {
                x: self.x(mb_per_cpu_s),
                y: self.y(compression),
                level: if ends.contains(&Some(level)) { level.to_string() } else { String::new() },
                title: format!("{name} level {level}: {mb_per_cpu_s:.0} MB/s, {compression:.2}×"),
            }
        };
        let points: Vec<Point> = levels.iter().map(point).collect();
        let line = points.iter().map(|Point { x, y, .. }| format!("{x},{y}")).collect::<Vec<_>>().join(" ");
        Curve { name, style, line, points }
    }

    fn x_ticks(&self) -> Vec<Tick> {
        let decades = (0..7).map(|power| 10f64.powi(power));
        decades
            .flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * decade))
            .filter(|speed| (self.slowest..=self.fastest).contains(speed))
            .map(|speed| Tick { at: self.x(speed), label: speed.to_string() })
            .collect()
    }

    fn y_ticks(&self) -> Vec<Tick> {
        let count = ((self.most - self.least) / self.step).round() as u32;
        let tick = |index: u32| {
            let compression = self.least + f64::from(index) * self.step;
            let decimals = usize::from(self.step < 1.0) + usize::from(self.step < 0.1);
            Tick { at: self.y(compression), label: format!("{compression:.decimals$}×") }
        };
        (0..=count).map(tick).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mb_per_cpu_s: f64, compression: f64) -> Bytes {
        Bytes { wire_bytes_per_op: 1.0, mb_per_cpu_s, compression }
    }

    #[test]
    fn faster_is_right_and_smaller_is_up() {
        let axes = Axes::of(&[bytes(20.0, 3.0), bytes(800.0, 4.2)]).unwrap();
        assert!(axes.x(20.0) > 0.0 && axes.x(800.0) < WIDTH && axes.x(20.0) < axes.x(800.0));
        assert!(axes.y(4.2) > 0.0 && axes.y(3.0) <= HEIGHT && axes.y(4.2) < axes.y(3.0));
        // Each doubling has the same width.
        let doubling = |speed: f64| axes.x(2.0 * speed) - axes.x(speed);
        assert!((doubling(20.0) - doubling(300.0)).abs() < 0.2);
    }

    #[test]
    fn ticks_lie_in_the_plot_and_read_well() {
        let axes = Axes::of(&[bytes(20.0, 3.0), bytes(800.0, 4.2)]).unwrap();
        let labels: Vec<_> = axes.x_ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["20", "50", "100", "200", "500", "1000"]);
        let (first, last) = (axes.y_ticks().remove(0), axes.y_ticks().pop().unwrap());
        assert_eq!((first.at, last.at), (HEIGHT, 0.0));
        assert_eq!(first.label, "3.0×");
    }

    #[test]
    fn one_point_is_enough_and_none_is_no_plot() {
        assert!(Axes::of(&[]).is_none());
        let axes = Axes::of(&[bytes(100.0, 4.0)]).unwrap();
        assert!((0.0..=WIDTH).contains(&axes.x(100.0)) && (0.0..=HEIGHT).contains(&axes.y(4.0)));
    }
}
