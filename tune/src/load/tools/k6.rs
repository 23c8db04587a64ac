//! k6: the summary at its end, or the object of `--summary-export` or of a script's `handleSummary`.

use serde_json::{Map, Value};

use super::{Failures, field, object};
use crate::load::units::{milliseconds, number, size};
use crate::load::{LoadResult, Printed, Received};
use crate::measure::Latency;

const FAILED: &str = "http_req_failed";

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let of_file = printed.file.as_deref().and_then(object);
    let object = of_file.or_else(|| object(&printed.stdout));
    object.as_ref().and_then(json).or_else(|| text(&printed.stdout))
}

fn json(object: &Map<String, Value>) -> Option<LoadResult> {
    // `handleSummary` has the numbers of a metric in `values`, `--summary-export` in the metric itself.
    let number = |metric: &str, name: &str| {
        let of_script = field(object, &["metrics", metric, "values", name]);
        of_script.or_else(|| field(object, &["metrics", metric, name]))
    };
    let count = number("http_reqs", "count")?;
    let of_test = field(object, &["state", "testRunDurationMs"]).map(|ms| ms / 1e3);
    let seconds = of_test.or_else(|| Some(count / number("http_reqs", "rate")?))?;
    let duration = |name| number("http_req_duration", name);
    let latency = Latency {
        mean: duration("avg"),
        p50: duration("med"),
        p90: duration("p(90)"),
        p99: duration("p(99)"),
        max: duration("max"),
    };
    // For this metric a request that failed counts as passed: it asks whether a request failed.
    let result = result(count, number(FAILED, "passes").unwrap_or(0.0), seconds, latency);
    Some(result.receiving(number("data_received", "count").map(Received::exact)))
}

fn text(text: &str) -> Option<LoadResult> {
    let requests = metric(text, "http_reqs")?;
    let mut words = requests.split_whitespace();
    let count = number(words.next()?)?;
    let rate = number(words.next()?.strip_suffix("/s")?)?;
    let durations = metric(text, "http_req_duration").unwrap_or_default();
    let duration = |name: &str| {
        let value =
            durations.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        milliseconds(value)
    };
    let latency = Latency {
        mean: duration("avg"),
        p50: duration("med"),
        p90: duration("p(90)"),
        p99: duration("p(99)"),
        max: duration("max"),
    };
    let failed = metric(text, FAILED).and_then(failed).unwrap_or(0.0);
    // `1.5 MB 148 kB/s`
    let received = metric(text, "data_received").and_then(|values| {
        let mut words = values.split_whitespace();
        size(&format!("{} {}", words.next()?, words.next()?))
    });
    Some(result(count, failed, count / rate, latency).receiving(received))
}

fn result(count: f64, failed: f64, seconds: f64, latency: Latency) -> LoadResult {
    let mut failures = Failures::default();
    failures.add(failed, FAILED);
    failures.result(count - failed, seconds, latency)
}

/// `0.00%  ✓ 0  ✗ 12345`, or `0.00%  0 out of 12345` from version 1 on.
fn failed(line: &str) -> Option<f64> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words.iter().position(|&word| word == "✓") {
        Some(at) => number(words.get(at + 1)?),
        None => number(words.get(words.iter().position(|&word| word == "out")?.checked_sub(1)?)?),
    }
}

/// The text after the dots of a metric.
fn metric<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let of_line = |line: &'a str| {
        let rest = line.trim_start().trim_start_matches(['✓', '✗', ' ']).strip_prefix(name)?;
        rest.starts_with('.').then(|| rest.split_once(':')).flatten()
    };
    text.lines().find_map(of_line).map(|(_, values)| values.trim())
}
