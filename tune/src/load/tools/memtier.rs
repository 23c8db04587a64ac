//! memtier_benchmark: the table of all statistics, or the object of `--json-out-file`.

use serde_json::{Map, Value};

use super::{Failures, field, object};
use crate::load::units::{before, number};
use crate::load::{LoadResult, Printed};
use crate::measure::Latency;

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let of_file = printed.file.as_deref().and_then(|text| json(&object(text)?, printed));
    of_file
        .or_else(|| text(printed.file.as_deref().unwrap_or(&printed.stdout), printed))
        .or_else(|| text(&printed.stdout, printed))
}

fn json(object: &Map<String, Value>, printed: &Printed) -> Option<LoadResult> {
    let all = object.get("ALL STATS")?.as_object()?;
    let of_totals = |name: &str| field(all, &["Totals", name]);
    let duration = field(all, &["Runtime", "Total duration"]).map(|ms| ms / 1e3);
    let rate = of_totals("Ops/sec")?;
    let count =
        of_totals("Count").or_else(|| Some(rate * duration?)).or_else(|| performed(&printed.stderr))?;
    let percentile = |name: &str| field(all, &["Totals", "Percentile Latencies", name]);
    let latency = Latency {
        mean: of_totals("Average Latency").or_else(|| of_totals("Latency")),
        p50: percentile("p50.00"),
        p90: percentile("p90.00"),
        p99: percentile("p99.00"),
        max: of_totals("Max Latency"),
    };
    Some(broken(printed).result(count, duration.unwrap_or(count / rate), latency))
}

fn text(text: &str, printed: &Printed) -> Option<LoadResult> {
    let head = text.lines().find(|line| line.starts_with("Type ") && line.contains("Ops/sec"))?;
    let totals = text.lines().find(|line| line.starts_with("Totals "))?;
    // Headings contain single blanks, and are separated by at least two.
    let heads: Vec<_> = head.split("  ").map(str::trim).filter(|head| !head.is_empty()).collect();
    let cells: Vec<_> = totals.split_whitespace().collect();
    let column = |names: &[&str]| {
        let at = heads.iter().position(|head| names.contains(head))?;
        cells.get(at).and_then(|cell| number(cell))
    };
    let rate = column(&["Ops/sec"])?;
    let count = performed(&printed.stderr).or_else(|| performed(text)).or_else(|| planned(text, rate))?;
    let latency = Latency {
        mean: column(&["Avg. Latency", "Latency"]),
        p50: column(&["p50 Latency"]),
        p90: column(&["p90 Latency"]),
        p99: column(&["p99 Latency"]),
        max: None,
    };
    Some(broken(printed).result(count, count / rate, latency))
}

/// From the last line of progress: `[RUN #1 100%,  5 secs]  0 threads:  500000 ops, …`
fn performed(progress: &str) -> Option<f64> {
    progress.split(['\r', '\n']).rev().find_map(|line| before(line.split_once("threads:")?.1, "ops"))
}

/// `4  Threads`, `50  Connections per thread`, `10000  Requests per client` or `10  Seconds`.
fn planned(text: &str, rate: f64) -> Option<f64> {
    let of = |label: &str| {
        text.lines()
            .find_map(|line| number(line.trim().strip_suffix(label)?.strip_suffix(char::is_whitespace)?))
    };
    match of("Requests per client") {
        Some(requests) => Some(of("Threads")? * of("Connections per thread")? * requests),
        None => Some(of("Seconds")? * rate),
    }
}

fn broken(printed: &Printed) -> Failures {
    let mut failures = Failures::default();
    let errors = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("connection error")
            || line.contains("connection dropped")
            || line.contains("handle error response")
    };
    failures.add(printed.stderr.lines().filter(errors).count() as f64, "connection error");
    failures
}
