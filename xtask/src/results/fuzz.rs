//! The table of docs/reliability.md on fuzzing: the subject of each target, and how far it got.

use std::fmt::Write;

use serde::Deserialize;

use super::Results;
use crate::error::Error;
use crate::workspace::Workspace;

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    #[serde(flatten)]
    results: Results<Row>,
    /// Per target.
    seconds: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    target: String,
    runs: u64,
    edges: u64,
    inputs: u64,
}

impl Row {
    /// A target that never ran found nothing because it looked nowhere.
    pub(super) fn is_good(&self) -> bool {
        self.runs > 0 && self.edges > 0
    }
}

pub(super) fn table(run: &Run, workspace: &Workspace) -> Result<String, Error> {
    let results = &run.results;
    let day = results.fact("date").split('T').next().unwrap_or_default();
    let mut text = format!(
        "{}, {} cores; {day}; {} s for each target, with AddressSanitizer. No finding.\n\n\
         | target | what is fed | inputs tried | code edges reached | inputs that reach new ones |\n|---|---|---:|---:|---:|\n",
        results.fact("cpu"),
        results.fact("cores"),
        run.seconds
    );
    for Row { target, runs, edges, inputs } in &results.rows {
        let source = workspace.read(&format!("fuzz/fuzz_targets/{target}.rs"))?;
        let _ = writeln!(text, "| `{target}` | {} | {runs} | {edges} | {inputs} |", about(&source));
    }
    Ok(text)
}

/// The first sentence of a file's documentation.
fn about(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ");
    text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_described_by_its_first_sentence() {
        assert_eq!(
            about("//! Any bytes: of a | b,\n//! and more. Much more.\n\nfn main() {}\n"),
            "Any bytes: of a \\| b, and more"
        );
        assert_eq!(about("//! One.\n"), "One");
        assert_eq!(about("fn main() {}\n"), "");
    }

    #[test]
    fn what_did_not_run_is_no_result() {
        let row = |runs, edges| Row { target: "a".to_owned(), runs, edges, inputs: 1 };
        assert!(row(10, 5).is_good());
        assert!(!row(0, 5).is_good() && !row(10, 0).is_good());
    }
}
