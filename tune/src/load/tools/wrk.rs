//! wrk and wrk2.

use super::{Failures, latency_of};
use crate::load::units::{after, before, milliseconds, number, size};
use crate::load::{LoadResult, Printed};

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let text = &printed.stdout;
    let summary = text.lines().find(|line| line.contains(" requests in "))?;
    let total = before(summary, "requests")?;
    let seconds = milliseconds(summary.split(" requests in ").nth(1)?.split(',').next()?)? / 1e3;
    let mut failures = Failures::default();
    let refused = after(text, "Non-2xx or 3xx responses:").and_then(number).unwrap_or(0.0);
    failures.add(refused, "not 2xx or 3xx");
    // Such requests are not included in the total.
    for error in after(text, "Socket errors:").unwrap_or_default().split(',') {
        if let Some((kind, count)) = error.trim().split_once(' ') {
            failures.add(number(count).unwrap_or(0.0), &format!("socket error: {kind}"));
        }
    }
    let list: Vec<_> = text.lines().filter_map(percent_line).collect();
    // Mean, deviation, maximum.
    let mut thread = after(text, "Latency  ").unwrap_or_default().split_whitespace().map(milliseconds);
    let mean = thread.next().flatten();
    let latency = latency_of(&list, mean, thread.nth(1).flatten());
    let received = summary.split(',').nth(1).and_then(|part| size(part.trim().strip_suffix("read")?));
    Some(failures.result(total - refused, seconds, latency).receiving(received))
}

/// ` 99%    6.60ms`, or ` 99.000%    6.60ms` of wrk2.
fn percent_line(line: &str) -> Option<(f64, f64)> {
    let (percent, value) = line.trim().split_once('%')?;
    Some((number(percent)?, milliseconds(value)?))
}
