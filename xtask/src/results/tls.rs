//! The tables of `hasten bench tls`.

use serde::Deserialize;

use super::{Ratio, Results, Side};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    server: String,
    cert: String,
    protocol: String,
    concurrency: u32,
    pub(super) stock: Side,
    pub(super) hasten: Side,
    cpu_ratio: Ratio,
    verdict: String,
}

fn find<'a>(rows: &'a [Row], like: &Row, concurrency: u32) -> Option<&'a Row> {
    rows.iter().find(|row| {
        (&row.server, &row.cert, &row.protocol, row.concurrency)
            == (&like.server, &like.cert, &like.protocol, concurrency)
    })
}

/// TLS 1.3 under the highest load measured, and beside it what one connection alone sees.
pub(super) fn summary(results: &Results<Row>) -> String {
    let busiest = results.rows.iter().map(|row| row.concurrency).max().unwrap_or_default();
    let mut text = format!(
        "Server CPU per full TLS 1.3 handshake with one request, stock and behind `hasten run`. {}.\n\n\
         | server | certificate | stock | hasten | **stock ÷ hasten**, {busiest} connections | 1 connection |\n\
         |---|---|---:|---:|---:|---:|\n",
        results.circumstances()
    );
    for row in results.rows.iter().filter(|row| row.concurrency == busiest && row.protocol == "tls1.3") {
        text += &format!(
            "| {} | {} | {:.0} µs | {:.0} µs | **{:.2}** [{:.2}, {:.2}] | {} |\n",
            row.server,
            row.cert.to_uppercase(),
            row.stock.server_cpu_us_per_op,
            row.hasten.server_cpu_us_per_op,
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            find(&results.rows, row, 1).map_or_else(|| "not measured".to_owned(), alone),
        );
    }
    text
}

/// A ratio within the noise is not printed as one.
fn alone(row: &Row) -> String {
    match row.verdict.as_str() {
        "no difference" => row.verdict.clone(),
        _ => format!("{:.2} [{:.2}, {:.2}]", row.cpu_ratio.value, row.cpu_ratio.low, row.cpu_ratio.high),
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. Stock → hasten; the interval holds the ratio in 95 of 100 repetitions.\n\n\
         | server | certificate | protocol | conn. | CPU µs | stock ÷ hasten | handshakes/s | p50 ms | p99 ms | verdict |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---|\n",
        results.circumstances()
    );
    for row in &results.rows {
        let (stock, hasten) = (&row.stock, &row.hasten);
        let ms = |us: u64| us as f64 / 1000.0;
        text += &format!(
            "| {} | {} | {} | {} | {:.0} → {:.0} | {:.2} [{:.2}, {:.2}] | {:.0} → {:.0} | {:.2} → {:.2} | {:.2} → {:.2} | {} |\n",
            row.server,
            row.cert.to_uppercase(),
            row.protocol.replace("tls", "TLS "),
            row.concurrency,
            stock.server_cpu_us_per_op,
            hasten.server_cpu_us_per_op,
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            stock.ops_per_s,
            hasten.ops_per_s,
            ms(stock.p50_us),
            ms(hasten.p50_us),
            ms(stock.p99_us),
            ms(hasten.p99_us),
            row.verdict,
        );
    }
    text
}
