//! The table of docs/core.md on what reading a core file costs, of runs of the example `cost` of hasten-corefile.

use std::fmt::Write;

use serde::Deserialize;

use super::Results;

pub(super) const CORE_COST: &str = "core-cost";

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    what: String,
    objects: u64,
    used_bytes: u64,
    file_bytes: u64,
    /// Of the export, if there is one.
    written_bytes: u64,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Run {
    cpu_s: f64,
    wall_s: f64,
    peak_bytes: u64,
    /// Without the pages of the file, which can be dropped at any time.
    own_bytes: u64,
}

impl Row {
    pub(super) fn is_good(&self) -> bool {
        !self.runs.is_empty() && self.objects > 0
    }
}

pub(super) fn table(results: &Results<Row>) -> String {
    let gb = |bytes: u64| format!("{:.2} GB", bytes as f64 / 1e9);
    let Some(first) = results.rows.first() else { return String::new() };
    let mut text = format!(
        "{}, {} cores; {}. A heap of {:.1} million objects, {} used, a core file of {}; least and most of {} runs.\n\n\
         | | CPU, s | by the clock, s | memory at most | of it not the file's |\n|---|---:|---:|---:|---:|\n",
        results.fact("cpu"),
        results.fact("cores"),
        results.fact("date").split('T').next().unwrap_or_default(),
        first.objects as f64 / 1e6,
        gb(first.used_bytes),
        gb(first.file_bytes),
        first.runs.len(),
    );
    for Row { what, written_bytes, runs, .. } in &results.rows {
        let span = |of: fn(&Run) -> f64| {
            let (least, most) = runs
                .iter()
                .map(of)
                .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
            format!("{least:.1} to {most:.1}")
        };
        let most = |of: fn(&Run) -> u64| gb(runs.iter().map(of).max().unwrap_or(0));
        let written = if *written_bytes > 0 { format!(", {}", gb(*written_bytes)) } else { String::new() };
        let _ = writeln!(
            text,
            "| {what}{written} | {} | {} | {} | {} |",
            span(|run| run.cpu_s),
            span(|run| run.wall_s),
            most(|run| run.peak_bytes),
            most(|run| run.own_bytes)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_from_least_to_most() {
        let run = r#"{ "workload": "core-cost", "complete": true, "host": { "cpu": "Some CPU", "cores": "2", "date": "2026-01-02T" }, "rows": [
            { "what": "an export", "objects": 18400000, "used_bytes": 800000000, "file_bytes": 880000000, "written_bytes": 1300000000, "runs": [
            { "cpu_s": 12.34, "wall_s": 13, "peak_bytes": 1200000000, "own_bytes": 900000000 },
            { "cpu_s": 11, "wall_s": 15, "peak_bytes": 1250000000, "own_bytes": 800000000 }] }] }"#;
        let text = table(&serde_json::from_str(run).expect("a run"));
        assert!(
            text.contains(
                "18.4 million objects, 0.80 GB used, a core file of 0.88 GB; least and most of 2 runs"
            ),
            "{text}"
        );
        assert!(
            text.contains("| an export, 1.30 GB | 11.0 to 12.3 | 13.0 to 15.0 | 1.25 GB | 0.90 GB |\n"),
            "{text}"
        );
    }
}
