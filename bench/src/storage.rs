//! The storage workloads: RocksDB's db_bench with its files on a slow disk, stock and under `hasten run`.
//!
//! What counts is the time of an operation, not its CPU time: the disk sets the pace. Sides take turns, A B B A, and
//! each ratio has its interval. A disk can be slowed down to a number of operations a second by the kernel, in a control
//! group of its own, so that a machine without a network disk measures something comparable.

pub mod db_bench;
mod limit;
mod report;
mod sides;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::BenchError;
use crate::progress::say;

pub use self::limit::LimitError;
pub use self::report::{Report, Row, Saved, Side};
use self::sides::{Place, Sides};

/// Which library is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    ReadCache,
    Wal,
}

impl Workload {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadCache => "readcache",
            Self::Wal => "wal",
        }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub workload: Workload,
    /// A directory on the slow disk.
    pub data: PathBuf,
    /// A directory on the fast device: for the cache, or for logs.
    pub fast: PathBuf,
    /// `--wal-ephemeral`.
    pub is_ephemeral: bool,
    /// Operations that the slow disk may do in a second.
    pub limit: Option<u32>,
    pub keys: u32,
    pub round: Duration,
    pub pairs: usize,
    /// The `hasten` command.
    pub hasten: PathBuf,
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// What one row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) other: Other,
    /// Whether the cache is full of what is read, or empty at the beginning of each round.
    pub(crate) is_warm: bool,
    pub(crate) threads: usize,
}

/// What hasten is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Stock,
    /// RocksDB's own persistent cache, in the place of hasten's.
    OwnCache,
    /// The whole database on the fast device.
    AllFast,
}

impl Other {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::OwnCache => "RocksDB's persistent cache",
            Self::AllFast => "all on the fast device",
        }
    }
}

impl Workload {
    const fn cases(self) -> &'static [Case] {
        const fn case(name: &'static str, other: Other, is_warm: bool, threads: usize) -> Case {
            Case { name, other, is_warm, threads }
        }
        match self {
            Self::ReadCache => {
                &const {
                    [
                        case("readrandom, cache warm", Other::Stock, true, 1),
                        case("readrandom, cache empty", Other::Stock, false, 1),
                        case("readrandom, cache warm", Other::OwnCache, true, 1),
                    ]
                }
            }
            Self::Wal => {
                &const {
                    [
                        case("fillrandom, sync", Other::Stock, false, 1),
                        case("fillrandom, sync", Other::AllFast, false, 1),
                        case("fillrandom, sync", Other::Stock, false, 4),
                        case("fillrandom, sync", Other::AllFast, false, 4),
                    ]
                }
            }
        }
    }
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report, Saved), BenchError> {
    let stopped = || interrupted.load(Ordering::Relaxed);
    let sides = Sides::new(options, &stopped)?;
    let mut report = Report::empty(options, &sides);
    let mut saved = report.save(&options.out)?;
    let cases = options.workload.cases();
    for (i, case) in cases.iter().enumerate() {
        say(&format!(
            "[{}/{}] {}, {} thread(s), against {}",
            i + 1,
            cases.len(),
            case.name,
            case.threads,
            case.other.as_str()
        ));
        let Some(row) = row(options, &sides, case)? else { break };
        say(&format!("      {}", row.summary()));
        report.rows.push(row);
        report.complete = i + 1 == cases.len();
        saved = report.save(&options.out)?;
    }
    Ok((report, saved))
}

/// `None` if the user interrupted.
fn row(options: &Options, sides: &Sides<'_>, case: &Case) -> Result<Option<Row>, BenchError> {
    let mut row = Row::of(case);
    if case.is_warm && !sides.warm_up(case)? {
        return Ok(None);
    }
    for pair in 0..options.pairs {
        let round = |place| sides.round(case, place);
        let (other, ours) = if pair.is_multiple_of(2) {
            let other = round(Place::of(case.other))?;
            (other, round(Place::Hasten)?)
        } else {
            let ours = round(Place::Hasten)?;
            (round(Place::of(case.other))?, ours)
        };
        let (Some(other), Some(ours)) = (other, ours) else { return Ok(None) };
        row.add(&other, &ours);
    }
    Ok(Some(row))
}

/// Whether a program is there, with the package that brings it.
pub fn requirements() -> Result<(), BenchError> {
    db_bench::program().map(|_| ())
}

pub(crate) fn display(path: &Path) -> String {
    path.display().to_string()
}
