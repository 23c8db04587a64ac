//! How long a service must be driven before a request's cost is stable: code is compiled, caches fill.
//!
//! If part of that is measured, it does not just inflate every figure. It is spread over as many requests as a busy
//! machine happened to leave time for, and so it adds noise as well.

use std::time::Duration;

use hasten_evidence::statistics::median;
use serde::{Deserialize, Serialize};

/// Long enough for dozens of requests of a slow service.
pub(super) const SLICE: Duration = Duration::from_millis(500);

/// The observed slices. A service that needs more than half of them never finishes warming up, or not in the time that
/// a session has.
pub(super) const MOST_SLICES: usize = 16;

/// Fewer say nothing.
const FEWEST_SLICES: usize = 8;

/// The number of slices whose mean is taken as the cost at their time.
const WINDOW: usize = 3;

/// How much the cost may still exceed the later one.
const SETTLED: f64 = 0.03;

/// The default if nothing else is known.
const USUAL: Duration = Duration::from_secs(1);

/// A part of a load, and the service's cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) cpu: Duration,
    pub(super) requests: f64,
}

/// The warm-up before each measurement: a time, and a number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    pub seconds: f64,
    pub requests: f64,
}

impl WarmUp {
    pub(super) fn lasting(time: Duration) -> Self {
        Self { seconds: time.as_secs_f64(), requests: 0.0 }
    }

    /// From the course of a fresh start; `limit` is the time that a session has.
    pub(super) fn of(slices: &[Slice], limit: Duration) -> Self {
        let limit = usize::try_from(limit.as_millis() / SLICE.as_millis()).unwrap_or(usize::MAX);
        let count = settled_after(slices).unwrap_or(0).min(limit);
        let seconds = (SLICE * u32::try_from(count).unwrap_or(0)).max(USUAL).as_secs_f64();
        Self { seconds, requests: slices[..count].iter().map(|slice| slice.requests).sum() }
    }

    #[must_use]
    pub fn describe(&self) -> String {
        match self.requests {
            none if none < 1.0 => format!("{} s", self.seconds),
            requests => format!("{} s, and at least {requests} requests", self.seconds),
        }
    }
}

/// The number of slices after which a request costs what it costs in the second half; at most up to there.
fn settled_after(slices: &[Slice]) -> Option<usize> {
    let half = slices.len() / 2;
    let costs: Vec<f64> =
        slices.iter().map(|slice| slice.cpu.as_secs_f64() / slice.requests.max(1.0)).collect();
    if costs.len() < FEWEST_SLICES {
        return None;
    }
    let enough = median(&costs[half..]) * (1.0 + SETTLED);
    let mean = |window: &[f64]| window.iter().sum::<f64>() / WINDOW as f64;
    costs.windows(WINDOW).take(half).position(|window| mean(window) <= enough).or(Some(half))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: Duration = Duration::from_secs(3600);

    /// A service whose requests cost this much, in milliseconds, slice by slice.
    fn slices(costs: &[f64]) -> Vec<Slice> {
        let slice = |cost: &f64| Slice { cpu: Duration::from_secs_f64(cost / 10.0), requests: 100.0 };
        costs.iter().map(slice).collect()
    }

    #[test]
    fn a_service_without_a_compiler_is_warm_after_the_usual_time() {
        let flat = slices(&[3.0, 3.1, 2.9, 3.0, 3.0, 3.1, 3.0, 2.9]);
        assert_eq!(settled_after(&flat), Some(0));
        assert_eq!(WarmUp::of(&flat, NO_LIMIT), WarmUp { seconds: 1.0, requests: 0.0 });
        assert_eq!(WarmUp::of(&flat[..7], NO_LIMIT), WarmUp { seconds: 1.0, requests: 0.0 }, "too few");
    }

    #[test]
    fn code_that_is_still_being_compiled_is_waited_for() {
        let costs: Vec<f64> =
            [vec![12.0, 8.0, 6.0, 4.5, 3.6, 3.1], vec![3.0, 3.1, 2.9, 3.0, 4.0, 3.0]].concat();
        assert_eq!(settled_after(&slices(&costs)), Some(5));
        assert_eq!(WarmUp::of(&slices(&costs), NO_LIMIT), WarmUp { seconds: 2.5, requests: 500.0 });
    }

    #[test]
    fn what_there_is_no_time_for_is_not_waited_for() {
        let falling: Vec<f64> = (0..16).map(|slice| 20.0 * 0.8_f64.powi(slice)).collect();
        assert_eq!(settled_after(&slices(&falling)), Some(8));
        let warm_up = WarmUp::of(&slices(&falling), Duration::from_secs(3));
        assert_eq!(warm_up, WarmUp { seconds: 3.0, requests: 600.0 });
    }
}
