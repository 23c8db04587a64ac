//! The table of docs/gc.md: how much time and memory it takes to read traces.

use std::fmt::Write;

use serde::Deserialize;

use super::Results;

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    #[serde(flatten)]
    results: Results<Row>,
    /// The size of each trace, unpacked.
    megabytes: u64,
    /// Per trace.
    runs: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    trace: String,
    lines: u64,
    collections: u64,
    /// The shortest, the median, the longest.
    wall_s: [f64; 3],
    cpu_s: [f64; 3],
    peak_mb: f64,
}

impl Row {
    /// Being fast proves nothing if nothing was read.
    pub(super) fn is_good(&self) -> bool {
        self.collections > 0
            && self.lines >= self.collections
            && self.wall_s.is_sorted()
            && self.wall_s[0] > 0.0
    }
}

pub(super) fn table(run: &Run) -> String {
    let results = &run.results;
    let day = results.fact("date").split('T').next().unwrap_or_default();
    let mut text = format!(
        "{}, {} cores, {}, kernel {}; {day}. Each trace has {} MB, unpacked, and was read {} times: median [shortest, longest].\n\n\
         | trace | lines | collections | wall time, s | CPU time, s | resident memory at most, MB |\n\
         |---|---:|---:|---:|---:|---:|\n",
        results.fact("cpu"),
        results.fact("cores"),
        results.fact("os"),
        results.fact("kernel"),
        run.megabytes,
        run.runs,
    );
    for Row { trace, lines, collections, wall_s, cpu_s, peak_mb } in &results.rows {
        let spread = |[least, median, most]: &[f64; 3]| format!("{median:.1} [{least:.1}, {most:.1}]");
        let _ = writeln!(
            text,
            "| {trace} | {lines} | {collections} | {} | {} | {peak_mb:.0} |",
            spread(wall_s),
            spread(cpu_s)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall_s: &str, collections: u64) -> Run {
        let json = format!(
            r#"{{"workload":"gc-read","complete":true,"megabytes":1000,"runs":7,
                "host":{{"cpu":"A CPU","cores":"2","os":"Debian","kernel":"6.1","date":"2026-11-23T01:02:03Z"}},
                "rows":[{{"trace":"`--trace-gc`","lines":50,"collections":{collections},"wall_s":{wall_s},
                "cpu_s":[2.5,3.04,3.1],"peak_mb":16.6}}]}}"#
        );
        serde_json::from_str(&json).expect("a report")
    }

    #[test]
    fn a_row_has_its_spread_and_its_memory() {
        let table = table(&run("[1.52, 2.0, 2.26]", 40));
        assert!(
            table.starts_with(
                "A CPU, 2 cores, Debian, kernel 6.1; 2026-11-23. Each trace has 1000 MB, unpacked"
            ),
            "{table}"
        );
        assert!(
            table.ends_with("| `--trace-gc` | 50 | 40 | 2.0 [1.5, 2.3] | 3.0 [2.5, 3.1] | 17 |\n"),
            "{table}"
        );
    }

    #[test]
    fn what_read_nothing_is_no_result() {
        let is_good = |wall_s, collections| run(wall_s, collections).results.rows.iter().all(Row::is_good);
        assert!(is_good("[1.0, 2.0, 3.0]", 40));
        assert!(!is_good("[1.0, 2.0, 3.0]", 0) && !is_good("[1.0, 2.0, 3.0]", 51));
        assert!(!is_good("[0.0, 2.0, 3.0]", 40) && !is_good("[3.0, 2.0, 3.0]", 40));
    }
}
