//! The report: data first, a table as a view of it.

use std::fs;
use std::path::{Path, PathBuf};

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use hasten_evidence::paired::{Estimate, Pair, ratio};
use hasten_evidence::report::Host;
use hasten_evidence::statistics::median;
use hasten_evidence::verdict::Verdict;
use serde::Serialize;

use super::sides::{Round, Sides};
use super::{Case, Options, Workload, display};
use crate::affinity::Placement;
use crate::error::BenchError;
use crate::host;

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub host: Host,
    pub workload: &'static str,
    /// How it was measured.
    pub method: String,
    pub reproduce: String,
    pub complete: bool,
    pub rows: Vec<Row>,
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub case: &'static str,
    pub threads: usize,
    /// What hasten is compared with.
    pub against: &'static str,
    pub other: Side,
    pub hasten: Side,
    /// The other's time of an operation by hasten's: above 1 hasten is faster.
    pub time_ratio: Option<Estimate>,
    /// Hasten's 99th percentile by the other's: below 1 hasten's is shorter.
    pub p99_ratio: Option<Estimate>,
    /// The other's CPU time of an operation by hasten's.
    pub cpu_ratio: Option<Estimate>,
    pub verdict: Verdict,
    /// Time of an operation in µs, in the order of measurement.
    pub pairs: Vec<Pair>,
    #[serde(skip)]
    p99: Vec<Pair>,
    #[serde(skip)]
    cpu: Vec<Pair>,
}

/// One side over all rounds: medians.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    pub ops_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub cpu_us_per_op: f64,
    #[serde(skip)]
    rounds: Vec<[f64; 5]>,
}

/// Where the report is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub json: PathBuf,
}

impl Side {
    fn add(&mut self, round: &Round) {
        let Round { outcome, cpu } = round;
        let cpu = cpu.as_secs_f64() * 1e6 / outcome.ops.max(1) as f64;
        self.rounds.push([1e6 / outcome.us_per_op(), outcome.p50_us, outcome.p99_us, outcome.p999_us, cpu]);
        let of = |i: usize| {
            let values: Vec<f64> = self.rounds.iter().map(|round| round[i]).collect();
            (median(&values) * 10.0).round() / 10.0
        };
        (self.ops_per_s, self.p50_us, self.p99_us) = (of(0), of(1), of(2));
        (self.p999_us, self.cpu_us_per_op) = (of(3), of(4));
    }
}

impl Row {
    pub(super) fn of(case: &Case) -> Self {
        Self {
            case: case.name,
            threads: case.threads,
            against: case.other.as_str(),
            other: Side::default(),
            hasten: Side::default(),
            time_ratio: None,
            p99_ratio: None,
            cpu_ratio: None,
            verdict: Verdict::NoDifference,
            pairs: Vec::new(),
            p99: Vec::new(),
            cpu: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, other: &Round, ours: &Round) {
        self.other.add(other);
        self.hasten.add(ours);
        let pair = |of: &dyn Fn(&Round) -> f64| Pair { stock: of(other), hasten: of(ours) };
        self.pairs.push(pair(&|round| round.outcome.us_per_op()));
        // The other way round: the share that is left.
        self.p99.push(Pair { stock: ours.outcome.p99_us, hasten: other.outcome.p99_us });
        self.cpu.push(pair(&|round| round.cpu.as_secs_f64() / round.outcome.ops.max(1) as f64));
        let rounded = |pairs: &[Pair]| {
            let three = |value: f64| (value * 1e4).round() / 1e4;
            ratio(pairs).map(|Estimate { value, low, high }| Estimate {
                value: three(value),
                low: three(low),
                high: three(high),
            })
        };
        self.time_ratio = rounded(&self.pairs);
        self.p99_ratio = rounded(&self.p99);
        self.cpu_ratio = rounded(&self.cpu);
        self.verdict = self.time_ratio.map_or(Verdict::NoDifference, |ratio| Verdict::of(ratio, 0));
    }

    pub(super) fn summary(&self) -> String {
        let ratio = self.time_ratio.map_or_else(|| "one pair only".to_owned(), interval);
        format!(
            "{:.0} → {:.0} operations/s, {ratio}, {}",
            self.other.ops_per_s, self.hasten.ops_per_s, self.verdict
        )
    }
}

impl Report {
    pub(super) fn empty(options: &Options, sides: &Sides<'_>) -> Self {
        let Host(mut facts) = host::facts(&[], &Placement::of_this_machine());
        facts.retain(|(name, _)| *name != "placement");
        facts.push(("rocksdb", sides.version.clone()));
        let limit = options.limit.map_or_else(
            || "The disk is as it is.".to_owned(),
            |limit| format!("A control group limits the disk to {limit} reads and {limit} writes a second."),
        );
        let (pairs, seconds) = (options.pairs, options.round.as_secs());
        let what = match options.workload {
            Workload::ReadCache => "direct reads, 8 MiB of block cache, values of 1,000 bytes",
            Workload::Wal => "each write synced, values of 1,000 bytes",
        };
        let method = format!(
            "db_bench with {} keys on {} ({what}), in {pairs} pairs of rounds of {seconds} s, A B B A. {limit} The \
             fast device is {}.",
            options.keys,
            display(&options.data),
            display(&options.fast)
        );
        Self {
            host: Host(facts),
            workload: options.workload.as_str(),
            method,
            reproduce: options.command.clone(),
            complete: false,
            rows: Vec::new(),
        }
    }

    /// The data, in the stable format.
    pub fn json(&self) -> Result<String, BenchError> {
        Ok(serde_json::to_string_pretty(self).map_err(hasten_evidence::report::ReportError::from)? + "\n")
    }

    /// Writes `hasten-report.json`; a reader never sees half a file.
    pub fn save(&self, directory: &Path) -> Result<Saved, BenchError> {
        let json = directory.join("hasten-report.json");
        let unfinished = directory.join("hasten-report.json.tmp");
        let text = self.json()?;
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&unfinished, text))
            .and_then(|()| fs::rename(&unfinished, &json))
            .map_err(|source| hasten_evidence::report::ReportError::Write { path: json.clone(), source })?;
        Ok(Saved { json })
    }

    /// The table for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY);
        table.set_header([
            "case",
            "threads",
            "against",
            "operations/s",
            "time ratio",
            "p99 ms",
            "CPU µs/op",
            "verdict",
        ]);
        for row in &self.rows {
            let change = |of: fn(&Side) -> f64, scale: f64, decimals: usize| {
                let text = |side| format!("{:.decimals$}", of(side) / scale);
                format!("{} → {}", text(&row.other), text(&row.hasten))
            };
            table.add_row([
                row.case.to_owned(),
                row.threads.to_string(),
                row.against.to_owned(),
                change(|side| side.ops_per_s, 1.0, 0),
                row.time_ratio.map_or_else(|| "–".to_owned(), interval),
                change(|side| side.p99_us, 1e3, 2),
                change(|side| side.cpu_us_per_op, 1.0, 1),
                row.verdict.to_string(),
            ]);
        }
        for column in table.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

fn interval(ratio: Estimate) -> String {
    format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)
}

#[cfg(test)]
mod tests {
    use super::super::Other;
    use super::super::db_bench::Outcome;
    use super::*;
    use std::time::Duration;

    fn round(us: u64, p99_us: f64) -> Round {
        let outcome = Outcome {
            ops: 1000,
            elapsed: Duration::from_micros(us * 1000),
            p50_us: 1.0,
            p99_us,
            p999_us: p99_us,
            lost: 0,
        };
        Round { outcome, cpu: Duration::from_micros(us * 500) }
    }

    #[test]
    fn ratios_say_how_much_faster_and_which_share_is_left() {
        let mut row = Row::of(&Case { name: "read", other: Other::Stock, is_warm: true, threads: 1 });
        row.add(&round(400, 8.0), &round(100, 2.0));
        assert_eq!((row.time_ratio, row.verdict), (None, Verdict::NoDifference), "one pair is no evidence");
        for _ in 0..3 {
            row.add(&round(404, 8.0), &round(101, 2.0));
        }
        let value = |ratio: Option<Estimate>| ratio.expect("pairs").value;
        assert_eq!((value(row.time_ratio), value(row.p99_ratio), value(row.cpu_ratio)), (4.0, 0.25, 4.0));
        assert_eq!(row.verdict, Verdict::Faster);
        assert_eq!(row.hasten.ops_per_s, 9901.0);
    }
}
