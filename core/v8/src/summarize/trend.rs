//! Whether what survives full collections grows: possibly a leak.
//!
//! A heap also grows while a program starts, while caches fill, and by chance. So the beginning is left out, the line
//! must rise with certainty and by an amount that matters, and it must not flatten: [`suspicion`] has the details.

use crate::summary::Trend;

/// The maximum number of points; beyond it every second one is dropped, and so on.
const POINTS: usize = 1024;

/// Start-up, when programs load and warm up: this share of the time, and at least this many full collections.
const STARTUP: f64 = 0.15;
const FIRST: usize = 2;

/// A line needs this many points to have an interval at all, and this many to raise suspicion.
const LINE: usize = 3;
const SUSPICION: usize = 8;

/// For less than a minute, a growing heap is a program at work.
const MINUTE_MS: f64 = 60_000.0;

/// Growth that matters: in bytes, and as a share of the heap.
const GROWTH_BYTES: f64 = (4 << 20) as f64;
const GROWTH_SHARE: f64 = 0.05;

const HOUR_MS: f64 = 3_600_000.0;

/// The heap after full collections: milliseconds and bytes.
#[derive(Default)]
pub(super) struct AfterFull {
    points: Vec<(f64, u64)>,
    /// One of this many collections is kept: a power of two.
    stride: u32,
    count: u64,
}

impl AfterFull {
    pub(super) fn push(&mut self, at_ms: f64, used: u64) {
        if self.count.is_multiple_of(1 << self.stride) {
            self.points.push((at_ms, used));
        }
        self.count += 1;
        if self.points.len() > POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride += 1;
        }
    }

    pub(super) fn points(self) -> Vec<(f64, u64)> {
        self.points
    }

    pub(super) fn trend(&self, first_ms: f64, last_ms: f64) -> Option<Trend> {
        let start_ms = first_ms + (last_ms - first_ms) * STARTUP;
        let early = self.points.iter().take_while(|(at_ms, _)| *at_ms < start_ms).count();
        let points = self.points.get(early.max(FIRST)..)?;
        let line = Line::through(points)?;
        let hourly = |slope: f64| slope * HOUR_MS;
        let margin = line.margin();
        Some(Trend {
            bytes_per_hour: hourly(line.slope),
            low: hourly(line.slope - margin),
            high: hourly(line.slope + margin),
            collections: points.len() as u64 * (1 << self.stride),
            is_suspicious: suspicion(points, &line),
        })
    }
}

/// All must hold: enough collections over enough time; a slope certainly above zero; growth that matters; a minimum in
/// each third above that of the previous third; and a second half that certainly rises at no less than a third of the
/// pace, because a cache that is filling slows down.
fn suspicion(points: &[(f64, u64)], line: &Line) -> bool {
    let growth = line.slope * line.span_ms;
    let least = |points: &[(f64, u64)]| points.iter().map(|(_, used)| *used).min().unwrap_or(0);
    let thirds: Vec<u64> = points.chunks(points.len().div_ceil(3)).map(least).collect();
    let second_half = Line::through(&points[points.len() / 2..]);
    points.len() >= SUSPICION
        && line.span_ms >= MINUTE_MS
        && line.slope - line.margin() > 0.0
        && growth >= GROWTH_BYTES.max(GROWTH_SHARE * line.mean)
        && thirds.is_sorted_by(|a, b| a < b)
        && second_half.is_some_and(|half| half.slope - half.margin() > 0.0 && half.slope >= line.slope / 3.0)
}

/// Least squares.
struct Line {
    slope: f64,
    mean: f64,
    span_ms: f64,
    /// The standard error of the slope.
    error: f64,
    freedom: f64,
}

impl Line {
    fn through(points: &[(f64, u64)]) -> Option<Self> {
        if points.len() < LINE {
            return None;
        }
        let n = points.len() as f64;
        let time = points.iter().map(|(at_ms, _)| at_ms).sum::<f64>() / n;
        let mean = points.iter().map(|(_, used)| *used as f64).sum::<f64>() / n;
        let centred = || points.iter().map(|(at_ms, used)| (at_ms - time, *used as f64 - mean));
        let squares: f64 = centred().map(|(t, _)| t * t).sum();
        if squares <= 0.0 {
            return None;
        }
        let slope = centred().map(|(t, used)| t * used).sum::<f64>() / squares;
        let residuals: Vec<f64> = centred().map(|(t, used)| used - slope * t).collect();
        let freedom = n - 2.0;
        let variance = residuals.iter().map(|residual| residual * residual).sum::<f64>() / freedom;
        let error = (variance * inflation(&residuals) / squares).sqrt();
        let span_ms = points[points.len() - 1].0 - points[0].0;
        Some(Self { slope, mean, span_ms, error, freedom })
    }

    /// Half the width of the 95 % interval.
    fn margin(&self) -> f64 {
        self.error * student(self.freedom)
    }
}

/// Successive heaps resemble each other, so n of them say less than n independent ones would: by (1 + r) / (1 − r),
/// with r the correlation of neighbours.
fn inflation(residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = if squares > 0.0 { (products / squares).clamp(0.0, 0.95) } else { 0.0 };
    (1.0 + correlation) / (1.0 - correlation)
}

/// The quantile of Student's distribution at 97.5 %.
fn student(freedom: f64) -> f64 {
    const FEW: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom {
        ..1.5 => FEW[0],
        1.5..10.5 => FEW[freedom.round() as usize - 1],
        // Cornish and Fisher's expansion: exact to three digits from here on.
        _ => 1.96 + 2.3724 / freedom + 2.8225 / (freedom * freedom),
    }
}
