//! ApacheBench.

use super::{Failures, latency_of};
use crate::load::units::{after, number};
use crate::load::{LoadResult, Printed, Received};

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let text = &printed.stdout;
    let first = |label| number(after(text, label)?.split_whitespace().next()?);
    let complete = first("Complete requests:")?;
    let seconds = first("Time taken for tests:")?;
    let mut failures = Failures::default();
    let broken = first("Failed requests:").unwrap_or(0.0);
    failures.add(broken, &broken_kinds(text));
    let refused = first("Non-2xx responses:").unwrap_or(0.0);
    failures.add(refused, "not 2xx");
    let list: Vec<_> = text.lines().filter_map(percent_line).collect();
    let latency = latency_of(&list, first("Time per request:"), super::percentile(&list, 100.0));
    let received = first("Total transferred:").map(Received::exact);
    Some(failures.result(complete - broken - refused, seconds, latency).receiving(received))
}

fn broken_kinds(text: &str) -> String {
    let kinds = after(text, "(Connect:").map_or_else(String::new, |kinds| format!(" (Connect: {kinds}"));
    let mut words = format!("failed{kinds}");
    if !kinds.is_empty() && !kinds.contains("Length: 0") {
        words += "; if the answers' lengths differ by nature, tell ab with -l";
    }
    words
}

/// `  99%      7`, in milliseconds.
fn percent_line(line: &str) -> Option<(f64, f64)> {
    let (percent, value) = line.trim().split_once('%')?;
    Some((number(percent)?, number(value.split_whitespace().next()?)?))
}
