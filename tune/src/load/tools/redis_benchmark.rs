//! redis-benchmark and valkey-benchmark: the full text, `-q` or `--csv`. Several tests are one load.

use super::Failures;
use crate::load::recognise::option;
use crate::load::units::{before, number};
use crate::load::{LoadResult, Printed};
use crate::measure::Latency;

/// Without `-n`.
const DEFAULT_REQUESTS: f64 = 100_000.0;

/// One of the requested tests.
struct Test {
    requests: f64,
    per_second: f64,
    latency: Latency,
}

pub(in crate::load) fn parse(words: &[String], printed: &Printed) -> Option<LoadResult> {
    // Progress overwrites itself.
    let text = printed.stdout.replace('\r', "\n");
    let asked = match option(words, &["-n"]) {
        Some(asked) => number(asked)?,
        None => DEFAULT_REQUESTS,
    };
    let mut tests = csv(&text, asked);
    if tests.is_empty() {
        tests = full(&text);
    }
    if tests.is_empty() {
        tests = text.lines().filter_map(|line| quiet(line, asked)).collect();
    }
    let mut failures = Failures::default();
    let errors = printed.stderr.lines().chain(text.lines()).filter(|line| line.contains("Error from server"));
    failures.add(errors.count() as f64, "error from server");
    together(&tests, failures)
}

/// The tests run one after another. Percentiles cannot be added: those of the slowest test represent all.
fn together(tests: &[Test], failures: Failures) -> Option<LoadResult> {
    let requests: f64 = tests.iter().map(|test| test.requests).sum();
    let seconds: f64 = tests.iter().map(|test| test.requests / test.per_second).sum();
    let weighted = tests.iter().map(|test| Some(test.latency.mean? * test.requests)).sum::<Option<f64>>();
    let worst =
        |of: fn(&Latency) -> Option<f64>| tests.iter().filter_map(|test| of(&test.latency)).reduce(f64::max);
    let latency = Latency {
        mean: weighted.map(|sum| sum / requests),
        p50: worst(|latency| latency.p50),
        p90: None,
        p99: worst(|latency| latency.p99),
        max: worst(|latency| latency.max),
    };
    (!tests.is_empty()).then(|| failures.result(requests, seconds, latency))
}

/// `"SET","52631.58","0.108",…` below a line of column names, which old versions do not print.
fn csv(text: &str, requests: f64) -> Vec<Test> {
    let mut head: Vec<&str> = Vec::new();
    let mut tests = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('"')) {
        let cells: Vec<_> = line.split("\",\"").map(|cell| cell.trim().trim_matches('"')).collect();
        if cells.first() == Some(&"test") {
            head = cells;
            continue;
        }
        let column = |name: &str| number(cells.get(head.iter().position(|head| *head == name)?)?);
        let Some(per_second) = cells.get(1).and_then(|cell| number(cell)) else { continue };
        let latency = Latency {
            mean: column("avg_latency_ms"),
            p50: column("p50_latency_ms"),
            p90: None,
            p99: column("p99_latency_ms"),
            max: column("max_latency_ms"),
        };
        tests.push(Test { requests, per_second, latency });
    }
    tests
}

/// `  5000 requests completed in 0.09 seconds`, and a summary some lines below.
fn full(text: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut requests = None;
    let mut per_second = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.contains(" requests completed in ") {
            requests = before(line, "requests");
        } else if let Some(rate) = before(line, "requests").filter(|_| line.ends_with("requests per second"))
        {
            per_second = Some(rate);
            // Before version 6.2 this is the last line of a test.
            if !line.contains("throughput summary") {
                tests.extend(requests.take().map(|requests| Test {
                    requests,
                    per_second: rate,
                    latency: Latency::default(),
                }));
            }
        } else if line.split_whitespace().eq(["avg", "min", "p50", "p95", "p99", "max"]) {
            let values: Vec<_> = lines.next().unwrap_or_default().split_whitespace().map(number).collect();
            let at = |index: usize| values.get(index).copied().flatten();
            let latency = Latency { mean: at(0), p50: at(2), p90: None, p99: at(4), max: at(5) };
            if let (Some(requests), Some(per_second)) = (requests.take(), per_second.take()) {
                tests.push(Test { requests, per_second, latency });
            }
        }
    }
    tests
}

/// `SET: 121951.22 requests per second, p50=0.039 msec`
fn quiet(line: &str, requests: f64) -> Option<Test> {
    let (rate, rest) = line.rsplit_once(": ")?.1.split_once(" requests per second")?;
    let p50 = rest
        .trim()
        .trim_start_matches([',', ' '])
        .strip_prefix("p50=")
        .and_then(|rest| rest.split_whitespace().next());
    let latency = Latency { p50: p50.and_then(number), ..Latency::default() };
    Some(Test { requests, per_second: number(rate)?, latency })
}
