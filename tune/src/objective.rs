//! What to reduce, and what must not grow.
//!
//! An objective is an expression over measured values; its value is a cost, so lower is better.

use std::fmt;
use std::str::FromStr;

use crate::measure::{Disqualified, Measurement};

mod parse;

use parse::parse;

/// A cost of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    text: String,
    expression: Expression,
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Number(f64),
    Metric(Metric),
    Negated(Box<Self>),
    Combined(Operator, Box<Self>, Box<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    By,
}

/// The numbers in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    CpuUs,
    Throughput,
    MeanMs,
    P50Ms,
    P90Ms,
    P99Ms,
    RssMb,
    Custom,
}

/// The user's limits; a candidate that exceeds one is out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Constraints {
    pub max_rss_bytes: Option<u64>,
    pub max_p99_ms: Option<f64>,
    /// How much larger an answer may become on the wire, as a share. One measurement is not enough: the session
    /// considers all.
    pub max_growth: Option<f64>,
}

/// Why an objective cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the objective `{text}` is not understood: {what} at position {position}\n  {text}\n  {:>position$}",
    "^"
)]
pub struct ObjectiveError {
    pub text: String,
    /// Counted from 1, in characters.
    pub position: usize,
    pub what: String,
}

/// Why a measurement has no cost.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoCost {
    #[error("the load does not tell {}, which the objective needs", .0.name())]
    Missing(Metric),
    #[error("the objective is {value} for the service, and costs are compared as ratios: it must be above 0")]
    NotPositive { value: f64 },
}

impl Objective {
    /// CPU time for each request.
    #[must_use]
    pub fn cpu() -> Self {
        Self::of("cpu", Expression::Metric(Metric::CpuUs))
    }

    /// # Errors
    ///
    /// The measurement lacks a value that the objective uses, or yields nothing that a ratio can be formed of.
    pub fn cost(&self, measurement: &Measurement) -> Result<f64, NoCost> {
        let value = self.expression.value(measurement).map_err(NoCost::Missing)?;
        if value > 0.0 && value.is_finite() { Ok(value) } else { Err(NoCost::NotPositive { value }) }
    }

    /// As the user wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The unit of its value; empty for a user's expression.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.text.as_str() {
            "cpu" => "µs",
            "throughput" => "s",
            "p99" => "ms",
            "memory" => "MB",
            _ => "",
        }
    }

    /// The quantity that decreases or increases, for a sentence: `12 % less CPU per request`.
    #[must_use]
    pub fn noun(&self) -> &str {
        match self.text.as_str() {
            "cpu" => "CPU per request",
            "throughput" => "time per request",
            "p99" => "p99 latency",
            "memory" => "memory",
            text => text,
        }
    }

    /// All metrics that it uses.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Vec::new();
        self.expression.collect(&mut metrics);
        metrics
    }

    fn of(text: &str, expression: Expression) -> Self {
        Self { text: text.to_owned(), expression }
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let metric = |metric| Ok(Self::of(text, Expression::Metric(metric)));
        match text {
            "cpu" => metric(Metric::CpuUs),
            "p99" => metric(Metric::P99Ms),
            "memory" => metric(Metric::RssMb),
            "throughput" => {
                let one = Box::new(Expression::Number(1.0));
                let by = Box::new(Expression::Metric(Metric::Throughput));
                Ok(Self::of(text, Expression::Combined(Operator::By, one, by)))
            }
            _ => parse(text).map(|expression| Self::of(text, expression)),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    fn value(&self, measurement: &Measurement) -> Result<f64, Metric> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Metric(metric) => metric.of(measurement).ok_or(*metric)?,
            Self::Negated(inner) => -inner.value(measurement)?,
            Self::Combined(operator, left, right) => {
                operator.apply(left.value(measurement)?, right.value(measurement)?)
            }
        })
    }

    fn collect(&self, metrics: &mut Vec<Metric>) {
        match self {
            Self::Number(_) => {}
            Self::Metric(metric) => metrics.push(*metric),
            Self::Negated(inner) => inner.collect(metrics),
            Self::Combined(_, left, right) => {
                left.collect(metrics);
                right.collect(metrics);
            }
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::By => left / right,
        }
    }
}

impl Metric {
    pub const ALL: [Self; 8] = [
        Self::CpuUs,
        Self::Throughput,
        Self::MeanMs,
        Self::P50Ms,
        Self::P90Ms,
        Self::P99Ms,
        Self::RssMb,
        Self::Custom,
    ];

    /// Its name in an expression.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuUs => "cpu_us",
            Self::Throughput => "throughput",
            Self::MeanMs => "mean_ms",
            Self::P50Ms => "p50_ms",
            Self::P90Ms => "p90_ms",
            Self::P99Ms => "p99_ms",
            Self::RssMb => "rss_mb",
            Self::Custom => "metric",
        }
    }

    /// Its value in a measurement, if present.
    #[must_use]
    pub fn of(self, measurement: &Measurement) -> Option<f64> {
        let latency = measurement.latency.unwrap_or_default();
        // A load that does not report requests has none.
        let requests = Some(measurement.requests).filter(|requests| *requests > 0.0);
        match self {
            Self::CpuUs => requests.map(|requests| measurement.cpu_seconds * 1e6 / requests),
            Self::Throughput => requests.map(|requests| requests / measurement.seconds),
            Self::MeanMs => latency.mean,
            Self::P50Ms => latency.p50,
            Self::P90Ms => latency.p90,
            Self::P99Ms => latency.p99,
            Self::RssMb => Some(measurement.peak_rss_bytes as f64 / 1e6),
            Self::Custom => measurement.metric,
        }
    }
}

impl Constraints {
    /// # Errors
    ///
    /// The limit that the measurement exceeds.
    pub fn check(&self, measurement: &Measurement) -> Result<(), Disqualified> {
        let broken = |what| Err(Disqualified::Constraint { what });
        if let Some(limit) = self.max_rss_bytes
            && measurement.peak_rss_bytes > limit
        {
            let mb = |bytes: u64| bytes as f64 / 1e6;
            let used = mb(measurement.peak_rss_bytes);
            return broken(format!("it used {used:.0} MB of memory, and --max-rss is {:.0} MB", mb(limit)));
        }
        let p99 = measurement.latency.and_then(|latency| latency.p99);
        if let (Some(limit), Some(p99)) = (self.max_p99_ms, p99)
            && p99 > limit
        {
            return broken(format!("its p99 was {p99:.1} ms, and --max-p99 is {limit} ms"));
        }
        Ok(())
    }

    /// The metrics with a limit, so that a load that does not report them can be refused.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let rss = self.max_rss_bytes.map(|_| Metric::RssMb);
        let p99 = self.max_p99_ms.map(|_| Metric::P99Ms);
        rss.into_iter().chain(p99).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Latency;

    fn measurement() -> Measurement {
        Measurement {
            requests: 1000.0,
            seconds: 2.0,
            cpu_seconds: 0.5,
            peak_rss_bytes: 64_000_000,
            latency: Some(Latency { p50: Some(4.0), p99: Some(20.0), ..Latency::default() }),
            metric: None,
            bytes: None,
        }
    }

    fn cost(text: &str) -> f64 {
        text.parse::<Objective>().unwrap().cost(&measurement()).unwrap()
    }

    #[test]
    fn the_names_are_costs() {
        assert_eq!(cost("cpu"), 500.0);
        assert_eq!(cost("throughput"), 1.0 / 500.0);
        assert_eq!(cost("p99"), 20.0);
        assert_eq!(cost("memory"), 64.0);
    }

    #[test]
    fn expressions_follow_the_rules_of_arithmetic() {
        assert_eq!(cost("cpu_us + 2 * rss_mb"), 628.0);
        assert_eq!(cost("(cpu_us + 2) * rss_mb"), 502.0 * 64.0);
        assert_eq!(cost("100 - 20 - 10"), 70.0);
        assert_eq!(cost("64 / 4 / 2"), 8.0);
        assert_eq!(cost("-2 * -p50_ms"), 8.0);
        assert_eq!(cost("1e3/throughput"), 2.0);
    }

    #[test]
    fn what_the_load_does_not_tell_is_named() {
        let objective: Objective = "cpu_us * mean_ms".parse().unwrap();
        assert_eq!(objective.cost(&measurement()), Err(NoCost::Missing(Metric::MeanMs)));
        let objective: Objective = "metric".parse().unwrap();
        assert!(objective.cost(&measurement()).unwrap_err().to_string().contains("metric"));
    }

    #[test]
    fn a_cost_without_a_ratio_is_refused() {
        let objective: Objective = "cpu_us - 500".parse().unwrap();
        assert_eq!(objective.cost(&measurement()), Err(NoCost::NotPositive { value: 0.0 }));
        let idle = Measurement { requests: 0.0, ..measurement() };
        assert!(Objective::cpu().cost(&idle).is_err());
    }

    #[test]
    fn limits_are_kept_or_named() {
        let limits =
            Constraints { max_rss_bytes: Some(64_000_000), max_p99_ms: Some(20.0), max_growth: None };
        assert_eq!(limits.check(&measurement()), Ok(()));
        let tight = Constraints { max_rss_bytes: Some(63_999_999), ..limits };
        assert!(tight.check(&measurement()).unwrap_err().to_string().contains("--max-rss"));
        let tight = Constraints { max_p99_ms: Some(19.9), ..limits };
        assert!(tight.check(&measurement()).unwrap_err().to_string().contains("--max-p99"));
    }
}
