//! The tables of `hasten bench readcache` and `hasten bench wal`.

use serde::Deserialize;

use super::{Ratio, Results};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    case: String,
    threads: u32,
    against: String,
    other: Side,
    hasten: Side,
    time_ratio: Ratio,
    p99_ratio: Ratio,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct Side {
    ops_per_s: f64,
    p99_us: f64,
    cpu_us_per_op: f64,
}

pub(super) const READ_CACHE: &str = "readcache";
pub(super) const WAL: &str = "wal";

impl Row {
    /// Whether something was measured on both sides.
    pub(super) fn is_good(&self) -> bool {
        self.other.ops_per_s > 0.0 && self.hasten.ops_per_s > 0.0
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. The other side → hasten; an interval holds the ratio in 95 of 100 repetitions. {}\n\n\
         | work | threads | against | operations/s | times as fast | p99 | p99, share left | CPU µs/operation | verdict |\n\
         |---|---:|---|---:|---:|---:|---:|---:|---|\n",
        results.circumstances(),
        results.method
    );
    for row in &results.rows {
        let (other, hasten) = (&row.other, &row.hasten);
        let interval = |ratio: &Ratio| format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high);
        text += &format!(
            "| {} | {} | {} | {:.0} → {:.0} | {} | {} → {} | {} | {:.0} → {:.0} | {} |\n",
            row.case,
            row.threads,
            row.against,
            other.ops_per_s,
            hasten.ops_per_s,
            interval(&row.time_ratio),
            time(other.p99_us),
            time(hasten.p99_us),
            interval(&row.p99_ratio),
            other.cpu_us_per_op,
            hasten.cpu_us_per_op,
            row.verdict
        );
    }
    text
}

fn time(us: f64) -> String {
    if us < 1000.0 { format!("{us:.0} µs") } else { format!("{:.1} ms", us / 1000.0) }
}
