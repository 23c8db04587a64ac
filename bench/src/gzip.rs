//! The gzip workload: libraries on a corpus, and nginx compressing what it sends.
//!
//! The library part has a process for each engine compress the same files in turn with the original zlib's. The
//! server part drives a stock and an accelerated nginx. Rounds go A B B A …, as everywhere.

mod case;
pub mod corpus;
mod library;
mod matrix;
mod nginx;
pub mod worker;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hasten_evidence::report::{Host, Report, Row, Saved, Text};
use hasten_evidence::warning::Warning;

use crate::affinity::Placement;
use crate::baseline::Baseline;
use crate::error::BenchError;
use crate::host;
use crate::progress::Progress;
use crate::rows;
use crate::server::ServerKind;

pub use self::case::{Engine, GzipCase, LibraryCase, LibraryWork, ServerCase, UnknownEngine};
pub use self::library::{LibraryError, WORKER};
pub use self::matrix::{Matrix, Paces};
pub use self::nginx::Site;

use self::corpus::Corpus;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub matrix: Matrix,
    pub paces: Paces,
    /// The `hasten` command that starts the accelerated server, and workers.
    pub hasten: PathBuf,
    /// What it is compared with.
    pub baseline: Baseline,
    /// `libhasten_gzip.so`; without it hasten's row compares the original with itself, and says so.
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
    let report = empty_report(options, &placement);
    let estimate = cases.iter().map(|case| options.paces.estimate(case)).sum();
    let mut sides = Sides::default();
    rows::measure(report, &cases, estimate, &options.out, interrupted, |case, progress, stopped| {
        let (row, warning) = sides.row(case, options, &placement, progress, stopped)?;
        Ok((row.into_iter().collect(), warning))
    })
}

/// The processes of the last row, which the next one may be able to reuse.
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
    Report {
        host: facts(placement),
        workload: "gzip",
        text: Text {
            title: "Compression".to_owned(),
            unit: "operation".to_owned(),
            method: method.to_owned() + &options.baseline.sentence(),
            reproduce: vec![options.command.clone()],
            next: next.map(|(command, why)| (command.to_owned(), why.to_owned())).to_vec(),
        },
        complete: false,
        rows: Vec::new(),
        warnings: placement.shared_core.then_some(Warning::SharedCore).into_iter().collect(),
    }
}

fn facts(placement: &Placement) -> Host {
    let Host(mut facts) = host::facts(&[ServerKind::Nginx], placement);
    let place = facts.iter().position(|(name, _)| *name == "hasten").unwrap_or(facts.len());
    let ours = [("zlib", zlib_version()), ("corpus", Corpus::of_this_machine().describe())];
    facts.splice(place..place, ours);
    Host(facts)
}

/// Distributions put the version into the file's name.
fn zlib_version() -> String {
    let links = ["/lib/x86_64-linux-gnu/libz.so.1", "/lib64/libz.so.1", "/usr/lib/libz.so.1"];
    let file = links.into_iter().find_map(|link| fs::canonicalize(Path::new(link)).ok());
    let name = file.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.and_then(|name| name.strip_prefix("libz.so.").map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}
