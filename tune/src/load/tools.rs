//! Parsers for each tool's output. They accept any text: if numbers are missing there is no result.

pub(super) mod ab;
pub(super) mod autocannon;
pub(super) mod db_bench;
pub(super) mod h2load;
pub(super) mod k6;
pub(super) mod memtier;
pub(super) mod oha;
pub(super) mod other;
pub(super) mod redis_benchmark;
pub(super) mod wrk;

use serde_json::{Map, Value};

use super::{LoadResult, Received};
use crate::measure::Latency;

/// Counts of failures with their names, ready to become part of a result.
#[derive(Debug, Default)]
struct Failures {
    total: f64,
    kinds: Vec<String>,
}

impl Failures {
    fn add(&mut self, count: f64, what: &str) {
        if count > 0.0 {
            self.total += count;
            self.kinds.push(format!("{count} × {what}"));
        }
    }

    fn result(self, requests: f64, seconds: f64, latency: Latency) -> LoadResult {
        LoadResult {
            requests: Some(requests.max(0.0)),
            seconds,
            // The conversion truncates and saturates.
            failed: self.total as u64,
            failures: self.kinds,
            latency: (latency != Latency::default()).then_some(latency),
            custom: None,
            received: None,
        }
    }
}

impl LoadResult {
    fn receiving(self, received: Option<Received>) -> Self {
        Self { received, ..self }
    }
}

impl Received {
    /// A number of bytes printed without rounding.
    fn exact(bytes: f64) -> Self {
        Self { bytes, rounding: 0.0 }
    }
}

/// The JSON object that is the text, or begins one of its lines.
fn object(text: &str) -> Option<Map<String, Value>> {
    let from =
        if text.trim_start().starts_with('{') { text.find('{') } else { text.find("\n{").map(|at| at + 1) };
    let mut values = serde_json::Deserializer::from_str(&text[from?..]).into_iter::<Value>();
    match values.next()? {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// The number at the end of a path of keys.
fn field(object: &Map<String, Value>, path: &[&str]) -> Option<f64> {
    let (last, way) = path.split_last()?;
    let object = way.iter().try_fold(object, |object, key| object.get(*key)?.as_object())?;
    object.get(*last)?.as_f64()
}

/// A percentile's value in a list of `(percentile, value)`.
fn percentile(list: &[(f64, f64)], wanted: f64) -> Option<f64> {
    list.iter().find(|(at, _)| (at - wanted).abs() < 1e-6).map(|&(_, value)| value)
}

fn latency_of(list: &[(f64, f64)], mean: Option<f64>, max: Option<f64>) -> Latency {
    Latency {
        mean,
        p50: percentile(list, 50.0),
        p90: percentile(list, 90.0),
        p99: percentile(list, 99.0),
        max,
    }
}
