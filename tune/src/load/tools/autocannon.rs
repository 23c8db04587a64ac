//! autocannon: its tables, or the object of `--json`.

use serde_json::{Map, Value};

use super::{Failures, field, object};
use crate::load::units::{before, milliseconds, number, size};
use crate::load::{LoadResult, Printed, Received};
use crate::measure::Latency;

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    if let Some(result) = object(&printed.stdout).as_ref().and_then(json) {
        return Some(result);
    }
    // It prints the tables on standard error.
    text(&printed.stderr).or_else(|| text(&printed.stdout))
}

fn json(object: &Map<String, Value>) -> Option<LoadResult> {
    let number = |path: &[&str]| field(object, path);
    let mut failures = Failures::default();
    failures.add(number(&["non2xx"]).unwrap_or(0.0), "not 2xx");
    failures.add(number(&["errors"]).unwrap_or(0.0), "broken or too late");
    // The connections' last requests are cut off at the end.
    let in_flight = number(&["connections"]).unwrap_or(0.0) * number(&["pipelining"]).unwrap_or(1.0);
    let lost = number(&["requests", "sent"]).unwrap_or(0.0)
        - number(&["requests", "total"]).unwrap_or(0.0)
        - in_flight;
    failures.add(lost - number(&["errors"]).unwrap_or(0.0), "never answered");
    failures.add(number(&["mismatches"]).unwrap_or(0.0), "with another body than expected");
    let latency = |name| number(&["latency", name]);
    let latency = Latency {
        mean: latency("average"),
        p50: latency("p50"),
        p90: latency("p90"),
        p99: latency("p99"),
        max: latency("max"),
    };
    let result = failures.result(number(&["2xx"])?, number(&["duration"])?, latency);
    Some(result.receiving(number(&["throughput", "total"]).map(Received::exact)))
}

fn text(text: &str) -> Option<LoadResult> {
    let summary = text.lines().find(|line| line.contains(" requests in "))?;
    let printed = number(summary.split_whitespace().next()?)?;
    let seconds = milliseconds(summary.split(" requests in ").nth(1)?.split(',').next()?)? / 1e3;
    let rate = row(text, "Req/Sec");
    let samples = after_colon(text, "# of samples").unwrap_or(0.0);
    let mut failures = Failures::default();
    let both = text.lines().find(|line| line.contains(" 2xx responses, "));
    let refused = both.and_then(|line| before(line.split(',').nth(1)?, "non")).unwrap_or(0.0);
    failures.add(refused, "not 2xx");
    let broken = text.lines().find(|line| line.contains(" errors (")).and_then(|line| before(line, "errors"));
    failures.add(broken.unwrap_or(0.0), "broken or too late");
    let connections = text.lines().find_map(|line| before(line, "connections")).unwrap_or(0.0);
    let answered = answered(printed, rate("Avg").and_then(number).unwrap_or(0.0) * samples);
    let lost = printed - step(printed) / 2.0 - answered - connections;
    if lost > printed * 0.05 {
        failures.add(lost.round(), "never answered, as far as rounded numbers tell");
    }
    let right = both.and_then(|line| before(line, "2xx")).unwrap_or(answered);
    let latency = row(text, "Latency");
    let length = |name| milliseconds(latency(name)?);
    let latency = Latency {
        mean: length("Avg"),
        p50: length("50%"),
        p90: length("90%"),
        p99: length("99%"),
        max: length("Max"),
    };
    let received = summary.split(',').nth(1).and_then(|part| size(part.trim().strip_suffix("read")?));
    Some(failures.result(right, seconds, latency).receiving(received))
}

/// The summary says `34k`, and counts requests sent: the mean of all samples is exact, and counts answers.
fn answered(sent: f64, of_samples: f64) -> f64 {
    if of_samples > 0.0 && of_samples <= sent + step(sent) { of_samples } else { sent }
}

/// The rounding step of the summary.
fn step(printed: f64) -> f64 {
    match printed {
        ..1e3 => 1.0,
        1e3..1e6 => 1e3,
        _ => 1e6,
    }
}

/// The cells of the row with this name, by column heading.
fn row<'a>(text: &'a str, name: &'a str) -> impl Fn(&str) -> Option<&'a str> {
    let cells = |line: &'a str| line.split('│').map(str::trim).collect::<Vec<_>>();
    let mut head = Vec::new();
    let mut values = Vec::new();
    for line in text.lines() {
        let line = cells(line);
        match line.get(1) {
            Some(&"Stat") => head = line,
            Some(&first) if first == name => {
                values = line;
                break;
            }
            _ => {}
        }
    }
    move |column| values.get(head.iter().position(|&head| head == column)?).copied()
}

fn after_colon(text: &str, label: &str) -> Option<f64> {
    number(text.lines().find_map(|line| line.trim().strip_prefix(label)?.strip_prefix(':'))?)
}
