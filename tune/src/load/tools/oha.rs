//! oha: its text, or the object of `--output-format json` (`--json` of old).

use serde_json::{Map, Value};

use super::{Failures, field, latency_of, object};
use crate::load::units::{after, milliseconds, number, size};
use crate::load::{LoadResult, Printed, Received};
use crate::measure::Latency;

/// Requests in flight when the time was up.
const CUT_OFF: &str = "aborted due to deadline";

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let text = printed.file.as_ref().unwrap_or(&printed.stdout);
    object(text).as_ref().and_then(json).or_else(|| words(text))
}

fn json(object: &Map<String, Value>) -> Option<LoadResult> {
    let counts = |name: &str| {
        let counts = object.get(name).and_then(Value::as_object).into_iter().flatten();
        counts.filter_map(|(name, count)| Some((name.clone(), count.as_f64()?)))
    };
    let percentile = |name: &str| Some(field(object, &["latencyPercentiles", name])? * 1e3);
    let of_summary = |name: &str| Some(field(object, &["summary", name])? * 1e3);
    let latency = Latency {
        mean: of_summary("average"),
        p50: percentile("p50"),
        p90: percentile("p90"),
        p99: percentile("p99"),
        max: of_summary("slowest"),
    };
    let seconds = of_summary("total")? / 1e3;
    let result = result(counts("statusCodeDistribution"), counts("errorDistribution"), seconds, latency)?;
    Some(result.receiving(field(object, &["summary", "totalData"]).map(Received::exact)))
}

fn words(text: &str) -> Option<LoadResult> {
    let total = milliseconds(after(text, "Total:")?)? / 1e3;
    let list: Vec<_> = text.lines().filter_map(percent_line).collect();
    let length = |label| after(text, label).and_then(milliseconds);
    let latency = latency_of(&list, length("Average:"), length("Slowest:"));
    let (statuses, errors) =
        (counted(text, "Status code distribution:"), counted(text, "Error distribution:"));
    Some(result(statuses, errors, total, latency)?.receiving(after(text, "Total data:").and_then(size)))
}

fn result(
    statuses: impl Iterator<Item = (String, f64)>,
    errors: impl Iterator<Item = (String, f64)>,
    seconds: f64,
    latency: Latency,
) -> Option<LoadResult> {
    let mut failures = Failures::default();
    let mut right = None;
    for (status, count) in statuses {
        if status.starts_with('2') {
            right = Some(right.unwrap_or(0.0) + count);
        } else {
            right = right.or(Some(0.0));
            failures.add(count, &format!("status {status}"));
        }
    }
    for (error, count) in errors.filter(|(error, _)| error != CUT_OFF) {
        failures.add(count, &error);
        right = right.or(Some(0.0));
    }
    Some(failures.result(right?, seconds, latency))
}

/// The lines `[200] 11356 responses` and `[8] aborted due to deadline` below a heading: names and counts.
fn counted<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = (String, f64)> + 'a {
    let lines = text.lines().skip_while(move |line| line.trim() != heading).skip(1);
    let lines = lines.take_while(|line| line.trim_start().starts_with('['));
    lines.filter_map(|line| {
        let (inside, behind) = line.trim().strip_prefix('[')?.split_once(']')?;
        match behind.trim().strip_suffix(" responses") {
            Some(count) => Some((inside.to_owned(), number(count)?)),
            None => Some((behind.trim().to_owned(), number(inside)?)),
        }
    })
}

/// `  99.00% in 4.3416 ms`
fn percent_line(line: &str) -> Option<(f64, f64)> {
    let (percent, value) = line.trim().split_once("% in ")?;
    Some((number(percent)?, milliseconds(value)?))
}
