//! The tables of docs/gc-model.md: the predictions of the young generation's model, and what V8 did.

use std::fmt::Write;

use serde::Deserialize;

/// The number of worst predictions shown.
const WORST: usize = 12;

const NVP: &str = "trace-gc-nvp";
const PLAIN: &str = "trace-gc";

#[derive(Debug, Deserialize)]
pub(super) struct Report {
    host: Host,
    nodes: Vec<String>,
    runs: u32,
    real_time: bool,
    cells: Vec<Cell>,
    starts: Vec<Start>,
    loops: Vec<Loop>,
}

#[derive(Debug, Deserialize)]
struct Host {
    cpu: String,
    cores: usize,
    kernel: String,
    date: String,
}

#[derive(Debug, Deserialize)]
struct Cell {
    workload: String,
    node: u32,
    format: String,
    from: u64,
    size: u64,
    scavenges: Pair,
    pause_ms: Pair,
}

#[derive(Debug, Deserialize)]
struct Pair {
    predicted: f64,
    measured: f64,
}

#[derive(Debug, Deserialize)]
struct Start {
    format: String,
    from: Option<u64>,
    cells: usize,
    median_scavenges_error: f64,
    median_pause_error: f64,
    within_interval: f64,
    unfit: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Loop {
    workload: String,
    node: u32,
    memory_limit_mb: Option<u64>,
    from: u64,
    advice: String,
    to: Option<u64>,
    before_ms: f64,
    predicted_ms: Option<f64>,
    low_ms: Option<f64>,
    high_ms: Option<f64>,
    after_ms: Option<f64>,
}

impl Pair {
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    fn text(&self) -> String {
        format!("{:.0} / {:.0}", self.predicted, self.measured)
    }
}

impl Cell {
    fn is_prediction(&self) -> bool {
        self.size != self.from
    }
}

pub(super) fn tables(report: &Report) -> String {
    [summary(report), programs(report), everything(report), worst(report), loops(report)].join("\n")
}

fn summary(report: &Report) -> String {
    let mut text = format!(
        "{}, {} cores, kernel {}; Node {}; the best of {} runs{}; {}.\n\n",
        report.host.cpu,
        report.host.cores,
        report.host.kernel,
        report.nodes.join(", "),
        report.runs,
        if report.real_time { ", with real-time priority" } else { "" },
        report.host.date,
    );
    text += "| trace | taken at | predictions | median error: scavenges | total pause | within the interval | no model |\n";
    text += "|---|---|---:|---:|---:|---:|---:|\n";
    for start in &report.starts {
        let from = start.from.map_or("the release's own size".to_owned(), |from| format!("{from} MB"));
        let _ = writeln!(
            text,
            "| `--{}` | {from} | {} | {} | {} | {} | {} |",
            start.format,
            start.cells,
            percent(start.median_scavenges_error),
            percent(start.median_pause_error),
            percent(start.within_interval),
            start.unfit.len(),
        );
    }
    text
}

/// The quality of each program's predictions, including the one that the model has never seen.
fn programs(report: &Report) -> String {
    let mut text = "Median error by program, from each release's own size:\n\n".to_owned();
    text += "| program | trace | predictions | scavenges | total pause |\n|---|---|---:|---:|---:|\n";
    let mut names: Vec<&str> = report.cells.iter().map(|cell| cell.workload.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    for name in names {
        for format in [NVP, PLAIN] {
            let cells: Vec<&Cell> = report.cells.iter().filter(|cell| cell.is_prediction()).collect();
            let ours = || cells.iter().filter(|cell| cell.workload == name && cell.format == format);
            let median_error =
                |pair: fn(&Cell) -> &Pair| median(ours().map(|cell| pair(cell).error().abs()).collect());
            if let (Some(scavenges), Some(pause)) =
                (median_error(|cell| &cell.scavenges), median_error(|cell| &cell.pause_ms))
            {
                let count = ours().count();
                let _ = writeln!(
                    text,
                    "| {name} | `--{format}` | {count} | {} | {} |",
                    percent(scavenges),
                    percent(pause)
                );
            }
        }
    }
    text
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 0 => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

/// Programs and releases by row, sizes by column; the trace's own size is in italics.
fn everything(report: &Report) -> String {
    let mut text = String::new();
    for (title, pair) in [
        ("Scavenges", (|cell: &Cell| &cell.scavenges) as fn(&Cell) -> &Pair),
        ("Total pause, ms", |cell| &cell.pause_ms),
    ] {
        let _ = writeln!(text, "{title}, predicted / measured, from `--{NVP}` at each release's own size:\n");
        let mut sizes: Vec<u64> = report.cells.iter().map(|cell| cell.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let head: Vec<String> = sizes.iter().map(|size| format!("{size} MB")).collect();
        let _ = writeln!(
            text,
            "| program | Node | {} |\n|---|---|{}",
            head.join(" | "),
            "---:|".repeat(sizes.len())
        );
        for cells in
            report.cells.chunk_by(|a, b| (&a.workload, a.node, &a.format) == (&b.workload, b.node, &b.format))
        {
            if cells[0].format != NVP {
                continue;
            }
            let figures: Vec<String> = cells
                .iter()
                .map(|cell| {
                    if cell.is_prediction() {
                        pair(cell).text()
                    } else {
                        format!("*{:.0}*", pair(cell).measured)
                    }
                })
                .collect();
            let _ = writeln!(text, "| {} | {} | {} |", cells[0].workload, cells[0].node, figures.join(" | "));
        }
        text.push('\n');
    }
    text
}

fn worst(report: &Report) -> String {
    let mut cells: Vec<&Cell> =
        report.cells.iter().filter(|cell| cell.is_prediction() && cell.format == NVP).collect();
    let off = |cell: &Cell| (cell.pause_ms.predicted / cell.pause_ms.measured).ln().abs();
    cells.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let mut text = "The predictions of the pause that are furthest off:\n\n".to_owned();
    text += "| program | Node | from | to | scavenges | error | pause, ms | error |\n|---|---|---:|---:|---:|---:|---:|---:|\n";
    for cell in cells.iter().take(WORST) {
        let _ = writeln!(
            text,
            "| {} | {} | {} MB | {} MB | {} | {} | {} | {} |",
            cell.workload,
            cell.node,
            cell.from,
            cell.size,
            cell.scavenges.text(),
            signed(cell.scavenges.error()),
            cell.pause_ms.text(),
            signed(cell.pause_ms.error()),
        );
    }
    text
}

fn loops(report: &Report) -> String {
    let mut text = "| program | Node | memory | from | advice | pause before, ms | predicted | interval | measured with it | |\n\
                    |---|---|---|---:|---|---:|---:|---:|---:|---|\n"
        .to_owned();
    for one in &report.loops {
        let memory = one.memory_limit_mb.map_or("–".to_owned(), |limit| format!("{limit} MB"));
        let advice = one.to.map_or("nothing".to_owned(), |to| format!("{}: {to} MB", one.advice));
        let rest = match (one.predicted_ms, one.low_ms, one.high_ms, one.after_ms) {
            (Some(predicted), Some(low), Some(high), Some(after)) => {
                let verdict = match after {
                    after if after < low => "better",
                    after if after <= high => "as predicted",
                    after if after < one.before_ms => "less than predicted",
                    _ => "no gain",
                };
                format!("{predicted:.0} | {low:.0} – {high:.0} | {after:.0} | {verdict}")
            }
            _ => "– | – | – | –".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {memory} | {} MB | {advice} | {:.0} | {rest} |",
            one.workload, one.node, one.from, one.before_ms
        );
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn signed(error: f64) -> String {
    format!("{:+.0} %", error * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(format: &str, size: u64, predicted: f64) -> String {
        format!(
            r#"{{"workload": "api", "node": 20, "format": "{format}", "from": 16, "size": {size},
                "scavenges": {{"predicted": {predicted}, "measured": 100}}, "pause_ms": {{"predicted": {predicted}, "measured": 200}}}}"#
        )
    }

    #[test]
    fn a_report_becomes_tables() {
        let cells = [cell(NVP, 1, 300.0), cell(NVP, 16, 100.0), cell("trace-gc", 1, 999.0)].join(",");
        let text = format!(
            r#"{{"host": {{"cpu": "Example", "cores": 2, "kernel": "6.1", "date": "2026-01-02"}}, "nodes": ["20.1.0"], "runs": 2,
                "real_time": true, "cells": [{cells}],
                "starts": [{{"format": "{NVP}", "from": null, "cells": 96, "median_scavenges_error": 0.061,
                    "median_pause_error": 0.154, "within_interval": 0.82, "unfit": ["why"]}}],
                "loops": [{{"workload": "api", "node": 20, "memory_limit_mb": 512, "from": 1, "advice": "container-default",
                    "to": 16, "before_ms": 600, "predicted_ms": 300, "low_ms": 200, "high_ms": 400, "after_ms": 350}}]}}"#
        );
        let tables = tables(&serde_json::from_str(&text).unwrap());
        for expected in [
            "| `--trace-gc-nvp` | the release's own size | 96 | 6 % | 15 % | 82 % | 1 |\n",
            "| api | 20 | 300 / 100 | *100* |\n",
            "| api | 20 | 16 MB | 1 MB | 300 / 100 | +200 % | 300 / 200 | +50 % |\n",
            "| api | 20 | 512 MB | 1 MB | container-default: 16 MB | 600 | 300 | 200 – 400 | 350 | as predicted |\n",
            "the best of 2 runs, with real-time priority; 2026-01-02.",
        ] {
            assert!(tables.contains(expected), "{expected}\nis not in\n{tables}");
        }
        assert!(!tables.contains("999"), "the tables of cells are of one format:\n{tables}");
    }
}
