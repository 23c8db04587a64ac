//! The tier workload: Redis with its values on two kinds of memory, stock and under `hasten run --tier`.
//!
//! What counts is the CPU time of a request, as for servers. Both Redis run all the time, with the same keys, on the same
//! CPU, and take turns, A B B A. Every answer is compared with what was stored.

mod drive;
mod redis;
mod report;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::affinity::{Pinned, Placement};
use crate::error::BenchError;
use crate::progress::say;

use self::drive::{Driver, Outcome};
use self::redis::Redis;
pub use self::report::{Report, Row, Saved, Side};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// As after `--tier`.
    pub tier: String,
    /// At most; large values have fewer.
    pub keys: u32,
    pub round: Duration,
    pub pairs: usize,
    /// The `hasten` command.
    pub hasten: PathBuf,
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// What is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) name: &'static str,
    /// The keys have them in turn.
    sizes: &'static [usize],
}

const ALL: [Values; 4] = [
    Values { name: "64 B", sizes: &[64] },
    Values { name: "1 KiB", sizes: &[1 << 10] },
    Values { name: "16 KiB", sizes: &[16 << 10] },
    Values { name: "mixed", sizes: &[64, 1 << 10, 16 << 10] },
];

/// Bytes of all values: two Redis of this size fit on small machines.
const MOST: usize = 256 << 20;
/// Requests that a client sends before it waits for answers, where it does so.
const PIPELINE: usize = 16;

impl Values {
    pub(crate) fn size(&self, key: u32) -> usize {
        self.sizes[key as usize % self.sizes.len()]
    }

    pub(crate) fn keys(&self, most: u32) -> u32 {
        let all: usize = self.sizes.iter().sum();
        most.min(u32::try_from(MOST / all * self.sizes.len()).unwrap_or(u32::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Set,
    Get,
}

impl Operation {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Get => "GET",
        }
    }
}

/// What one row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) values: Values,
    pub(crate) operation: Operation,
    pub(crate) pipeline: usize,
}

impl Values {
    fn cases(self) -> [Case; 4] {
        let case = |operation, pipeline| Case { values: self, operation, pipeline };
        [
            case(Operation::Set, PIPELINE),
            case(Operation::Get, PIPELINE),
            case(Operation::Set, 1),
            case(Operation::Get, 1),
        ]
    }
}

/// Of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) outcome: Outcome,
    pub(crate) cpu: Duration,
}

/// Whether a program is there, with the package that brings it.
pub fn requirements() -> Result<(), BenchError> {
    redis::program().map(|_| ())
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report, Saved), BenchError> {
    let placement = Placement::of_this_machine();
    let mut report = Report::empty(options, &placement)?;
    let mut saved = report.save(&options.out)?;
    let _pinned =
        placement.driver.first().map(|cpu| Pinned::to(*cpu)).transpose().map_err(BenchError::Driver)?;
    let stopped = || interrupted.load(Ordering::Relaxed);
    for values in ALL {
        let pair = Both::start(options, &placement, values)?;
        for case in values.cases() {
            say(&format!(
                "values of {}: {}, {} at a time",
                values.name,
                case.operation.as_str(),
                case.pipeline
            ));
            let Some(row) = pair.row(options, case, &stopped)? else { return Ok((report, saved)) };
            say(&format!("      {}", row.summary()));
            report.rows.push(row);
            report.complete = report.rows.len() == ALL.len() * values.cases().len();
            saved = report.save(&options.out)?;
        }
    }
    Ok((report, saved))
}

/// Redis without and with the library, both full.
struct Both {
    stock: Redis,
    hasten: Redis,
    keys: u32,
}

impl Both {
    fn start(options: &Options, placement: &Placement, values: Values) -> Result<Self, BenchError> {
        let keys = values.keys(options.keys);
        let start = |tier: Option<&str>| {
            let redis = Redis::start(tier.map(|tier| (options.hasten.as_path(), tier)), placement.server)?;
            Driver::new(redis.address(), values, keys)?.fill()?;
            Ok::<_, BenchError>(redis)
        };
        Ok(Self { stock: start(None)?, hasten: start(Some(&options.tier))?, keys })
    }

    /// `None` if the user interrupted.
    fn row(
        &self,
        options: &Options,
        case: Case,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row>, BenchError> {
        let mut row = Row::of(case);
        let driver = |redis: &Redis| Driver::new(redis.address(), case.values, self.keys);
        let (mut stock, mut hasten) = (driver(&self.stock)?, driver(&self.hasten)?);
        let round = |redis: &Redis, driver: &mut Driver, length| {
            redis.settle();
            let before = redis.cpu();
            let outcome = driver.round(case, length)?;
            redis.settle();
            Ok::<_, BenchError>(Round { outcome, cpu: redis.cpu().since(&before) })
        };
        // The first requests after another load are not typical.
        let warm_up = options.round / 4;
        round(&self.stock, &mut stock, warm_up)?;
        round(&self.hasten, &mut hasten, warm_up)?;
        for pair in 0..options.pairs {
            if stopped() {
                return Ok(None);
            }
            let (first, second) = if pair.is_multiple_of(2) {
                let first = round(&self.stock, &mut stock, options.round)?;
                (first, round(&self.hasten, &mut hasten, options.round)?)
            } else {
                let second = round(&self.hasten, &mut hasten, options.round)?;
                (round(&self.stock, &mut stock, options.round)?, second)
            };
            row.add(&first, &second);
        }
        row.memory(self.stock.resident(), self.hasten.resident(), self.hasten.tiers(&options.hasten)?);
        Ok(Some(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_have_fewer_keys_and_mixed_ones_all_sizes() {
        let keys = ALL.map(|values| values.keys(150_000));
        assert_eq!(keys, [150_000, 150_000, 16_384, 46_089]);
        assert_eq!([0, 1, 2, 3].map(|key| ALL[3].size(key)), [64, 1024, 16384, 64]);
    }
}
