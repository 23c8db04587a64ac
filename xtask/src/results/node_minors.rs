//! The table of docs/core.md on releases of Node.js, of a run of `make node-minors`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use super::Results;

/// The same of every machine: what works does not depend on how fast it is. Names that begin with `node-` are those of benches.
pub(super) const FILE: &str = "core-minors.json";

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    node: String,
    passed: u32,
    /// Names of tests.
    failed: Vec<String>,
}

impl Row {
    pub(super) fn is_good(&self) -> bool {
        self.passed > 0
    }

    /// Its first two numbers, and all of them.
    fn minor(&self) -> (u32, u32) {
        let mut numbers = self.node.split('.').map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

pub(super) fn table(run: &Results<Row>) -> String {
    let day = run.fact("date").split('T').next().unwrap_or_default();
    let mut majors: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
    for row in &run.rows {
        majors.entry(row.minor().0).or_default().push(row);
    }
    let mut text = format!(
        "{day}; of each minor release the last one.\n\n\
         | Node.js | minor releases tested | tests passed, of each | tests failed |\n|---|---|---:|---|\n"
    );
    for (major, mut rows) in majors {
        rows.sort_by_key(|row| row.minor());
        let minors: Vec<_> = rows.iter().map(|row| row.minor().1).collect();
        let (least, most) = rows
            .iter()
            .fold((u32::MAX, 0), |(least, most), row| (least.min(row.passed), most.max(row.passed)));
        let passed = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let failed: Vec<_> = rows
            .iter()
            .filter(|row| !row.failed.is_empty())
            .map(|row| format!("{}: `{}`", row.node, row.failed.join("`, `")))
            .collect();
        let failed = if failed.is_empty() { "none".to_owned() } else { failed.join("; ") };
        let _ = writeln!(text, "| {major} | {}: {} | {passed} | {failed} |", rows.len(), ranges(&minors));
    }
    text
}

/// `0 to 3, 5`.
fn ranges(sorted: &[u32]) -> String {
    let parts = sorted.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{} to {}", run[0], run[run.len() - 1]),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_by_major_with_what_failed() {
        let rows = r#"[{ "node": "24.1.0", "passed": 13, "failed": [] }, { "node": "24.0.2", "passed": 12, "failed": ["a_test"] },
            { "node": "22.10.0", "passed": 13, "failed": [] }, { "node": "24.3.0", "passed": 13, "failed": [] }]"#;
        let run = format!(
            r#"{{ "workload": "node-minors", "complete": true, "host": {{ "date": "2026-01-02T03:04:05Z" }}, "rows": {rows} }}"#
        );
        let text = table(&serde_json::from_str(&run).expect("a run"));
        assert!(text.contains("| 22 | 1: 10 | 13 | none |\n"), "{text}");
        assert!(text.contains("| 24 | 3: 0 to 1, 3 | 12 to 13 | 24.0.2: `a_test` |\n"), "{text}");
    }
}
