//! h2load of nghttp2.

use super::Failures;
use crate::load::units::{after, before, milliseconds, number};
use crate::load::{LoadResult, Printed, Received};
use crate::measure::Latency;

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let text = &printed.stdout;
    let seconds = milliseconds(after(text, "finished in ")?.split(',').next()?)? / 1e3;
    let counts = after(text, "requests: ")?;
    let succeeded = before(counts, "succeeded")?;
    let mut failures = Failures::default();
    // The errored and timed-out ones are among the failed.
    let broken = before(counts, "errored").unwrap_or(0.0);
    failures.add(before(counts, "failed")? - broken, "not 2xx or 3xx");
    failures.add(broken, "broken");
    let head = text.lines().find(|line| line.trim_start().starts_with("min ")).unwrap_or_default();
    let values = after(text, "time for request:").unwrap_or_default();
    let column = |name: &str| {
        let at = head.split_whitespace().position(|head| head == name)?;
        milliseconds(values.split_whitespace().nth(at)?)
    };
    let latency = Latency {
        mean: column("mean"),
        p50: column("median"),
        p90: None,
        p99: column("p99"),
        max: column("max"),
    };
    // `335.94KB (344000) total, …`
    let total = after(text, "traffic:").and_then(|line| line.split(['(', ')']).nth(1)).and_then(number);
    Some(failures.result(succeeded, seconds, latency).receiving(total.map(Received::exact)))
}
