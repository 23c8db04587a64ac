//! Unknown tools: a line of JSON on their standard output, or the user's regular expression.

use regex::Regex;
use serde_json::{Map, Value};

use super::Failures;
use crate::load::units::number;
use crate::load::{LoadResult, Printed, Received};
use crate::measure::Latency;

/// The last line that is an object: `{"requests": 1000, "seconds": 5.0, "failed": 0, "p99_ms": 3.2, "bytes": 5000, "metric": 7}`.
pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let object = printed.stdout.lines().rev().find_map(|line| match serde_json::from_str(line.trim()) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    })?;
    let requests = of(&object, "requests");
    let custom = of(&object, "metric");
    if requests.is_none() && custom.is_none() {
        return None;
    }
    let mut failures = Failures::default();
    failures.add(of(&object, "failed").unwrap_or(0.0), "failed");
    let latency = Latency {
        mean: of(&object, "mean_ms"),
        p50: of(&object, "p50_ms"),
        p90: of(&object, "p90_ms"),
        p99: of(&object, "p99_ms"),
        max: of(&object, "max_ms"),
    };
    let seconds = of(&object, "seconds").unwrap_or(printed.elapsed.as_secs_f64());
    let result = failures.result(requests.unwrap_or(0.0), seconds, latency);
    let received = of(&object, "bytes").map(Received::exact);
    Some(LoadResult { requests, custom, received, ..result })
}

fn of(object: &Map<String, Value>, key: &str) -> Option<f64> {
    object.get(key)?.as_f64()
}

/// The values of the last match's groups.
pub(in crate::load) fn by_regex(metric: &Regex, printed: &Printed) -> Option<LoadResult> {
    let last = |text| metric.captures_iter(text).last();
    let found = last(&printed.stdout).or_else(|| last(&printed.stderr))?;
    let named = |name| found.name(name).and_then(|group| number(group.as_str()));
    let mut unnamed = metric
        .capture_names()
        .enumerate()
        .skip(1)
        .filter(|(_, name)| name.is_none_or(|name| name == "metric"));
    let custom = match unnamed.next() {
        Some((at, _)) => Some(signed(found.get(at)?.as_str())?),
        None => None,
    };
    let requests = named("requests");
    let mut failures = Failures::default();
    failures.add(named("failed").unwrap_or(0.0), "failed");
    let latency = Latency { p50: named("p50_ms"), p99: named("p99_ms"), ..Latency::default() };
    let seconds = named("seconds").unwrap_or(printed.elapsed.as_secs_f64());
    let result = failures.result(requests.unwrap_or(0.0), seconds, latency);
    let received = named("bytes").map(Received::exact);
    Some(LoadResult { requests, custom, received, ..result })
}

/// A user's metric may be negative.
fn signed(text: &str) -> Option<f64> {
    match text.trim().strip_prefix('-') {
        Some(rest) => number(rest).map(|number| -number),
        None => number(text),
    }
}
