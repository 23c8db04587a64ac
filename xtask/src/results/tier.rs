//! The table of `hasten bench tier`.

use serde::Deserialize;

use super::{Ratio, Results};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    values: String,
    operation: String,
    pipeline: u32,
    other: Side,
    hasten: Side,
    share: f64,
    target_share: f64,
    cpu_ratio: Ratio,
    time_ratio: Ratio,
    p999_ratio: Ratio,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct Side {
    ops_per_s: f64,
    p999_us: f64,
    cpu_us_per_op: f64,
    rss_mb: f64,
}

pub(super) const TIER: &str = "tier";

impl Row {
    /// Whether something was measured on both sides, and the share was kept.
    pub(super) fn is_good(&self) -> bool {
        let is_kept = (self.share - self.target_share).abs() <= 0.02;
        self.other.ops_per_s > 0.0 && self.hasten.ops_per_s > 0.0 && is_kept
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}, Redis {} with {}. Stock → hasten; an interval holds the ratio in 95 of 100 repetitions, and above 1 hasten needs \
         less. {}\n\n\
         | values | request | at a time | CPU µs | CPU, stock by hasten | time, stock by hasten | p99.9 µs | p99.9, hasten by stock | far | resident MB | verdict |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
        results.place(),
        results.host.get("redis").map_or("", String::as_str),
        results.host.get("allocator").map_or("", String::as_str),
        results.method
    );
    for row in &results.rows {
        let (other, hasten) = (&row.other, &row.hasten);
        let interval = |ratio: &Ratio| format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high);
        text += &format!(
            "| {} | {} | {} | {:.2} → {:.2} | {} | {} | {:.0} → {:.0} | {} | {:.1} % | {:.0} → {:.0} | {} |\n",
            row.values,
            row.operation,
            row.pipeline,
            other.cpu_us_per_op,
            hasten.cpu_us_per_op,
            interval(&row.cpu_ratio),
            interval(&row.time_ratio),
            other.p999_us,
            hasten.p999_us,
            interval(&row.p999_ratio),
            row.share * 100.0,
            other.rss_mb,
            hasten.rss_mb,
            row.verdict
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_not_kept_is_not_kept_as_a_result() {
        let row = |share: f64| -> Row {
            let side = r#"{"ops_per_s": 1.0, "p999_us": 1.0, "cpu_us_per_op": 1.0, "rss_mb": 1.0}"#;
            let ratio = r#"{"value": 1.0, "low": 1.0, "high": 1.0}"#;
            serde_json::from_str(&format!(
                r#"{{"values": "64 B", "operation": "SET", "pipeline": 1, "other": {side}, "hasten": {side}, "share": {share},
                "target_share": 0.75, "cpu_ratio": {ratio}, "time_ratio": {ratio}, "p999_ratio": {ratio}, "verdict": "x"}}"#
            ))
            .expect("a row")
        };
        assert!(row(0.735).is_good() && row(0.765).is_good());
        assert!(!row(0.70).is_good() && !row(0.80).is_good());
    }
}
