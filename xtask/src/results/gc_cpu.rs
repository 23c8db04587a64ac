//! The table of docs/gc-recorder.md on what a CPU profile costs, of runs of `plugins/node/bench/cpu.mjs`.

use std::fmt::Write;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    host: Host,
    time: String,
    pairs: u32,
    found: Vec<Release>,
}

#[derive(Debug, Deserialize)]
struct Host {
    cpu: String,
    cores: u32,
    /// Processes that wanted a processor at the end of the run.
    load: f64,
}

#[derive(Debug, Deserialize)]
struct Release {
    release: u32,
    overhead: Vec<Overhead>,
    starts: Vec<Start>,
}

#[derive(Debug, Deserialize)]
struct Overhead {
    interval_us: u32,
    median: f64,
    interval: [f64; 2],
}

#[derive(Debug, Deserialize)]
struct Start {
    heap_bytes: u64,
    profiled_cpu_ms: f64,
}

pub(super) fn table(run: &Run) -> String {
    let Host { cpu, cores, load } = &run.host;
    let day = run.time.split('T').next().unwrap_or_default();
    let mut text = format!(
        "{cpu}, {cores} cores, load {load:.0}; {day}; {} pairs, median and its interval at 95 %.\n\n|",
        run.pairs
    );
    for one in &run.found {
        let _ = write!(text, " | Node {}", one.release);
    }
    let _ = writeln!(text, " |\n|---|{}", "---:|".repeat(run.found.len()));
    rows(&mut text, &run.found, |one| &one.overhead, Overhead::title, Overhead::cell);
    rows(&mut text, &run.found, |one| &one.starts, Start::title, Start::cell);
    text
}

/// A row for each entry of the first release; the others have the same.
fn rows<T>(
    text: &mut String,
    found: &[Release],
    entries: impl Fn(&Release) -> &[T],
    title: impl Fn(&T) -> String,
    cell: impl Fn(&T) -> String,
) {
    for (at, first) in found.first().map(&entries).unwrap_or_default().iter().enumerate() {
        let cells: Vec<_> =
            found.iter().map(|one| entries(one).get(at).map_or("–".to_owned(), &cell)).collect();
        let _ = writeln!(text, "| {} | {} |", title(first), cells.join(" | "));
    }
}

impl Overhead {
    fn title(&self) -> String {
        let interval = match self.interval_us {
            us if us.is_multiple_of(1000) => format!("{} ms", us / 1000),
            us => format!("{us} µs"),
        };
        format!("CPU time with a sample each {interval}, of that without")
    }

    fn cell(&self) -> String {
        let [low, high] = self.interval;
        let verdict = if (low..=high).contains(&1.0) { ": no difference" } else { "" };
        format!("{:.2} [{low:.2}, {high:.2}]{verdict}", self.median)
    }
}

impl Start {
    fn title(&self) -> String {
        format!("CPU time of the start, heap of {:.0} MB", self.heap_bytes as f64 / 1e6)
    }

    fn cell(&self) -> String {
        format!("{:.0} ms", self.profiled_cpu_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"workload": "gc-cpu", "host": {"cpu": "Some CPU", "cores": 2, "load": 0.1}, "time": "2026-01-02T03:04:05Z", "pairs": 30,
        "found": [{"release": 20, "overhead": [{"interval_us": 1000, "median": 1.01, "interval": [0.99, 1.02]},
        {"interval_us": 100, "median": 1.2, "interval": [1.1, 1.3]}], "starts": [{"heap_bytes": 7000000, "profiled_cpu_ms": 8.6}]}]}"#;

    #[test]
    fn an_interval_with_one_in_it_is_no_difference() {
        let text = table(&serde_json::from_str(RUN).expect("a run"));
        assert!(
            text.contains(
                "| CPU time with a sample each 1 ms, of that without | 1.01 [0.99, 1.02]: no difference |\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("| CPU time with a sample each 100 µs, of that without | 1.20 [1.10, 1.30] |\n"),
            "{text}"
        );
        assert!(text.contains("| CPU time of the start, heap of 7 MB | 9 ms |\n"), "{text}");
        assert!(text.starts_with("Some CPU, 2 cores, load 0; 2026-01-02; 30 pairs"), "{text}");
    }
}
