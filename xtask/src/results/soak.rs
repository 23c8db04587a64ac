//! The table of docs/reliability.md: endurance of accelerated servers beside stock ones.

use std::fmt::Write;

use serde::Deserialize;

use super::Results;

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) results: Results<Row>,
    minutes: f64,
    seed: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    server: String,
    stock: Side,
    hasten: Side,
}

#[derive(Debug, Deserialize)]
struct Side {
    answers: u64,
    packed: u64,
    full_handshakes: u64,
    resumed_handshakes: u64,
    rude_clients: u64,
    reloads: u64,
    kills: u64,
    failed: u64,
    lost_with_a_killed_worker: u64,
    came_while_there_was_none: u64,
    without_worker_s: f64,
    repeated_after_reload: u64,
    workers_while_steady: Workers,
    /// Absent from reports made before it was measured.
    #[serde(default)]
    allocated_while_steady: Allocated,
    master_while_reloading: Master,
    peak_kib: u64,
    idle_descriptors: Idle,
    old_workers_left: u64,
    batched_operations: u64,
    compressed_chunks: u64,
    held_against_it: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Workers {
    kib_per_minute: Option<Slope>,
    bytes_per_answer: Option<Slope>,
    descriptors_per_minute: Option<Slope>,
}

#[derive(Debug, Default, Deserialize)]
struct Allocated {
    kib_per_minute: Option<Slope>,
}

#[derive(Debug, Deserialize)]
struct Master {
    bytes_per_reload: Option<Slope>,
    descriptors_per_reload: Option<Slope>,
}

#[derive(Debug, Deserialize)]
struct Slope {
    value: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Deserialize)]
struct Idle {
    before: u64,
    after: u64,
}

impl Row {
    /// Whether nothing is held against the accelerated server.
    pub(super) fn is_good(&self) -> bool {
        self.hasten.failed == 0 && self.hasten.held_against_it.is_empty()
    }
}

/// A row of the table: its name, and its value for a side.
type Line = (&'static str, fn(&Side) -> String);

const LINES: [Line; 23] = [
    ("requests answered, every byte compared", |side| side.answers.to_string()),
    ("– packed by gzip", |side| side.packed.to_string()),
    ("full handshakes", |side| side.full_handshakes.to_string()),
    ("resumed handshakes", |side| side.resumed_handshakes.to_string()),
    ("clients that misbehaved", |side| side.rude_clients.to_string()),
    ("reloads", |side| side.reloads.to_string()),
    ("workers killed", |side| side.kills.to_string()),
    ("**requests failed**", |side| format!("**{}**", side.failed)),
    ("lost with a killed worker", |side| side.lost_with_a_killed_worker.to_string()),
    ("came while there was no worker", |side| side.came_while_there_was_none.to_string()),
    ("seconds without a worker", |side| format!("{:.1}", side.without_worker_s)),
    ("repeated, as a reload closed the idle connection", |side| side.repeated_after_reload.to_string()),
    ("workers: memory, KiB per minute", |side| slope(side.workers_while_steady.kib_per_minute.as_ref(), 1.0)),
    ("workers: memory, bytes per answer", |side| {
        slope(side.workers_while_steady.bytes_per_answer.as_ref(), 1.0)
    }),
    ("workers: allocated, KiB per minute", |side| {
        slope(side.allocated_while_steady.kib_per_minute.as_ref(), 1.0)
    }),
    ("workers: descriptors per minute", |side| {
        slope(side.workers_while_steady.descriptors_per_minute.as_ref(), 1.0)
    }),
    ("master: memory, KiB per reload", |side| {
        slope(side.master_while_reloading.bytes_per_reload.as_ref(), 1024.0)
    }),
    ("master: descriptors per reload", |side| {
        slope(side.master_while_reloading.descriptors_per_reload.as_ref(), 1.0)
    }),
    ("largest memory of all processes, MiB", |side| format!("{:.1}", side.peak_kib as f64 / 1024.0)),
    ("descriptors without clients, before → after", |side| {
        format!("{} → {}", side.idle_descriptors.before, side.idle_descriptors.after)
    }),
    ("old workers that did not end", |side| side.old_workers_left.to_string()),
    ("key operations in batches", |side| side.batched_operations.to_string()),
    ("chunks compressed by engines", |side| side.compressed_chunks.to_string()),
];

pub(super) fn table(run: &Run) -> String {
    let mut text =
        format!("{}. {:.0} minutes, seed {}.\n\n", run.results.circumstances(), run.minutes, run.seed);
    let rows = &run.results.rows;
    let heads: Vec<_> =
        rows.iter().map(|row| format!("{} stock | {} hasten", row.server, row.server)).collect();
    let _ = writeln!(text, "| | {} |\n|---|{}", heads.join(" | "), "---:|---:|".repeat(rows.len()));
    for (name, of) in &LINES {
        let cells: Vec<_> =
            rows.iter().map(|row| format!("{} | {}", of(&row.stock), of(&row.hasten))).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

fn slope(slope: Option<&Slope>, unit: f64) -> String {
    // No minus sign before a zero.
    let number = |value: f64| {
        let text = format!("{:.1}", value / unit);
        if text == "-0.0" { "0.0".to_owned() } else { text }
    };
    slope.map_or("–".to_owned(), |Slope { value, low, high }| {
        format!("{} [{}, {}]", number(*value), number(*low), number(*high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(failed: u64, held: &str) -> String {
        format!(
            r#"{{"answers": 1000, "packed": 600, "full_handshakes": 100, "resumed_handshakes": 50, "rude_clients": 9,
                "reloads": 14, "kills": 3, "failed": {failed}, "lost_with_a_killed_worker": 5,
                "came_while_there_was_none": 2, "without_worker_s": 0.44, "repeated_after_reload": 7, "peak_kib": 10240, "old_workers_left": 0,
                "workers_while_steady": {{"kib_per_minute": {{"value": 1.25, "low": -0.01, "high": 2.5}},
                    "bytes_per_answer": null, "descriptors_per_minute": null}},
                "allocated_while_steady": {{"kib_per_minute": {{"value": 0.5, "low": -0.5, "high": 1.5}}}},
                "master_while_reloading": {{"bytes_per_reload": {{"value": 2048, "low": 0, "high": 4096}},
                    "descriptors_per_reload": null}},
                "idle_descriptors": {{"before": 33, "after": 34}}, "batched_operations": 77, "compressed_chunks": 88,
                "held_against_it": [{held}]}}"#
        )
    }

    fn run(hasten: &str) -> Run {
        let text = format!(
            r#"{{"host": {{"cpu": "Example", "cores": "2", "os": "Debian", "kernel": "6.1", "nginx": "1.22.1",
                "openssl": "3.0.15", "date": "2026-01-02T03:04:05Z"}}, "workload": "soak", "complete": true,
                "minutes": 5.0, "seed": 7,
                "rows": [{{"server": "nginx", "stock": {}, "hasten": {hasten}}}]}}"#,
            side(0, "")
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_run_becomes_a_table() {
        let table = table(&run(&side(0, "")));
        for expected in [
            "2026-01-02. 5 minutes, seed 7.\n\n| | nginx stock | nginx hasten |\n|---|---:|---:|\n",
            "| **requests failed** | **0** | **0** |\n",
            "| workers: memory, KiB per minute | 1.2 [0.0, 2.5] | 1.2 [0.0, 2.5] |\n",
            "| workers: allocated, KiB per minute | 0.5 [-0.5, 1.5] | 0.5 [-0.5, 1.5] |\n",
            "| seconds without a worker | 0.4 | 0.4 |\n",
            "| workers: memory, bytes per answer | – | – |\n",
            "| master: memory, KiB per reload | 2.0 [0.0, 4.0] | 2.0 [0.0, 4.0] |\n",
            "| descriptors without clients, before → after | 33 → 34 | 33 → 34 |\n",
        ] {
            assert!(table.contains(expected), "{expected}\nis not in\n{table}");
        }
    }

    #[test]
    fn a_run_with_a_failure_is_no_result() {
        assert!(run(&side(0, "")).results.rows.iter().all(Row::is_good));
        assert!(!run(&side(1, "")).results.rows.iter().all(Row::is_good));
        assert!(!run(&side(0, "\"it grows\"")).results.rows.iter().all(Row::is_good));
    }
}
