//! Workloads that are whole processes: they start, work, and end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::error::NodeError;
use super::recipe::Recipe;
use crate::drive::Outcome;
use crate::duel::{Resident, Round, Which};
use crate::error::BenchError;
use crate::wait::{Ended, wait};

/// No workload takes this long on any machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The most starts of the second side before it is measured: recording is paid for with what starts have earned.
const RECORDINGS: usize = 60;

pub(super) struct Programs {
    pub(super) stock: Recipe,
    pub(super) hasten: Recipe,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<&'static str>,
    /// The beginning of its output on success.
    pub(super) expected: &'static str,
    /// Processes of a round.
    pub(super) count: usize,
    /// Where output goes.
    pub(super) scratch: TempDir,
}

impl Programs {
    /// Starts the second side until its cache is complete; returns whether the plugin was active.
    pub(super) fn record(&self, stopped: &dyn Fn() -> bool) -> Result<bool, BenchError> {
        let statistics = self.scratch.path().join("statistics");
        let recipe = self.hasten.clone().env("HASTEN_NODE_STATS", &statistics);
        for _ in 0..RECORDINGS {
            self.run(&recipe, stopped)?;
            if stopped() || !has_recorded(&fs::read_to_string(&statistics).unwrap_or_default()) {
                break;
            }
        }
        Ok(fs::metadata(&statistics).is_ok_and(|statistics| statistics.len() > 0))
    }

    pub(super) fn round(&self, which: Which, stopped: &dyn Fn() -> bool) -> Result<Round, BenchError> {
        let recipe = match which {
            Which::Stock => &self.stock,
            Which::Hasten => &self.hasten,
        };
        let mut round = Round { cpu: Duration::ZERO, outcome: Outcome::default(), memory: None };
        let begun = Instant::now();
        for _ in 0..self.count {
            let started = Instant::now();
            let ended = self.run(recipe, stopped)?;
            let latency = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            match ended {
                None if stopped() => break,
                None => round.outcome.failures.wrong_content("it did not end".to_owned()),
                Some((ended, output)) => self.book(&mut round, &ended, &output, latency),
            }
        }
        round.outcome.elapsed = begun.elapsed();
        Ok(round)
    }

    fn book(&self, round: &mut Round, ended: &Ended, output: &str, latency: u64) {
        round.cpu += ended.cpu;
        let memory = round.memory.get_or_insert_default();
        *memory = Resident { peak: memory.peak.max(ended.peak_rss), now: memory.now.max(ended.peak_rss) };
        if ended.status.success() && output.starts_with(self.expected) {
            round.outcome.ops += 1;
            round.outcome.latency.saturating_record(latency.max(1));
        } else {
            let complaints = fs::read_to_string(self.complaints()).unwrap_or_default();
            let why = complaints.lines().find(|line| line.contains("Error")).unwrap_or("no error is shown");
            round.outcome.failures.wrong_content(format!("{}, output {output:?}: {why}", ended.status));
        }
    }

    /// `None` if it had to be killed.
    fn run(&self, recipe: &Recipe, stopped: &dyn Fn() -> bool) -> Result<Option<(Ended, String)>, NodeError> {
        let output = self.scratch.path().join("output");
        let create = |path: &Path| File::create(path).map(Stdio::from).map_err(NodeError::Wait);
        let mut script: Vec<&OsStr> = vec!["app.js".as_ref()];
        script.extend(self.arguments.iter().map(OsStr::new));
        let mut child =
            recipe.spawn(&self.directory, &script, create(&output)?, create(&self.complaints())?)?;
        let ended = wait(&mut child, LIMIT, stopped).map_err(NodeError::Wait)?;
        let text = fs::read(&output).unwrap_or_default();
        Ok(ended.map(|ended| (ended, String::from_utf8_lossy(&text).chars().take(80).collect())))
    }

    fn complaints(&self) -> PathBuf {
        self.scratch.path().join("complaints")
    }
}

/// Whether the last line of the plugin's statistics, one per start, is from a start that wrote to the cache or left
/// that to a later one.
fn has_recorded(statistics: &str) -> bool {
    let last = statistics.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    last.is_some_and(|last| {
        last["waiting"] == true || last["recorded_bytes"].as_u64().is_some_and(|bytes| bytes > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_ends_with_the_first_start_that_had_nothing_to_record() {
        let (busy, done) = (r#"{"recorded_bytes": 985040}"#, r#"{"recorded_bytes": 0}"#);
        assert!(has_recorded(&format!("{done}\n{busy}\n")));
        assert!(has_recorded(r#"{"recorded_bytes": 0, "waiting": true}"#));
        for statistics in [format!("{busy}\n{done}\n"), "{}\n".to_owned(), "{\n".to_owned(), String::new()] {
            assert!(!has_recorded(&statistics), "{statistics}");
        }
    }
}
