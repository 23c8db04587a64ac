//! From rounds to a row of the report.

use std::time::Duration;

use hasten_evidence::paired::{Estimate, Pair, ratio};
use hasten_evidence::report::{Row, Side};
use hasten_evidence::statistics::trimmed_mean;
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;

use super::TlsCase;
use super::duel::Round;
use crate::drive::Outcome;

/// Half an interval's width, in per cent, above which the reader is warned.
const WIDE: f64 = 5.0;

const CURVE: [f64; 14] = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9];

/// All rounds of one side.
#[derive(Default)]
pub(super) struct SideTotals {
    cpu: Duration,
    outcome: Outcome,
}

impl SideTotals {
    /// Adds a round; returns what an operation cost the server in it, in microseconds.
    pub(super) fn add(&mut self, round: &Round) -> f64 {
        self.cpu += round.cpu;
        self.outcome.append(&round.outcome);
        us_per_op(round.cpu, round.outcome.ops)
    }

    pub(super) fn failures(&self) -> u64 {
        self.outcome.failures.total()
    }

    /// The server's CPU time.
    pub(super) fn cpu(&self) -> Duration {
        self.cpu
    }

    /// How busy the driver's threads were.
    pub(super) fn driver_percent(&self, threads: usize) -> f64 {
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
        }
    }
}

pub(super) fn row(
    case: TlsCase,
    stock: &SideTotals,
    hasten: &SideTotals,
    mut pairs: Vec<Pair>,
    mut warnings: Vec<Warning>,
) -> Row<TlsCase> {
    // Only a row that failed has less than two pairs; it has a cost, but no interval.
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
        pairs,
        warnings,
    }
}

fn us_per_op(time: Duration, ops: u64) -> f64 {
    time.as_secs_f64() * 1e6 / ops.max(1) as f64
}

/// A tenth of a microsecond is finer than any of our clocks.
fn rounded(value: f64) -> f64 {
    (finite(value) * 10.0).round() / 10.0
}

/// The data format has no words for infinity.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
