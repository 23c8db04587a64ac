//! Combinations of what helped alone: proposed by a model, measured between baselines, the best measured again.

mod proposer;
mod untried;

use std::collections::BTreeMap;

use hasten_evidence::paired::Pair;
use hasten_evidence::statistics::trimmed_mean;

use super::allotment::Allotment;
use super::block::{self, Paired};
use super::runner::Runner;
use super::screen::Promising;
use super::{Findings, Halt, Phase, Searched};
use crate::measure::{Disqualified, Subject};
use crate::space::Candidate;
use crate::statistics::{Effect, effects, logs};
use proposer::{Proposer, Tpe};
use untried::Untried;

/// Candidates proposed at a time.
const BATCH: usize = 3;

/// What a proposer learns: costs, as it sees them.
type Learnt = Vec<(Candidate, f64)>;

/// The results of combinations so far.
type Seen = BTreeMap<Candidate, Result<Vec<Pair>, Disqualified>>;

/// The winner; `None` if every combination was disqualified.
pub(super) fn run<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    promising: &[Promising],
    findings: &mut Findings,
) -> Result<Option<Candidate>, Halt<S::Stop>> {
    let baseline = runner.space.baseline();
    let knobs = knobs(promising);
    let best = &promising[0];
    if knobs.len() < 2 || allotment.most_knobs() < 2 {
        return Ok(Some(baseline.with(best.knob, best.level)));
    }
    let mut seen = screened(findings, promising, &baseline);
    let mut proposer = Tpe::new(&knobs, &baseline, runner.settings.seed);
    for (candidate, pairs) in &seen {
        if let Ok(pairs) = pairs {
            proposer.learn(candidate, -trimmed_mean(&logs(pairs)));
        }
    }
    runner.phase(Phase::Search, &format!("combinations of {} knobs", knobs.len()));
    let mut left = allotment.search;
    let heats = allotment.search / 3;
    let mut untried = Untried::new(&knobs, promising, &baseline, allotment.most_knobs());
    while left >= heats.max(block::size(BATCH)) {
        let batch: Vec<Candidate> = (0..BATCH)
            .filter_map(|_| untried.or_next(proposer.propose()).or_else(|| best_of(&seen, 1).pop()))
            .collect();
        left -= block::size(BATCH);
        let (learnt, halt) = measured(runner, &batch, &mut seen);
        for (candidate, cost) in learnt {
            proposer.learn(&candidate, cost);
        }
        show(runner, &seen, findings);
        halt?;
    }
    while left >= block::size(BATCH) {
        left -= block::size(BATCH);
        let batch = best_of(&seen, BATCH);
        let (_, halt) = measured(runner, &batch, &mut seen);
        show(runner, &seen, findings);
        halt?;
    }
    Ok(winner(&seen))
}

/// Levels by knob, each after level 0.
fn knobs(promising: &[Promising]) -> BTreeMap<usize, Vec<usize>> {
    let mut knobs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for Promising { knob, level, .. } in promising {
        knobs.entry(*knob).or_insert_with(|| vec![0]).push(*level);
    }
    knobs
}

/// Screening's results for single levels.
fn screened(findings: &Findings, promising: &[Promising], baseline: &Candidate) -> Seen {
    let known = findings.screened.iter().filter(|screened| {
        promising.iter().any(|one| (one.knob, one.level) == (screened.knob, screened.level))
    });
    known.map(|screened| (baseline.with(screened.knob, screened.level), Ok(screened.pairs.clone()))).collect()
}

/// Measures a batch, up to a halt; each candidate with what a proposer is to learn.
fn measured<S: Subject>(
    runner: &mut Runner<'_, S>,
    batch: &[Candidate],
    seen: &mut Seen,
) -> (Learnt, Result<(), Halt<S::Stop>>) {
    let mut costs = Vec::new();
    let halt = block::measure(runner, Phase::Search, batch, &mut costs);
    let learn = |(candidate, cost): (&Candidate, Paired)| {
        let known = seen.entry(candidate.clone()).or_insert_with(|| Ok(Vec::new()));
        match (cost, &mut *known) {
            (Ok(pair), Ok(pairs)) => {
                pairs.push(pair);
                (candidate.clone(), -pair.ratio().ln())
            }
            (Err(reason), _) => {
                *known = Err(reason);
                (candidate.clone(), 1.0)
            }
            // One disqualification is enough, whatever the other time.
            (Ok(_), Err(_)) => (candidate.clone(), 1.0),
        }
    };
    (batch.iter().zip(costs).map(learn).collect(), halt)
}

/// The candidates with the highest lower bound, the best first: one good round proves nothing.
fn best_of(seen: &Seen, count: usize) -> Vec<Candidate> {
    let mut standing = standing(seen);
    standing.sort_by(|a, b| b.1.bound(0.25).total_cmp(&a.1.bound(0.25)));
    standing.into_iter().take(count).map(|(candidate, _)| candidate).collect()
}

/// Among those that are indistinguishable from the best, the one with the fewest knobs: of two that do the same
/// one is enough.
fn winner(seen: &Seen) -> Option<Candidate> {
    let standing = standing(seen);
    let (_, best) = standing.iter().max_by(|a, b| a.1.bound(0.25).total_cmp(&b.1.bound(0.25)))?;
    let enough = best.mean - best.error;
    let as_good = standing.iter().filter(|(_, effect)| effect.mean >= enough);
    let simplest = as_good.min_by(|(a, first), (b, second)| {
        a.set().count().cmp(&b.set().count()).then(second.mean.total_cmp(&first.mean))
    });
    simplest.map(|(candidate, _)| candidate.clone())
}

/// Candidates that were not disqualified, with their effects.
fn standing(seen: &Seen) -> Vec<(Candidate, Effect)> {
    let logs = |known: &Result<Vec<Pair>, Disqualified>| known.as_ref().ok().map(|pairs| logs(pairs));
    let standing: Vec<(&Candidate, Vec<f64>)> =
        seen.iter().filter_map(|(candidate, known)| Some((candidate, logs(known)?))).collect();
    let effects = effects(&standing.iter().map(|(_, logs)| &logs[..]).collect::<Vec<_>>());
    let pairs = standing.into_iter().zip(effects);
    pairs.filter_map(|((candidate, _), effect)| Some((candidate.clone(), effect?))).collect()
}

fn show<S: Subject>(runner: &mut Runner<'_, S>, seen: &Seen, findings: &mut Findings) {
    findings.searched = seen
        .iter()
        .map(|(candidate, known)| Searched {
            candidate: candidate.clone(),
            pairs: known.iter().flatten().copied().collect(),
            disqualified: known.as_ref().err().cloned(),
        })
        .collect();
    if let Some(best) = winner(seen)
        && let Some(Ok(pairs)) = seen.get(&best)
    {
        runner.best(&best, trimmed_mean(&logs(pairs)).exp());
    }
}
