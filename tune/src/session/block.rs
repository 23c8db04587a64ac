//! Candidates between baselines: each is compared with the baselines just before and after it, so anything that slows
//! the machine for longer slows both.

use hasten_evidence::paired::Pair;

use super::runner::{Cost, Runner};
use super::{Halt, Phase};
use crate::measure::{Disqualified, Subject};
use crate::space::Candidate;

/// Candidates between two baselines.
const STRETCH: usize = 3;

/// A pair, or why the candidate is disqualified.
pub(super) type Paired = Result<Pair, Disqualified>;

/// Measurements in a block of `candidates`.
pub(super) fn size(candidates: usize) -> usize {
    candidates + candidates.div_ceil(STRETCH) + 1
}

/// The most candidates in a block of this many measurements.
pub(super) fn capacity(measurements: usize) -> usize {
    (1..).take_while(|candidates| size(*candidates) <= measurements).last().unwrap_or(0)
}

/// Pairs each candidate with the baseline at its time, in the given order. On a halt, `pairs` still receives what was
/// measured before: it has been paid for.
pub(super) fn measure<S: Subject>(
    runner: &mut Runner<'_, S>,
    phase: Phase,
    candidates: &[Candidate],
    pairs: &mut Vec<Paired>,
) -> Result<(), Halt<S::Stop>> {
    let mut before = runner.baseline(phase)?;
    for stretch in candidates.chunks(STRETCH) {
        let mut costs = Vec::with_capacity(stretch.len());
        let after = costs_of(runner, phase, stretch, &mut costs).and_then(|()| runner.baseline(phase));
        // Without a baseline after it, a stretch uses the one before it.
        let last = *after.as_ref().unwrap_or(&before);
        for (index, cost) in costs.into_iter().enumerate() {
            let share = (index + 1) as f64 / (stretch.len() + 1) as f64;
            let baseline = (1.0 - share) * before.ln() + share * last.ln();
            pairs.push(cost.map(|hasten| Pair { stock: baseline.exp(), hasten }));
        }
        before = after?;
    }
    Ok(())
}

fn costs_of<S: Subject>(
    runner: &mut Runner<'_, S>,
    phase: Phase,
    stretch: &[Candidate],
    costs: &mut Vec<Cost>,
) -> Result<(), Halt<S::Stop>> {
    for candidate in stretch {
        costs.push(runner.cost(phase, candidate)?);
    }
    Ok(())
}
