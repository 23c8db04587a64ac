//! The gzip workload: libraries on a corpus, and nginx compressing what it sends.
//!
//! The library part asks a process for each engine to compress the same files in turn with the original zlib's. The
//! server part drives a stock and an accelerated nginx. Rounds go A B B A …, as everywhere.

pub mod corpus;
mod library;
mod nginx;
pub mod worker;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hasten_evidence::report::{Case, Report, Row, Saved, Text};
use hasten_evidence::stop::StopRule;
use hasten_evidence::warning::Warning;
use serde::{Serialize, Serializer};

use crate::affinity::Placement;
use crate::error::BenchError;
use crate::host;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::ServerKind;

pub use self::library::{LibraryError, WORKER};

use self::corpus::{Corpus, size_name};

/// What compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The system's libz.
    Original,
    /// The same calls with `libhasten_gzip.so` preloaded.
    Hasten,
    ZlibNg,
    Isal,
    Libdeflate,
    ZlibRs,
}

impl Engine {
    pub const ALL: [Self; 6] =
        [Self::Original, Self::Hasten, Self::ZlibNg, Self::Isal, Self::Libdeflate, Self::ZlibRs];

    /// Those that are compared with the original.
    pub const COMPARED: [Self; 5] = [Self::Hasten, Self::ZlibNg, Self::Isal, Self::Libdeflate, Self::ZlibRs];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Hasten => "hasten",
            Self::ZlibNg => "zlib-ng",
            Self::Isal => "isal",
            Self::Libdeflate => "libdeflate",
            Self::ZlibRs => "zlib-rs",
        }
    }

    /// What of it is worth a row at `level`.
    fn works(self, level: u8, inflate_level: u8) -> Vec<LibraryWork> {
        let mut works = Vec::new();
        // ISA-L has three levels.
        if self != Self::Isal || level <= 3 {
            works.push(LibraryWork::Deflate);
        }
        if self == Self::Hasten {
            works.push(LibraryWork::Stream);
        }
        if matches!(self, Self::Hasten | Self::ZlibNg) && level == inflate_level {
            works.push(LibraryWork::Inflate);
        }
        works
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine {0:?}: use hasten, zlib-ng, isal, libdeflate or zlib-rs")]
pub struct UnknownEngine(String);

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(given: &str) -> Result<Self, UnknownEngine> {
        let known = Self::ALL.into_iter().find(|engine| engine.as_str() == given);
        known.ok_or_else(|| UnknownEngine(given.to_owned()))
    }
}

/// What a library does in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryWork {
    /// Each file in one call.
    Deflate,
    /// Each file in pieces of 8 KiB.
    Stream,
    /// What the original compressed, each file in one call.
    Inflate,
}

impl LibraryWork {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Stream => "deflate 8KB",
            Self::Inflate => "inflate",
        }
    }
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum GzipCase {
    Library(LibraryCase),
    Server(ServerCase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LibraryCase {
    #[serde(serialize_with = "engine_name")]
    pub engine: Engine,
    #[serde(serialize_with = "work_name")]
    pub work: LibraryWork,
    pub level: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ServerCase {
    #[serde(serialize_with = "server_name")]
    pub server: ServerKind,
    #[serde(serialize_with = "body_size")]
    pub size: usize,
    pub level: u8,
}

impl Case for GzipCase {
    const COLUMNS: &'static [&'static str] = &["engine or server", "work", "level"];
    const LATENCY: &'static str = "From the request to the last byte of the answer";

    fn cells(&self) -> Vec<String> {
        match self {
            Self::Library(LibraryCase { engine, work, level }) => {
                vec![engine.to_string(), work.as_str().to_owned(), level.to_string()]
            }
            Self::Server(ServerCase { server, size, level }) => {
                vec![server.to_string(), size_name(*size), level.to_string()]
            }
        }
    }

    fn title(&self) -> String {
        let cells = self.cells();
        format!("{} · {} · level {}", cells[0], cells[1], cells[2])
    }

    fn is_claim(&self) -> bool {
        match self {
            Self::Library(case) => case.engine == Engine::Hasten,
            Self::Server(_) => true,
        }
    }

    fn curve(&self) -> Option<(String, u8)> {
        match self {
            Self::Library(LibraryCase { engine, work: LibraryWork::Deflate, level }) => {
                Some((engine.to_string(), *level))
            }
            _ => None,
        }
    }
}

fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.as_str())
}

fn work_name<S: Serializer>(work: &LibraryWork, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(work.as_str())
}

fn server_name<S: Serializer>(server: &ServerKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(server.as_str())
}

fn body_size<S: Serializer>(size: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&size_name(*size))
}

/// What is compared at which levels and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// None leaves the library part out.
    pub engines: Vec<Engine>,
    pub library_levels: Vec<u8>,
    /// Bodies that nginx sends, in bytes; none leaves the server part out.
    pub sizes: Vec<usize>,
    pub server_levels: Vec<u8>,
}

impl Matrix {
    #[must_use]
    pub fn quick() -> Self {
        Self {
            engines: Engine::COMPARED.to_vec(),
            library_levels: vec![1, 6, 9],
            sizes: vec![10 << 10, 100 << 10],
            server_levels: vec![1, 6],
        }
    }

    #[must_use]
    pub fn full() -> Self {
        Self {
            library_levels: (1..=9).collect(),
            sizes: vec![1 << 10, 10 << 10, 100 << 10, 1 << 20],
            server_levels: vec![1, 5, 6, 9],
            ..Self::quick()
        }
    }

    /// Rows that share processes are neighbours.
    #[must_use]
    pub fn cases(&self) -> Vec<GzipCase> {
        let mut cases = Vec::new();
        // The level at which most of what is decompressed anywhere was compressed.
        let usual = self.library_levels.iter().find(|&&level| level == 6);
        let inflate_level = usual.or(self.library_levels.first()).copied().unwrap_or_default();
        for &engine in &self.engines {
            for &level in &self.library_levels {
                for work in engine.works(level, inflate_level) {
                    cases.push(GzipCase::Library(LibraryCase { engine, work, level }));
                }
            }
        }
        for &size in &self.sizes {
            for &level in &self.server_levels {
                cases.push(GzipCase::Server(ServerCase { server: ServerKind::Nginx, size, level }));
            }
        }
        cases
    }
}

/// How long a row of each part takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paces {
    pub library: Pace,
    pub server: Pace,
}

impl Paces {
    #[must_use]
    pub fn quick() -> Self {
        let library = Pace {
            warm_up: Duration::ZERO,
            round: Duration::from_millis(40),
            rule: StopRule { min_pairs: 6, max_pairs: 10, uncertainty: 0.01 },
            limit: Duration::from_secs(4),
        };
        Self { library, server: Pace::quick() }
    }

    #[must_use]
    pub fn full() -> Self {
        let library = Pace {
            warm_up: Duration::ZERO,
            round: Duration::from_millis(150),
            rule: StopRule { min_pairs: 8, max_pairs: 20, uncertainty: 0.005 },
            limit: Duration::from_secs(20),
        };
        Self { library, server: Pace::full() }
    }

    fn of(&self, case: &GzipCase) -> &Pace {
        match case {
            GzipCase::Library(_) => &self.library,
            GzipCase::Server(_) => &self.server,
        }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub matrix: Matrix,
    pub paces: Paces,
    /// The `hasten` command that starts the accelerated server, and workers.
    pub hasten: PathBuf,
    /// `libhasten_gzip.so`; without it the row of hasten compares the original with itself, and says so.
    pub library: Option<PathBuf>,
    /// Where the report goes.
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report<GzipCase>, Saved), BenchError> {
    let placement = Placement::of_this_machine();
    let cases = options.matrix.cases();
    let mut report = empty_report(options, &placement);
    let mut saved = report.save(&options.out)?;
    let mut progress = Progress::start(cases.len(), cases.iter().map(|case| estimate(options, case)).sum());
    let stopped = || interrupted.load(Ordering::Relaxed);
    let mut sides = Sides::default();
    for case in &cases {
        if stopped() {
            break;
        }
        progress.row(&case.cells().join(" "));
        let (row, warning) = sides.row(*case, options, &placement, &progress, &stopped)?;
        let Some(row) = row else { break };
        if let Some(warning) = warning.filter(|warning| !report.warnings.contains(warning)) {
            report.warnings.push(warning);
        }
        progress.finish_row(&row);
        report.rows.push(row);
        saved = report.save(&options.out)?;
    }
    progress.finish();
    report.complete = report.rows.len() == cases.len();
    saved = report.save(&options.out).unwrap_or(saved);
    Ok((report, saved))
}

/// The processes of the last row: the next one may need the same.
#[derive(Default)]
struct Sides {
    workers: Option<library::Workers>,
    servers: Option<nginx::Servers>,
}

impl Sides {
    fn row(
        &mut self,
        case: GzipCase,
        options: &Options,
        placement: &Placement,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(Option<Row<GzipCase>>, Option<Warning>), BenchError> {
        let pace = options.paces.of(&case);
        match case {
            GzipCase::Library(case) => {
                let workers = match self.workers.take().and_then(|workers| workers.reuse(&case)) {
                    Some(workers) => workers,
                    None => library::Workers::start(case.engine, options, placement)?,
                };
                let workers = self.workers.insert(workers);
                let row = workers.row(case, pace, progress, stopped)?;
                Ok((row, workers.warning()))
            }
            GzipCase::Server(case) => {
                self.workers = None;
                if self.servers.is_none() {
                    self.servers = Some(nginx::Servers::start(options, placement)?);
                }
                let Some(servers) = &mut self.servers else { return Ok((None, None)) };
                Ok((servers.row(case, pace, progress, stopped)?, servers.warning()))
            }
        }
    }
}

/// About how long a row takes.
fn estimate(options: &Options, case: &GzipCase) -> Duration {
    match case {
        GzipCase::Server(_) => options.paces.server.estimate(),
        GzipCase::Library(case) => {
            // The original at this level over some four megabytes, in milliseconds.
            const PASS: [u32; 10] = [10, 45, 50, 65, 75, 100, 140, 160, 250, 300];
            let Pace { round, rule, .. } = options.paces.library;
            let pass = Duration::from_millis(PASS[usize::from(case.level.min(9))].into());
            let rounds = u32::try_from(rule.min_pairs + 2).unwrap_or(u32::MAX);
            (round.max(pass) + round.max(pass / 2)) * rounds
        }
    }
}

fn empty_report(options: &Options, placement: &Placement) -> Report<GzipCase> {
    let method = "Libraries: every file of the corpus becomes a gzip stream, in one call or in pieces of 8 KiB, in a \
                  process for each engine on the same CPU; an operation is one file, and CPU is its process's time. \
                  hasten is the same program as the original, with the library preloaded; zlib-ng is called as zlib \
                  is; ISA-L, libdeflate and zlib-rs are called directly, at the level that stands in for zlib's. \
                  Server: a stock and an accelerated nginx with one worker each on one CPU compress HTML pages, over \
                  16 HTTP/1.1 connections that stay open, in a closed loop; an operation is one request, CPU is the \
                  scheduler's time of all server processes, kernel included, bytes are those on the wire. Every \
                  output is decompressed by another decoder, or equal to one that was. Rounds alternate A B B A. The \
                  interval is a BCa bootstrap of the trimmed mean of the pairs' logarithmic ratios.";
    let next = [
        ("hasten run -- nginx", "Start your own server accelerated; nothing else changes"),
        ("hasten run --verify -- nginx", "The same, with every compressed byte checked before it leaves"),
        ("hasten top", "Watch it work: streams, bytes, engines, CPU saved"),
    ];
    let mut host = host::facts(&[ServerKind::Nginx], placement);
    host.0.insert(host.0.len().saturating_sub(1), ("corpus", Corpus::of_this_machine().describe()));
    Report {
        host,
        workload: "gzip",
        text: Text {
            title: "Compression".to_owned(),
            unit: "operation".to_owned(),
            method: method.to_owned(),
            reproduce: vec![options.command.clone()],
            next: next.map(|(command, why)| (command.to_owned(), why.to_owned())).to_vec(),
        },
        complete: false,
        rows: Vec::new(),
        warnings: placement.shared_core.then_some(Warning::SharedCore).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_covers_what_it_must_in_three_minutes() {
        let cases = Matrix::quick().cases();
        for level in [1, 6, 9] {
            for engine in Engine::COMPARED {
                let case = LibraryCase { engine, work: LibraryWork::Deflate, level };
                let expected = engine != Engine::Isal || level <= 3;
                assert_eq!(cases.contains(&GzipCase::Library(case)), expected, "{case:?}");
            }
        }
        let options = Options {
            matrix: Matrix::quick(),
            paces: Paces::quick(),
            hasten: PathBuf::new(),
            library: None,
            out: PathBuf::new(),
            command: String::new(),
        };
        let time: Duration = cases.iter().map(|case| estimate(&options, case)).sum();
        assert!(time < Duration::from_secs(180), "{time:?}");
    }

    #[test]
    fn full_has_every_level_and_size() {
        let cases = Matrix::full().cases();
        let servers = cases.iter().filter(|case| matches!(case, GzipCase::Server(_))).count();
        assert_eq!(servers, 4 * 4);
        // Nine levels of four engines, three of ISA-L, nine in pieces, two that inflate.
        assert_eq!(cases.len() - servers, 9 * 4 + 3 + 9 + 2);
    }

    #[test]
    fn cases_have_the_names_of_the_data_format() {
        let library = LibraryCase { engine: Engine::ZlibNg, work: LibraryWork::Deflate, level: 6 };
        let json = serde_json::to_value(GzipCase::Library(library)).unwrap();
        assert_eq!(json, serde_json::json!({ "engine": "zlib-ng", "work": "deflate", "level": 6 }));
        let server = ServerCase { server: ServerKind::Nginx, size: 100 << 10, level: 6 };
        let json = serde_json::to_value(GzipCase::Server(server)).unwrap();
        assert_eq!(json, serde_json::json!({ "server": "nginx", "size": "100KB", "level": 6 }));
    }
}
