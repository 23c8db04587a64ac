//! Whether answers take more bytes on the wire with a candidate than without.
//!
//! Bytes do not depend on the machine's momentary speed. So all measurements of the candidate are compared with all of
//! the service as it is, whenever they were made: dozens of them show a body's random variation.

use hasten_evidence::paired::Estimate;
use hasten_evidence::statistics::median;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Trial;
use crate::measure::{Bytes, Disqualified, Outcome};
use crate::space::Candidate;

/// The error probability of calling a setting too large. Tested after each round, for each setting.
const LEVEL: f64 = 0.001;

/// Bytes per request with a candidate, divided by those without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// With a 95 % interval that includes the load's rounding.
    pub ratio: Estimate,
    /// Its lower bound, exceeded in all but one of a thousand cases.
    pub least: f64,
}

impl Growth {
    /// `None` if bytes were not counted, or not often enough.
    pub(super) fn of(trials: &[Trial], candidate: &Candidate) -> Option<Self> {
        let counter = trials.iter().find_map(counted)?.by;
        let of = |is_baseline: bool| -> Vec<Bytes> {
            let wanted = trials.iter().filter(|trial| match is_baseline {
                true => trial.candidate.set().next().is_none(),
                false => trial.candidate == *candidate,
            });
            wanted.filter_map(counted).filter(|bytes| bytes.by == counter).collect()
        };
        Self::between(&of(true), &of(false))
    }

    fn between(without: &[Bytes], with: &[Bytes]) -> Option<Self> {
        let freedom = (without.len() + with.len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let (before, after) = (logs(without), logs(with));
        if before.is_empty() || after.is_empty() {
            return None;
        }
        let spread = ((squares(&before) + squares(&after)) / freedom as f64).sqrt();
        let error = spread * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
        let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
        let rounding = rounding(without) + rounding(with);
        let change = mean(&after) - mean(&before);
        let reach = |probability: f64| student.inverse_cdf(probability) * error + rounding;
        let ratio = Estimate {
            value: change.exp(),
            low: (change - reach(0.975)).exp(),
            high: (change + reach(0.975)).exp(),
        };
        Some(Self { ratio, least: (change - reach(1.0 - LEVEL)).exp() })
    }

    /// Why a candidate is out; noise alone is not a reason.
    pub(super) fn passes(&self, limit: Option<f64>) -> Result<(), Disqualified> {
        let Some(limit) = limit.filter(|limit| self.least > 1.0 + limit) else { return Ok(()) };
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "−");
        let Estimate { value, low, high } = self.ratio;
        let what = format!(
            "answers take {} bytes on the wire (95 % interval {} to {}), and --max-bytes is {:.1} %",
            percent(value),
            percent(low),
            percent(high),
            limit * 100.0
        );
        Err(Disqualified::Constraint { what })
    }
}

/// How many bytes a request of the service as it is takes, and what counted them.
#[must_use]
pub fn bytes_of_baseline(trials: &[Trial]) -> Option<Bytes> {
    let stock = trials.iter().filter(|trial| trial.candidate.set().next().is_none());
    let counted: Vec<Bytes> = stock.filter_map(counted).collect();
    let values: Vec<f64> = counted.iter().map(|bytes| bytes.per_request).collect();
    counted.first().map(|first| Bytes { per_request: median(&values), ..*first })
}

fn counted(trial: &Trial) -> Option<Bytes> {
    match &trial.outcome {
        Outcome::Measured(measured) => measured.bytes.filter(|bytes| bytes.per_request > 0.0),
        Outcome::Disqualified(_) => None,
    }
}

fn logs(all: &[Bytes]) -> Vec<f64> {
    all.iter().map(|bytes| bytes.per_request.ln()).collect()
}

fn rounding(all: &[Bytes]) -> f64 {
    all.iter().map(|bytes| bytes.rounding).fold(0.0, f64::max).ln_1p()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| (value - mean(values)).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Counter;

    fn bytes(sizes: &[f64], rounding: f64) -> Vec<Bytes> {
        sizes.iter().map(|&per_request| Bytes { per_request, rounding, by: Counter::Load }).collect()
    }

    fn growth(without: &[f64], with: &[f64], rounding: f64) -> Growth {
        Growth::between(&bytes(without, rounding), &bytes(with, rounding)).unwrap()
    }

    const LIMIT: Option<f64> = Some(0.01);

    #[test]
    fn bodies_that_are_always_the_same_need_one_look() {
        let grown = growth(&[1000.0; 8], &[1080.0], 0.0);
        assert!((grown.ratio.value - 1.08).abs() < 1e-9 && (grown.ratio.low - 1.08).abs() < 1e-9);
        let why = grown.passes(LIMIT).unwrap_err().to_string();
        assert!(why.contains("+8.0 % bytes") && why.contains("--max-bytes is 1.0 %"), "{why}");
        assert_eq!(growth(&[1000.0; 8], &[1009.0], 0.0).passes(LIMIT), Ok(()));
        assert_eq!(grown.passes(None), Ok(()));
        assert_eq!(grown.passes(Some(0.10)), Ok(()));
    }

    #[test]
    fn noise_fails_nobody_and_hides_nobody_for_long() {
        let noisy = [1000.0, 1060.0, 940.0, 1020.0, 985.0, 1045.0, 960.0, 990.0];
        assert_eq!(growth(&noisy, &[1080.0], 0.0).passes(LIMIT), Ok(()));
        let grown: Vec<f64> = noisy.map(|size| size * 1.2).to_vec();
        assert!(growth(&noisy, &grown, 0.0).passes(LIMIT).is_err());
    }

    #[test]
    fn what_a_tool_rounds_away_is_a_part_of_the_interval() {
        let coarse = growth(&[21e3; 8], &[22e3; 4], 0.5 / 21.0);
        assert!(coarse.ratio.low < 1.01 && coarse.ratio.high > 1.09, "{coarse:?}");
        assert_eq!(coarse.passes(LIMIT), Ok(()));
        assert!(growth(&[21e3; 8], &[24e3; 4], 0.5 / 21.0).passes(LIMIT).is_err());
    }

    #[test]
    fn without_a_count_nothing_is_said() {
        assert_eq!(Growth::between(&bytes(&[1000.0; 4], 0.0), &[]), None);
        assert_eq!(Growth::between(&[], &bytes(&[1000.0; 4], 0.0)), None);
        assert_eq!(Growth::between(&bytes(&[1.0], 0.0), &bytes(&[1.0], 0.0)), None);
    }
}
