//! Turns rounds into a row of the report.

use std::time::Duration;

use hasten_evidence::paired::{Estimate, Pair, ratio};
use hasten_evidence::report::{Bytes, Memory, Row, Side, Sizes};
use hasten_evidence::statistics::{median, trimmed_mean};
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;

use crate::drive::Outcome;
use crate::duel::{Measured, Resident, Round};

/// Half an interval's width, in per cent, above which the reader is warned.
const WIDE: f64 = 5.0;

const CURVE: [f64; 14] = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9];

/// All rounds of one side.
#[derive(Default)]
pub(crate) struct SideTotals {
    cpu: Duration,
    outcome: Outcome,
    memory: Vec<Resident>,
}

impl SideTotals {
    /// Adds a round; returns the server's cost per operation in it, in microseconds.
    pub(crate) fn add(&mut self, round: &Round) -> f64 {
        self.cpu += round.cpu;
        self.outcome.append(&round.outcome);
        self.memory.extend(round.memory);
        us_per_op(round.cpu, round.outcome.ops)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.outcome.failures.total()
    }

    /// How busy the driver's threads were.
    pub(crate) fn driver_percent(&self, threads: usize) -> f64 {
        let available = self.outcome.elapsed.as_secs_f64() * threads as f64;
        if available > 0.0 { self.outcome.driver_cpu.as_secs_f64() / available * 100.0 } else { 0.0 }
    }

    fn side(&self, costs: &[f64]) -> Side {
        let outcome = &self.outcome;
        let at = |percentile: f64| outcome.latency.value_at_quantile(percentile / 100.0);
        let curve = if outcome.latency.is_empty() { &[][..] } else { &CURVE[..] };
        Side {
            server_cpu_us_per_op: rounded(trimmed_mean(costs)),
            ops_per_s: rounded(outcome.ops_per_s()),
            p50_us: at(50.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            failures: outcome.failures.total(),
            ops: outcome.ops,
            driver_cpu_us_per_op: rounded(us_per_op(outcome.driver_cpu, outcome.ops)),
            failure_details: outcome.failures.details().collect(),
            latency: curve.iter().map(|&percentile| (percentile, at(percentile))).collect(),
            bytes: self.bytes(trimmed_mean(costs)),
            memory: self.memory(),
        }
    }

    fn memory(&self) -> Option<Memory> {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let now: Vec<f64> = self.memory.iter().map(|memory| megabytes(memory.now)).collect();
        let peak = self.memory.iter().map(|memory| memory.peak).max()?;
        Some(Memory { rss_mb: rounded(median(&now)), rss_peak_mb: rounded(megabytes(peak)) })
    }

    /// For work that turns bytes into fewer bytes and costs `us_per_op` per operation.
    fn bytes(&self, us_per_op: f64) -> Option<Bytes> {
        let Outcome { ops, content, received, .. } = self.outcome;
        (ops > 0 && received > 0 && content > 0).then(|| Bytes {
            wire_bytes_per_op: rounded(received as f64 / ops as f64),
            mb_per_cpu_s: rounded(content as f64 / ops as f64 / us_per_op),
            compression: ratio_of(content, received),
        })
    }
}

pub(crate) fn row<C>(case: C, measured: Measured) -> Row<C> {
    let Measured { stock, hasten, mut pairs, mut warnings } = measured;
    // Only a failed row has fewer than two pairs; it has a cost, but no interval.
    let single = || {
        let value = pairs.first().map_or(1.0, |pair| pair.ratio());
        Estimate { value, low: 0.0, high: value }
    };
    let cpu_ratio = ratio(&pairs).unwrap_or_else(single);
    let wide = cpu_ratio.uncertainty() * 100.0;
    if wide > WIDE {
        warnings.push(Warning::Wide { percent: wide });
    }
    let costs = |side: fn(&Pair) -> f64| pairs.iter().map(side).collect::<Vec<_>>();
    let (stock_costs, hasten_costs) = (costs(|pair| pair.stock), costs(|pair| pair.hasten));
    for pair in &mut pairs {
        *pair = Pair { stock: rounded(pair.stock), hasten: rounded(pair.hasten) };
    }
    let [value, low, high] =
        [cpu_ratio.value, cpu_ratio.low, cpu_ratio.high].map(|ratio| (finite(ratio) * 1e4).round() / 1e4);
    Row {
        case,
        stock: stock.side(&stock_costs),
        hasten: hasten.side(&hasten_costs),
        cpu_ratio: Estimate { value, low, high },
        verdict: Verdict::of(cpu_ratio, stock.failures() + hasten.failures()),
        sizes: sizes(&stock.outcome, &hasten.outcome),
        pairs,
        warnings,
    }
}

/// Both sides did the same work, but not equally often.
fn sizes(stock: &Outcome, hasten: &Outcome) -> Option<Sizes> {
    let per_op = |outcome: &Outcome| outcome.received as f64 / outcome.ops.max(1) as f64;
    let comparable = stock.received > 0 && hasten.received > 0;
    comparable.then(|| Sizes {
        wire_bytes_ratio: (per_op(hasten) / per_op(stock) * 1e4).round() / 1e4,
        worst_file: None,
    })
}

fn ratio_of(bytes: u64, by: u64) -> f64 {
    (bytes as f64 / by as f64 * 1e3).round() / 1e3
}

fn us_per_op(time: Duration, ops: u64) -> f64 {
    time.as_secs_f64() * 1e6 / ops.max(1) as f64
}

/// A tenth of a microsecond is finer than any of our clocks.
fn rounded(value: f64) -> f64 {
    (finite(value) * 10.0).round() / 10.0
}

/// The data format cannot express infinity.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
