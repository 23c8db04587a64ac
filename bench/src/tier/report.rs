//! The report: data first, a table as a view of it.

use std::fs;
use std::path::{Path, PathBuf};

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use hasten_evidence::paired::{Estimate, Pair, ratio};
use hasten_evidence::report::{Host, ReportError};
use hasten_evidence::statistics::median;
use hasten_evidence::verdict::Verdict;
use serde::Serialize;

use super::redis::{self, Tiers};
use super::{Case, Options, Round};
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
    /// The size of the values.
    pub values: &'static str,
    pub operation: &'static str,
    /// Requests of a client at a time.
    pub pipeline: usize,
    /// What hasten is compared with.
    pub against: &'static str,
    pub other: Side,
    pub hasten: Side,
    /// The far part of all bytes, and what it should be.
    pub share: f64,
    pub target_share: f64,
    /// Stock's CPU time of a request by hasten's: above 1 hasten needs less.
    pub cpu_ratio: Option<Estimate>,
    /// Stock's time of a request by hasten's: above 1 hasten is faster.
    pub time_ratio: Option<Estimate>,
    /// Hasten's 99.9th percentile by stock's: below 1 hasten's is shorter.
    pub p999_ratio: Option<Estimate>,
    pub verdict: Verdict,
    /// CPU time of a request in µs, in the order of measurement.
    pub pairs: Vec<Pair>,
    #[serde(skip)]
    time: Vec<Pair>,
    #[serde(skip)]
    p999: Vec<Pair>,
}

/// One side over all rounds: medians.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    pub ops_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub cpu_us_per_op: f64,
    /// Resident memory after the last round, in millions of bytes.
    pub rss_mb: f64,
    #[serde(skip)]
    rounds: Vec<[f64; 5]>,
}

/// Where the report is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub json: PathBuf,
}

fn cpu_us(round: &Round) -> f64 {
    round.cpu.as_secs_f64() * 1e6 / round.outcome.ops.max(1) as f64
}

fn rounded(value: f64, digits: f64) -> f64 {
    (value * digits).round() / digits
}

impl Side {
    fn add(&mut self, round: &Round) {
        let outcome = &round.outcome;
        self.rounds.push([
            1e6 / outcome.us_per_op(),
            outcome.p50_us,
            outcome.p99_us,
            outcome.p999_us,
            cpu_us(round),
        ]);
        let of = |i: usize, digits| {
            let values: Vec<f64> = self.rounds.iter().map(|round| round[i]).collect();
            rounded(median(&values), digits)
        };
        (self.ops_per_s, self.p50_us, self.p99_us) = (of(0, 1.0), of(1, 10.0), of(2, 10.0));
        (self.p999_us, self.cpu_us_per_op) = (of(3, 10.0), of(4, 1000.0));
    }
}

impl Row {
    pub(super) fn of(case: Case) -> Self {
        Self {
            values: case.values.name,
            operation: case.operation.as_str(),
            pipeline: case.pipeline,
            against: "stock",
            other: Side::default(),
            hasten: Side::default(),
            share: 0.0,
            target_share: 0.0,
            cpu_ratio: None,
            time_ratio: None,
            p999_ratio: None,
            verdict: Verdict::NoDifference,
            pairs: Vec::new(),
            time: Vec::new(),
            p999: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, stock: &Round, ours: &Round) {
        self.other.add(stock);
        self.hasten.add(ours);
        let pair = |of: &dyn Fn(&Round) -> f64| Pair { stock: of(stock), hasten: of(ours) };
        self.pairs.push(pair(&cpu_us));
        self.time.push(pair(&|round| round.outcome.us_per_op()));
        // The other way round: how much longer it is.
        self.p999.push(Pair { stock: ours.outcome.p999_us, hasten: stock.outcome.p999_us });
        let of = |pairs: &[Pair]| {
            ratio(pairs).map(|Estimate { value, low, high }| Estimate {
                value: rounded(value, 1e4),
                low: rounded(low, 1e4),
                high: rounded(high, 1e4),
            })
        };
        (self.cpu_ratio, self.time_ratio) = (of(&self.pairs), of(&self.time));
        self.p999_ratio = of(&self.p999);
        self.verdict = self.cpu_ratio.map_or(Verdict::NoDifference, |ratio| Verdict::of(ratio, 0));
    }

    pub(super) fn memory(&mut self, stock_mb: f64, hasten_mb: f64, tiers: Tiers) {
        (self.other.rss_mb, self.hasten.rss_mb) = (rounded(stock_mb, 10.0), rounded(hasten_mb, 10.0));
        (self.share, self.target_share) = (rounded(tiers.share, 1e4), rounded(tiers.target, 1e4));
    }

    pub(super) fn summary(&self) -> String {
        let ratio = self.cpu_ratio.map_or_else(|| "one pair only".to_owned(), interval);
        format!(
            "{:.2} → {:.2} CPU µs/request, {ratio}, {}; {:.1} % far",
            self.other.cpu_us_per_op,
            self.hasten.cpu_us_per_op,
            self.verdict,
            self.share * 100.0
        )
    }
}

impl Report {
    pub(super) fn empty(options: &Options, placement: &Placement) -> Result<Self, BenchError> {
        let Host(mut facts) = host::facts(&[], placement);
        let (redis, allocator) = redis::versions()?;
        facts.extend([("redis", redis), ("allocator", allocator)]);
        let method = format!(
            "Redis without persistence, as it is and under `hasten run --tier {}`, with up to {} keys and at most 256 MiB of \
             values; 16 clients, random keys, every answer checked; {} pairs of rounds of {} s, A B B A.",
            options.tier,
            options.keys,
            options.pairs,
            options.round.as_secs_f64()
        );
        Ok(Self {
            host: Host(facts),
            workload: "tier",
            method,
            reproduce: options.command.clone(),
            complete: false,
            rows: Vec::new(),
        })
    }

    /// The data, in the stable format.
    pub fn json(&self) -> Result<String, BenchError> {
        Ok(serde_json::to_string_pretty(self).map_err(ReportError::from)? + "\n")
    }

    /// Writes `hasten-report.json`; a reader never sees half a file.
    pub fn save(&self, directory: &Path) -> Result<Saved, BenchError> {
        let json = directory.join("hasten-report.json");
        let unfinished = directory.join("hasten-report.json.tmp");
        let text = self.json()?;
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&unfinished, text))
            .and_then(|()| fs::rename(&unfinished, &json))
            .map_err(|source| ReportError::Write { path: json.clone(), source })?;
        Ok(Saved { json })
    }

    /// The table for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY);
        table.set_header([
            "values",
            "request",
            "at a time",
            "CPU µs/request",
            "CPU ratio",
            "requests/s",
            "p99.9 µs",
            "far",
            "RSS MB",
            "verdict",
        ]);
        for row in &self.rows {
            let change = |of: fn(&Side) -> f64, decimals: usize| {
                format!("{:.decimals$} → {:.decimals$}", of(&row.other), of(&row.hasten))
            };
            table.add_row([
                row.values.to_owned(),
                row.operation.to_owned(),
                row.pipeline.to_string(),
                change(|side| side.cpu_us_per_op, 2),
                row.cpu_ratio.map_or_else(|| "–".to_owned(), interval),
                change(|side| side.ops_per_s, 0),
                change(|side| side.p999_us, 0),
                format!("{:.1} % of {:.1}", row.share * 100.0, row.target_share * 100.0),
                change(|side| side.rss_mb, 0),
                row.verdict.to_string(),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

fn interval(ratio: Estimate) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::drive::Outcome;
    use super::super::{ALL, Operation};
    use super::*;

    fn round(cpu_us: u64, p999_us: f64) -> Round {
        let elapsed = Duration::from_micros(cpu_us * 1000);
        let outcome = Outcome { ops: 1000, elapsed, p50_us: 1.0, p99_us: 2.0, p999_us };
        Round { outcome, cpu: Duration::from_micros(cpu_us * 1000) }
    }

    #[test]
    fn ratios_are_of_cpu_time_and_of_the_longest_answers() {
        let mut row = Row::of(Case { values: ALL[0], operation: Operation::Set, pipeline: 1 });
        row.add(&round(400, 8.0), &round(500, 10.0));
        assert_eq!((row.cpu_ratio, row.verdict), (None, Verdict::NoDifference), "one pair is no evidence");
        for _ in 0..3 {
            row.add(&round(404, 8.0), &round(505, 10.0));
        }
        let value = |ratio: Option<Estimate>| ratio.expect("pairs").value;
        assert_eq!((value(row.cpu_ratio), value(row.time_ratio), value(row.p999_ratio)), (0.8, 0.8, 1.25));
        assert_eq!(row.verdict, Verdict::Slower);
        assert_eq!(row.hasten.cpu_us_per_op, 505.0);
    }
}
