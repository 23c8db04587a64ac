//! Libraries side by side: a worker process for each engine, all on one CPU.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use hasten_evidence::report::{Row, Sizes, WorstFile};
use hasten_evidence::warning::Warning;
use tempfile::TempDir;

use super::worker::{Done, Reply, Task, Timed, Work};
use super::{Engine, GzipCase, LibraryCase, LibraryWork, Options};
use crate::affinity::{Pinned, Placement};
use crate::drive::Outcome;
use crate::duel::{Duel, Round, Which, has_library};
use crate::error::BenchError;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::summary::row;

/// The hidden command of `hasten` that calls [`super::worker::serve`].
pub const WORKER: &str = "gzip-worker";

/// How much larger than the original's, at the same level, the output may be: over the corpus, and for one file.
const CORPUS_LIMIT: f64 = 1.01;
const FILE_LIMIT: f64 = 1.03;

/// Processes per engine; as many as the minimum number of pairs in a row.
const PROCESSES: usize = 6;

/// As much as a server such as nginx passes per call.
const PIECE: usize = 8 << 10;

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("cannot start {program} as a worker: {source}")]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the worker for {engine} has ended: {source}")]
    Ended { engine: Engine, source: io::Error },
    #[error("cannot make a directory for compressed files: {0}")]
    Directory(io::Error),
    #[error("the original zlib cannot compress the corpus: {0}")]
    Original(String),
}

impl LibraryError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Spawn { .. } => "call hasten by its full path".to_owned(),
            Self::Ended { .. } => "the lines above say why, if it could; please report it".to_owned(),
            Self::Directory(_) => {
                "see that the directory for temporary files (TMPDIR) exists and has room".to_owned()
            }
            Self::Original(_) => "see whether the package zlib1g is intact".to_owned(),
        }
    }
}

/// The original, and the engine compared with it.
pub(super) struct Workers {
    stock: Side,
    other: Side,
    /// The corpus as the original compresses it.
    kept: Option<TempDir>,
}

impl Workers {
    pub(super) fn start(
        engine: Engine,
        options: &Options,
        placement: &Placement,
    ) -> Result<Self, BenchError> {
        Ok(Self {
            stock: Side::start(Engine::Original, options, placement)?,
            other: Side::start(engine, options, placement)?,
            kept: None,
        })
    }

    /// The same processes, if they suit `case`.
    pub(super) fn reuse(self, case: &LibraryCase) -> Option<Self> {
        (self.other.engine == case.engine).then_some(self)
    }

    /// Two equal sides are not an error, but the reader must know.
    pub(super) fn warning(&self) -> Option<Warning> {
        let loaded = |worker: &Worker| has_library(worker.process.id(), "/libhasten_gzip");
        let stock = self.other.engine == Engine::Hasten && !self.other.workers.iter().all(loaded);
        stock.then(|| Warning::Missing {
            what: "libhasten_gzip.so".to_owned(),
            why: "it is not loaded, so the rows of hasten compare the original with itself; `hasten check` says why"
                .to_owned(),
        })
    }

    /// `None` if the user interrupted.
    pub(super) fn row(
        &mut self,
        case: LibraryCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<GzipCase>>, BenchError> {
        let work = self.work(&case)?;
        let (stock_files, other_files) = (self.stock.check(&work)?, self.other.check(&work)?);
        let stock_task = Task { work: work.clone(), at_least: pace.round, known: lengths(&stock_files) };
        let other_task = Task { work, at_least: pace.round, known: lengths(&other_files) };

        let duel = Duel { pace, progress, stopped, driver_threads: 0 };
        let measured = duel.measure(|which| match which {
            Which::Stock => Ok(self.stock.round(&stock_task)?),
            Which::Hasten => Ok(self.other.round(&other_task)?),
        })?;
        let Some(measured) = measured else { return Ok(None) };
        let mut row = row(GzipCase::Library(case), measured);
        // Files of all sizes: their times do not form a distribution worth drawing.
        row.stock.latency.clear();
        row.hasten.latency.clear();
        if case.work != LibraryWork::Inflate {
            compare_sizes(&mut row, &stock_files, &other_files);
        } else {
            // Both read the same bytes.
            row.sizes = None;
        }
        Ok(Some(row))
    }

    fn work(&mut self, case: &LibraryCase) -> Result<Work, BenchError> {
        let level = case.level;
        Ok(match case.work {
            LibraryWork::Deflate => Work::Deflate { level, piece: usize::MAX },
            LibraryWork::Stream => Work::Deflate { level, piece: PIECE },
            LibraryWork::Inflate => Work::Inflate { directory: self.keep(level)? },
        })
    }

    /// The directory with the original's output.
    fn keep(&mut self, level: u8) -> Result<PathBuf, LibraryError> {
        let directory = tempfile::tempdir().map_err(LibraryError::Directory)?;
        let path = directory.path().to_owned();
        let work = Work::Keep { level, directory: path.clone() };
        let task = Task { work, at_least: Duration::ZERO, known: Vec::new() };
        if let Reply::Failed(why) = self.stock.workers[0].ask(&task)? {
            return Err(LibraryError::Original(why));
        }
        self.kept = Some(directory);
        Ok(path)
    }
}

/// One engine, in several processes that take turns.
///
/// The location of a process's memory makes it faster or slower by a few per cent for as long as it lives. With one
/// process for each side that would look like a difference between the engines.
struct Side {
    engine: Engine,
    workers: Vec<Worker>,
    turn: usize,
}

impl Side {
    fn start(engine: Engine, options: &Options, placement: &Placement) -> Result<Self, LibraryError> {
        let workers = (0..PROCESSES).map(|_| Worker::start(engine, options, placement));
        Ok(Self { engine, workers: workers.collect::<Result<_, _>>()?, turn: 0 })
    }

    /// One pass in which every output is checked; empty if one is wrong, which the rounds then find again.
    fn check(&mut self, work: &Work) -> Result<Vec<Timed>, LibraryError> {
        let task = Task { work: work.clone(), at_least: Duration::ZERO, known: Vec::new() };
        Ok(match self.workers[0].ask(&task)? {
            Reply::Done(done) => done.files,
            Reply::Failed(_) => Vec::new(),
        })
    }

    fn round(&mut self, task: &Task) -> Result<Round, LibraryError> {
        self.turn = (self.turn + 1) % self.workers.len();
        self.workers[self.turn].round(task)
    }
}

/// The length of each output.
fn lengths(files: &[Timed]) -> Vec<u64> {
    files.iter().map(|file| file.compressed / file.passes.max(1)).collect()
}

/// The file that grew most, and whether that is within the rules.
fn compare_sizes(row: &mut Row<GzipCase>, stock: &[Timed], other: &[Timed]) {
    let Some(Sizes { wire_bytes_ratio, worst_file }) = &mut row.sizes else { return };
    let growth = stock.iter().zip(other).map(|(stock, other)| {
        // Rounds differ in the number of passes.
        let size = |file: &Timed| file.compressed as f64 / file.passes.max(1) as f64;
        (&stock.name, size(other) / size(stock))
    });
    let worst = growth.filter(|(_, ratio)| ratio.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
    *worst_file = worst
        .map(|(name, ratio)| WorstFile { name: name.clone(), wire_bytes_ratio: (ratio * 1e4).round() / 1e4 });
    // The rules are hasten's; other engines are shown as they are.
    if !matches!(&row.case, GzipCase::Library(case) if case.engine == Engine::Hasten) {
        return;
    }
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    if *wire_bytes_ratio > CORPUS_LIMIT {
        let what = "the corpus".to_owned();
        row.warnings.push(Warning::Larger { what, percent: percent(*wire_bytes_ratio) });
    }
    if let Some(WorstFile { name, wire_bytes_ratio }) = worst_file
        && *wire_bytes_ratio > FILE_LIMIT
    {
        let percent = percent(*wire_bytes_ratio);
        row.warnings.push(Warning::Larger { what: name.clone(), percent });
    }
}

/// A process that runs one engine.
struct Worker {
    engine: Engine,
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(engine: Engine, options: &Options, placement: &Placement) -> Result<Self, LibraryError> {
        let spawn = |source| LibraryError::Spawn { program: options.hasten.clone(), source };
        let mut command = Command::new(&options.hasten);
        command.args(["bench", WORKER, engine.as_str()]).env_remove("LD_PRELOAD");
        let library = match engine {
            Engine::Hasten => options.library.clone(),
            Engine::Original => options.baseline.gzip_library(),
            _ => None,
        };
        command.envs(library.map(|library| ("LD_PRELOAD", library)));
        // Its own group: Ctrl-C at the terminal is noticed here, between two rounds.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let pinned = placement.server.map(Pinned::to).transpose().map_err(spawn)?;
        let mut process = command.spawn().map_err(spawn)?;
        drop(pinned);
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or_else(|| spawn(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { engine, process, input, output: BufReader::new(output) })
    }

    /// Performs a task; anything that goes wrong in it is a failure of the round.
    fn round(&mut self, task: &Task) -> Result<Round, LibraryError> {
        let mut outcome = Outcome::default();
        match self.ask(task)? {
            Reply::Failed(why) => {
                outcome.failures.wrong_content(why);
                Ok(Round { cpu: Duration::ZERO, outcome, memory: None })
            }
            Reply::Done(Done { cpu, elapsed, files }) => {
                for file in &files {
                    outcome.ops += file.passes;
                    outcome.content += file.content * file.passes;
                    outcome.received += file.compressed;
                    let each = file.elapsed.as_micros() / u128::from(file.passes.max(1));
                    let micros = u64::try_from(each).unwrap_or(u64::MAX).max(1);
                    outcome.latency.saturating_record_n(micros, file.passes);
                }
                outcome.elapsed = elapsed;
                Ok(Round { cpu, outcome, memory: None })
            }
        }
    }

    fn ask(&mut self, task: &Task) -> Result<Reply, LibraryError> {
        self.exchange(task).map_err(|source| LibraryError::Ended { engine: self.engine, source })
    }

    fn exchange(&mut self, task: &Task) -> io::Result<Reply> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{}", serde_json::to_string(task)?)?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It ends with its input; if it hangs, it is killed.
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
