//! The winner without one of its knobs, for each of them: a knob whose removal costs nothing does not stay.

use hasten_evidence::paired::Pair;
use hasten_evidence::verdict::Verdict;

use super::allotment::Allotment;
use super::pairs::compare;
use super::runner::{Cost, Runner};
use super::{Ablation, FEWEST_PAIRS, Findings, Halt, Phase};
use crate::measure::{Disqualified, Subject};
use crate::space::Candidate;
use crate::statistics::{effects, holm, logs};

/// More add little.
const MOST_ROUNDS: usize = 16;
/// The error probability for all knobs of the winner together.
const LEVEL: f64 = 0.05;

/// The winner, reduced to the knobs that contribute.
pub(super) fn run<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    winner: &Candidate,
    findings: &mut Findings,
) -> Result<Candidate, Halt<S::Stop>> {
    let mut winner = winner.clone();
    let mut left = allotment.ablate;
    while winner.set().count() > 1 {
        let rounds = (left / (winner.set().count() + 1)).min(MOST_ROUNDS);
        left = left.saturating_sub(rounds * (winner.set().count() + 1));
        let ablations = ablate(runner, &winner, rounds)?;
        let idle: Vec<(usize, f64)> = ablations.iter().filter(|one| !one.carries).map(weight).collect();
        findings.ablations.extend(ablations);
        if idle.is_empty() {
            break;
        }
        // If two knobs do the same, removing either costs nothing: remove one, then look again.
        if idle.len() > 1 && left >= FEWEST_PAIRS * winner.set().count() {
            winner = winner.with(order(&idle)[0], 0);
            continue;
        }
        let stays = usize::from(idle.len() == winner.set().count());
        let goes = order(&idle).into_iter().rev().skip(stays);
        winner = goes.fold(winner.clone(), |winner, knob| winner.with(knob, 0));
        break;
    }
    Ok(winner)
}

fn weight(ablation: &Ablation) -> (usize, f64) {
    (ablation.knob, ablation.comparison.ratio.map_or(0.0, |ratio| ratio.value))
}

/// The weakest first.
fn order(idle: &[(usize, f64)]) -> Vec<usize> {
    let mut idle = idle.to_vec();
    idle.sort_by(|a, b| a.1.total_cmp(&b.1));
    idle.into_iter().map(|(knob, _)| knob).collect()
}

/// The winner without one knob, and the results.
struct Without {
    knob: usize,
    candidate: Candidate,
    pairs: Vec<Pair>,
    /// The service does not even run correctly without it.
    disqualified: Option<Disqualified>,
}

fn ablate<S: Subject>(
    runner: &mut Runner<'_, S>,
    winner: &Candidate,
    rounds: usize,
) -> Result<Vec<Ablation>, Halt<S::Stop>> {
    let count = winner.set().count();
    runner.phase(Phase::Ablate, &format!("the winner without each of its {count} knobs"));
    let without =
        |(knob, _)| Without { knob, candidate: winner.with(knob, 0), pairs: Vec::new(), disqualified: None };
    let mut all: Vec<Without> = winner.set().map(without).collect();
    for _ in 0..rounds {
        round(runner, winner, &mut all)?;
    }
    Ok(judge(winner, all))
}

/// The winner and all variants without one knob, in random order.
fn round<S: Subject>(
    runner: &mut Runner<'_, S>,
    winner: &Candidate,
    all: &mut [Without],
) -> Result<(), Halt<S::Stop>> {
    let mut order: Vec<Option<usize>> = (0..all.len()).map(Some).chain([None]).collect();
    runner.random.shuffle(&mut order);
    let mut costs: Vec<Option<Cost>> = vec![None; all.len()];
    let mut complete = None;
    for place in order {
        match place {
            Some(index) => {
                let candidate = all[index].candidate.clone();
                costs[index] = Some(runner.cost(Phase::Ablate, &candidate)?);
            }
            None => complete = runner.cost(Phase::Ablate, winner)?.ok(),
        }
    }
    for (without, cost) in all.iter_mut().zip(costs.into_iter().flatten()) {
        match (cost, complete) {
            (Ok(stock), Some(hasten)) => without.pairs.push(Pair { stock, hasten }),
            (Err(reason), _) => without.disqualified = Some(reason),
            (Ok(_), None) => {}
        }
    }
    Ok(())
}

fn judge(winner: &Candidate, all: Vec<Without>) -> Vec<Ablation> {
    let logs: Vec<Vec<f64>> = all.iter().map(|one| logs(&one.pairs)).collect();
    let effects = effects(&logs.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let corrected = holm(&effects.iter().map(|effect| effect.map_or(1.0, |e| e.p())).collect::<Vec<_>>());
    let ablation = |(without, p): (Without, f64)| {
        let comparison = compare(winner, &without.candidate, without.pairs, without.disqualified);
        let carries = match comparison.verdict {
            // Without this knob the others do harm.
            Verdict::Failed => true,
            verdict => verdict == Verdict::Faster && p < LEVEL,
        };
        Ablation { knob: without.knob, comparison, p: Some(p), carries }
    };
    all.into_iter().zip(corrected).map(ablation).collect()
}
