//! The table of `hasten bench envoy`.

use hasten_evidence::report::time;
use serde::Deserialize;

use super::{Ratio, Results, Side};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    work: String,
    cert: Option<String>,
    level: Option<u8>,
    /// `full`: larger than Envoy's default on the accelerated side.
    #[serde(default)]
    window: Option<String>,
    size: Option<u64>,
    concurrency: u32,
    pub(super) stock: Side,
    pub(super) hasten: Side,
    cpu_ratio: Ratio,
    wire_bytes_ratio: Option<f64>,
    verdict: String,
}

/// Reports are kept by this name: those of handshakes alone have Envoy's.
pub(super) const PROXY: &str = "proxy";

/// The most that compressed output may grow.
const LARGEST: f64 = 1.01;

impl Row {
    pub(super) fn keeps_sizes(&self) -> bool {
        self.wire_bytes_ratio.is_none_or(|ratio| ratio <= LARGEST)
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. Stock → hasten; the interval holds the ratio in 95 of 100 repetitions.\n\n\
         | work | certificate | page | level | conn. | CPU per operation | stock ÷ hasten | bytes | operations/s | verdict |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---|\n",
        results.circumstances()
    );
    for row in &results.rows {
        let (stock, hasten) = (&row.stock, &row.hasten);
        let none = || "–".to_owned();
        let level =
            if matches!(row.work.as_str(), "gzip" | "round-trip") { "default".to_owned() } else { none() };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} → {} | {:.2} [{:.2}, {:.2}] | {} | {:.0} → {:.0} | {} |\n",
            row.work,
            row.cert.as_ref().map_or_else(none, |cert| cert.to_uppercase()),
            row.size.map_or_else(none, |size| format!("{} KB", size >> 10)),
            row.level.map_or(level, |level| level.to_string())
                + if row.window.is_some() { ", full window" } else { "" },
            row.concurrency,
            time(stock.server_cpu_us_per_op),
            time(hasten.server_cpu_us_per_op),
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            row.wire_bytes_ratio.map_or_else(none, |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0)),
            stock.ops_per_s,
            hasten.ops_per_s,
            row.verdict,
        );
    }
    text
}
