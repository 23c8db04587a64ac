//! The tables of `hasten bench gzip`.

use hasten_evidence::report::time;
use serde::Deserialize;

use super::bench::Brief;
use super::{Ratio, Results, Side};

/// How much larger than the original's, at the same level, the output may be: over the corpus, and for one file.
const CORPUS_LIMIT: f64 = 1.01;
const FILE_LIMIT: f64 = 1.03;

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    /// In rows of libraries.
    engine: Option<String>,
    work: Option<String>,
    /// In rows of servers.
    server: Option<String>,
    size: Option<String>,
    level: u8,
    pub(super) stock: Side,
    pub(super) hasten: Side,
    cpu_ratio: Ratio,
    wire_bytes_ratio: Option<f64>,
    worst_file: Option<WorstFile>,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct WorstFile {
    name: String,
    wire_bytes_ratio: f64,
}

impl Row {
    /// Whether the accelerated output keeps the rules about its size. Other engines are only for comparison.
    pub(super) fn keeps_sizes(&self) -> bool {
        if self.engine.as_deref() != Some("hasten") {
            return true;
        }
        let worst = self.worst_file.as_ref().map_or(1.0, |file| file.wire_bytes_ratio);
        self.wire_bytes_ratio.unwrap_or(1.0) <= CORPUS_LIMIT && worst <= FILE_LIMIT
    }

    /// The case in the words of the short table; other engines, and streams in pieces, are not in it.
    pub(super) fn brief(&self) -> Option<Brief<'_>> {
        let (order, what, sides) = match (&self.server, self.engine.as_deref(), self.work.as_deref()) {
            (Some(server), ..) => (
                0,
                format!("{server}, gzip, {} at level {}", self.size.as_deref()?, self.level),
                self.sides(|side| time(side.server_cpu_us_per_op)),
            ),
            (None, Some("hasten"), Some("inflate")) => (2, "zlib, inflate".to_owned(), self.speeds()),
            (None, Some("hasten"), Some(work)) if !work.contains(' ') => {
                (1, format!("zlib, {work}, level {}", self.level), self.speeds())
            }
            _ => return None,
        };
        Some(Brief { order, what, sides, ratio: &self.cpu_ratio, verdict: &self.verdict })
    }

    fn speeds(&self) -> [String; 2] {
        self.sides(|side| format!("{} MB/s", side.speed()))
    }

    fn sides(&self, of: impl Fn(&Side) -> String) -> [String; 2] {
        [&self.stock, &self.hasten].map(of)
    }

    fn ratio(&self) -> String {
        let Ratio { value, low, high } = &self.cpu_ratio;
        format!("{value:.2} [{low:.2}, {high:.2}]")
    }

    fn size_change(&self) -> String {
        self.wire_bytes_ratio
            .map_or_else(|| "–".to_owned(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0))
    }

    fn worst(&self) -> String {
        let name =
            |file: &WorstFile| format!("{:+.1} % ({})", (file.wire_bytes_ratio - 1.0) * 100.0, file.name);
        self.worst_file.as_ref().map_or_else(|| "–".to_owned(), name)
    }
}

impl Side {
    fn speed(&self) -> String {
        self.mb_per_cpu_s.map_or_else(|| "–".to_owned(), |speed| format!("{speed:.0}"))
    }

    fn compression(&self) -> String {
        self.compression.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    servers_in_full(results) + &libraries_in_full(results)
}

fn servers_in_full(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. Stock → hasten, or the engine; the interval holds the ratio in 95 of 100 repetitions.\n\n",
        results.circumstances()
    );
    text += "| server | body | level | CPU µs | stock ÷ hasten | bytes | requests/s | p50 ms | p99 ms | verdict |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---|\n";
    for row in &results.rows {
        let (Some(server), Some(size)) = (&row.server, &row.size) else { continue };
        let (stock, hasten) = (&row.stock, &row.hasten);
        let ms = |us: u64| us as f64 / 1000.0;
        text += &format!(
            "| {server} | {size} | {} | {:.0} → {:.0} | {} | {} | {:.0} → {:.0} | {:.2} → {:.2} | {:.2} → {:.2} | {} |\n",
            row.level,
            stock.server_cpu_us_per_op,
            hasten.server_cpu_us_per_op,
            row.ratio(),
            row.size_change(),
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

fn libraries_in_full(results: &Results<Row>) -> String {
    let mut text = "\n| engine | work | level | MB per CPU s | stock ÷ engine | compression | bytes | worst file | verdict |\n\
             |---|---|---:|---:|---:|---:|---:|---|---|\n"
        .to_owned();
    for row in &results.rows {
        let (Some(engine), Some(work)) = (&row.engine, &row.work) else { continue };
        text += &format!(
            "| {engine} | {work} | {} | {} → {} | {} | {} → {} | {} | {} | {} |\n",
            row.level,
            row.stock.speed(),
            row.hasten.speed(),
            row.ratio(),
            row.stock.compression(),
            row.hasten.compression(),
            row.size_change(),
            row.worst(),
            row.verdict,
        );
    }
    text
}
