//! The sides of a comparison, and how db_bench is run for each.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::db_bench::{self, Outcome};
use super::limit::Limit;
use super::{Case, Options, Other, Workload};
use crate::error::BenchError;
use crate::wait::wait;

/// Of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) cpu: Duration,
}

/// Which side a round is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Hasten,
    Other(Other),
}

impl Place {
    pub(super) const fn of(other: Other) -> Self {
        Self::Other(other)
    }
}

/// The directories, and the limit of the slow disk.
pub(super) struct Sides<'a> {
    options: &'a Options,
    program: PathBuf,
    data: TempDir,
    fast: TempDir,
    limit: Option<Limit>,
    pub(super) version: String,
    stopped: &'a dyn Fn() -> bool,
}

/// Bytes of a value; a read from the disk takes one or two of its blocks.
const VALUE: u32 = 1000;
/// RocksDB's own cache in memory, small beside the files.
const BLOCK_CACHE: u32 = 8 << 20;
/// Twice the files, so that nothing has to leave.
const ROOM: u64 = 2;
/// Reads of a warm-up for each key: all but one key in a hundred are then read at least once.
const WARM: u64 = 5;
/// Longer than any round, and than filling the database.
const LIMIT: Duration = Duration::from_secs(1800);

impl<'a> Sides<'a> {
    pub(super) fn new(options: &'a Options, stopped: &'a dyn Fn() -> bool) -> Result<Self, BenchError> {
        let directory = |path: &Path| {
            let made = fs::create_dir_all(path)
                .and_then(|()| tempfile::Builder::new().prefix("hasten-bench-").tempdir_in(path));
            made.map_err(|source| BenchError::StorageDirectory { path: path.to_owned(), source })
        };
        let (data, fast) = (directory(&options.data)?, directory(&options.fast)?);
        let limit = options.limit.map(|limit| Limit::new(data.path(), limit)).transpose()?;
        let program = db_bench::program()?;
        let mut sides = Self { options, program, data, fast, limit, version: String::new(), stopped };
        let output = sides.fill()?;
        sides.version = db_bench::version(&output).unwrap_or("unknown").to_owned();
        Ok(sides)
    }

    /// Makes the database that is read. Without the limit: only what follows is measured.
    fn fill(&self) -> Result<String, BenchError> {
        let mut command = Command::new(&self.program);
        let keys = if self.options.workload == Workload::ReadCache { self.options.keys } else { 1 };
        command
            .args(["--benchmarks=fillseq,compact", "--disable_wal=1"])
            .args(common(&self.database(), keys));
        let output = self.output(command)?.map(|(output, _)| output).unwrap_or_default();
        // The cache accepts files that have not changed for two seconds.
        std::thread::sleep(Duration::from_secs(4));
        Ok(output)
    }

    fn database(&self) -> PathBuf {
        self.data.path().join("db")
    }

    fn cache(&self) -> PathBuf {
        self.fast.path().join("cache")
    }

    /// What the library makes: without it, two equal sides would be compared.
    fn trace(&self) -> PathBuf {
        match self.options.workload {
            Workload::ReadCache => self.cache(),
            Workload::Wal => self.fast.path().join("hasten-logs"),
        }
    }

    fn room(&self) -> u64 {
        ROOM * u64::from(self.options.keys) * u64::from(VALUE) + (64 << 20)
    }

    /// Reads each key some times, so that the cache has nearly all that is read; `false` if the user interrupted.
    pub(super) fn warm_up(&self, case: &Case) -> Result<bool, BenchError> {
        let mut command = self.reading(case, Place::Hasten)?;
        command.arg("--duration=0").arg(format!("--reads={}", u64::from(self.options.keys) * WARM));
        Ok(self.output(command)?.is_some())
    }

    /// `None` if the user interrupted.
    pub(super) fn round(&self, case: &Case, place: Place) -> Result<Option<Round>, BenchError> {
        let name = match self.options.workload {
            Workload::ReadCache => "readrandom",
            Workload::Wal => "fillrandom",
        };
        let command = match self.options.workload {
            Workload::ReadCache => self.reading(case, place)?,
            Workload::Wal => self.writing(case, place),
        };
        let Some((output, cpu)) = self.output(command)? else { return Ok(None) };
        let outcome =
            db_bench::parse(&output, name).ok_or_else(|| BenchError::DbBenchOutput(tail(&output)))?;
        if place == Place::Hasten && !self.trace().exists() {
            return Err(BenchError::NotAccelerated(self.options.workload.as_str()));
        }
        if outcome.lost > 0 {
            return Err(BenchError::DbBenchOutput(format!("{} keys were not found", outcome.lost)));
        }
        Ok(Some(Round { outcome, cpu }))
    }

    fn reading(&self, case: &Case, place: Place) -> Result<Command, BenchError> {
        let cache = self.cache();
        if place == Place::Hasten && !case.is_warm {
            removed(&cache)?;
        }
        let mut command =
            self.limited(place, &["--read-cache".into(), format!("{},{}", cache.display(), self.room())]);
        // RocksDB's own cache begins empty: a first pass of the same process fills it, and only the second counts.
        let is_own = place == Place::of(Other::OwnCache);
        let seconds = self.options.round.as_secs().max(1);
        command.arg(if is_own { "--benchmarks=readrandom,readrandom" } else { "--benchmarks=readrandom" });
        command
            .args(common(&self.database(), self.options.keys))
            .args(["--use_existing_db=1", "--use_direct_reads=1"]);
        command.arg(format!("--duration={}", if is_own { seconds * OWN_ROUNDS } else { seconds }));
        if is_own {
            let own = self.fast.path().join("own");
            removed(&own)?;
            fs::create_dir_all(&own)
                .map_err(|source| BenchError::StorageDirectory { path: own.clone(), source })?;
            command.arg(format!("--read_cache_path={}", own.display()));
            command.arg(format!("--read_cache_size={}", self.room()));
        }
        Ok(command)
    }

    fn writing(&self, case: &Case, place: Place) -> Command {
        let database = match place {
            Place::Other(Other::AllFast) => self.fast.path().join("db"),
            _ => self.database(),
        };
        let mut flags = vec!["--wal".to_owned(), super::display(self.fast.path())];
        if self.options.is_ephemeral {
            flags.push("--wal-ephemeral".to_owned());
        }
        let mut command = self.limited(place, &flags);
        command.args(["--benchmarks=fillrandom", "--sync=1"]).args(common(&database, self.options.keys));
        command.arg(format!("--duration={}", self.options.round.as_secs().max(1)));
        command.arg(format!("--threads={}", case.threads));
        command
    }

    /// db_bench in the group of the limit, under `hasten run` if it is hasten's side.
    fn limited(&self, place: Place, flags: &[String]) -> Command {
        const JOIN: &str = "echo $$ >\"$0\" && exec \"$@\"";
        let mut command = match &self.limit {
            Some(limit) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", JOIN]).arg(limit.processes());
                command
            }
            None => Command::new("/usr/bin/env"),
        };
        if place == Place::Hasten {
            command.arg(&self.options.hasten).arg("run").args(flags).arg("--");
        }
        command.arg(&self.program).arg("--histogram=1");
        command
    }

    /// Its output and CPU time; `None` if the user interrupted.
    fn output(&self, mut command: Command) -> Result<Option<(String, Duration)>, BenchError> {
        let run = |source| BenchError::DbBenchRun(source);
        let folder = tempfile::tempdir().map_err(run)?;
        let path = folder.path().join("output");
        let file = File::create(&path).map_err(run)?;
        command.env_remove("LD_PRELOAD").stdin(Stdio::null()).process_group(0);
        command.stdout(file.try_clone().map_err(run)?).stderr(file);
        let mut child = command.spawn().map_err(run)?;
        let Some(ended) = wait(&mut child, LIMIT, self.stopped).map_err(run)? else { return Ok(None) };
        let output = String::from_utf8_lossy(&fs::read(&path).map_err(run)?).into_owned();
        if !ended.status.success() {
            return Err(BenchError::DbBenchOutput(format!("{}: {}", ended.status, tail(&output))));
        }
        Ok(Some((output, ended.cpu)))
    }
}

/// Passes of RocksDB's own cache are as much longer.
const OWN_ROUNDS: u64 = 4;

fn common(database: &Path, keys: u32) -> [String; 8] {
    [
        format!("--db={}", database.display()),
        format!("--num={keys}"),
        format!("--value_size={VALUE}"),
        format!("--cache_size={BLOCK_CACHE}"),
        "--compression_type=none".into(),
        "--bloom_bits=10".into(),
        "--statistics=0".into(),
        "--disable_auto_compactions=1".into(),
    ]
}

fn removed(directory: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(BenchError::StorageDirectory { path: directory.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// The last lines, for a message.
fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
