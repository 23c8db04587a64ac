//! The tables of `hasten bench node`, and of its tunings.

use hasten_evidence::report::time;
use serde::Deserialize;

use super::bench::Brief;
use super::{Ratio, Results, Side};

/// The report of tunings is kept beside the other one.
pub(super) const TUNINGS: &str = "node-tunings";

/// So is a report of Ghost alone, which not every machine can run.
pub(super) const GHOST: &str = "node-ghost";

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    workload: String,
    node: String,
    tuning: Option<String>,
    #[serde(default)]
    advice: Vec<String>,
    pub(super) stock: Side,
    pub(super) hasten: Side,
    cpu_ratio: Ratio,
    verdict: String,
}

impl Row {
    pub(super) fn is_ghost(&self) -> bool {
        self.workload.starts_with("ghost-")
    }

    /// The case in the words of the short table.
    pub(super) fn brief(&self) -> Option<Brief<'_>> {
        Some(Brief {
            order: 0,
            what: match self.advice.as_slice() {
                [] => format!("Node.js {}, {}", self.node, self.workload),
                advice => format!("Node.js {}, {}, with `{}`", self.node, self.workload, advice.join(" ")),
            },
            sides: [&self.stock, &self.hasten].map(|side| time(side.server_cpu_us_per_op)),
            ratio: &self.cpu_ratio,
            verdict: &self.verdict,
        })
    }

    fn ratio(&self) -> String {
        let Ratio { value, low, high } = &self.cpu_ratio;
        format!("**{value:.2}** [{low:.2}, {high:.2}]")
    }

    fn cpu(&self) -> String {
        let (stock, hasten) = (self.stock.server_cpu_us_per_op, self.hasten.server_cpu_us_per_op);
        format!("{} → {}", time(stock), time(hasten))
    }

    fn rss(&self) -> String {
        let megabytes = |side: &Side| side.rss_mb.map_or_else(|| "–".to_owned(), |rss| format!("{rss:.0}"));
        format!("{} → {}", megabytes(&self.stock), megabytes(&self.hasten))
    }

    fn advice(&self) -> String {
        if self.advice.is_empty() { "–".to_owned() } else { format!("`{}`", self.advice.join(" ")) }
    }
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    if results.workload == TUNINGS { tunings(results) } else { whole(results) }
}

fn whole(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. Stock → hasten; the interval holds the ratio in 95 of 100 repetitions. Latency is that of a request, or \
         the life of a process.\n\n\
         | workload | Node.js | advice | CPU | stock ÷ hasten | RSS MB | p50 ms | p99 ms | verdict |\n\
         |---|---|---|---:|---:|---:|---:|---:|---|\n",
        results.place()
    );
    for row in &results.rows {
        let Row { workload, node, stock, hasten, verdict, .. } = row;
        let ms = |us: u64| us as f64 / 1000.0;
        text += &format!(
            "| {workload} | {node} | {} | {} | {} | {} | {:.1} → {:.1} | {:.1} → {:.1} | {verdict} |\n",
            row.advice(),
            row.cpu(),
            row.ratio(),
            row.rss(),
            ms(stock.p50_us),
            ms(hasten.p50_us),
            ms(stock.p99_us),
            ms(hasten.p99_us),
        );
    }
    text
}

fn tunings(results: &Results<Row>) -> String {
    let mut text = format!(
        "Tunings one by one, without `hasten run` except for the bytecode cache. {}. Without → with; of \
         short-builtin-calls, which is on by default, off → on.\n\n\
         | tuning | workload | Node.js | CPU | without ÷ with | RSS MB | verdict |\n|---|---|---|---:|---:|---:|---|\n",
        results.place()
    );
    for row in &results.rows {
        let Row { workload, node, verdict, .. } = row;
        let tuning = row.tuning.as_deref().unwrap_or_default();
        let tuning = [&[tuning.to_owned()], &row.advice[..]].concat().join(" ");
        text += &format!(
            "| {tuning} | {workload} | {node} | {} | {} | {} | {verdict} |\n",
            row.cpu(),
            row.ratio(),
            row.rss()
        );
    }
    text
}

impl<R> Results<R> {
    /// Machine and day; each row names its program.
    pub(super) fn place(&self) -> String {
        let day = self.fact("date").split('T').next().unwrap_or_default();
        let [cpu, cores, os, kernel] = ["cpu", "cores", "os", "kernel"].map(|name| self.fact(name));
        format!("{cpu}, {cores} cores, {os}, kernel {kernel}; {day}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(workload: &str, row: &str) -> Results<Row> {
        serde_json::from_str(&text(workload, row)).unwrap()
    }

    fn text(workload: &str, row: &str) -> String {
        let side = |cpu: f64, rss: f64| {
            format!(
                r#"{{"server_cpu_us_per_op": {cpu}, "ops_per_s": 9, "p50_us": 9000, "p99_us": 20000, "failures": 0, "rss_mb": {rss}}}"#
            )
        };
        format!(
            r#"{{"host": {{"cpu": "Example", "cores": "2", "os": "Debian", "kernel": "6.1", "date": "2026-01-02T03:04:05Z"}},
                "workload": "{workload}", "complete": true, "rows": [{{{row}, "node": "20.20.2",
                "stock": {}, "hasten": {}, "cpu_ratio": {{"value": 1.66, "low": 1.6, "high": 1.7}}, "verdict": "faster"}}]}}"#,
            side(380_000.0, 90.0),
            side(229_000.0, 95.4)
        )
    }

    #[test]
    fn ghost_alone_does_not_replace_the_other_workloads() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        for (workload, kept) in
            [("json-api", "node-example-2-cores"), ("ghost-http", "node-ghost-example-2-cores")]
        {
            std::fs::write(&source, text("node", &format!(r#""workload": "{workload}""#))).unwrap();
            super::super::keep(&source, directory.path()).unwrap();
            assert!(directory.path().join(format!("{kept}.json")).is_file(), "{workload}");
        }
        assert_eq!(super::super::load_all::<Row>("node", directory.path()).unwrap().len(), 2);
    }

    #[test]
    fn a_row_says_what_it_gains_and_what_it_takes() {
        let row = r#""workload": "faas-startup", "advice": ["--max-semi-space-size=32"]"#;
        let results = report("node", row);
        let everything = everything(&results);
        assert!(everything.contains("Example, 2 cores, Debian, kernel 6.1; 2026-01-02."));
        assert!(everything.contains("| 380 ms → 229 ms | **1.66** [1.60, 1.70] |"), "{everything}");
        assert!(everything.contains("| `--max-semi-space-size=32` |"), "{everything}");
        assert!(everything.contains("| 90 → 95 | 9.0 → 9.0 | 20.0 → 20.0 | faster |"), "{everything}");
    }

    #[test]
    fn tunings_have_a_table_of_their_own() {
        let results = report(TUNINGS, r#""workload": "json-api", "tuning": "huge-pages""#);
        let everything = everything(&results);
        assert!(everything.contains("| huge-pages | json-api | 20.20.2 | 380 ms → 229 ms |"), "{everything}");
    }
}
