//! Two candidates in fresh pairs.

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::stop::StopRule;
use hasten_evidence::verdict::Verdict;

use super::allotment::Allotment;
use super::runner::Runner;
use super::{Comparison, FEWEST_PAIRS, Findings, Halt, Phase};
use crate::measure::{Disqualified, Subject};
use crate::space::Candidate;

/// More add little.
const MOST_PAIRS: usize = 40;

/// Whether the winner beats the baseline in pairs that no earlier phase has used.
pub(super) fn recheck<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    winner: &Candidate,
    findings: &mut Findings,
) -> Result<bool, Halt<S::Stop>> {
    let name = runner.space.describe(winner);
    runner.phase(Phase::Recheck, &format!("{name} against the service as it is"));
    let rule = StopRule {
        min_pairs: FEWEST_PAIRS,
        max_pairs: allotment.recheck.max(spare(runner, allotment, winner) / 2).min(MOST_PAIRS),
        uncertainty: runner.settings.effect / 3.0,
    };
    let mut pairs = Vec::new();
    let (mut disqualified, mut growth) = (None, None);
    while disqualified.is_none() && !rule.is_enough(&pairs) {
        match pair(runner, winner) {
            Ok(Ok(pair)) => pairs.push(pair),
            Ok(Err(reason)) => disqualified = Some(reason),
            // What has been measured may be enough.
            Err(Halt::OutOfTime) if pairs.len() >= FEWEST_PAIRS => break,
            Err(halt) => return Err(halt),
        }
        growth = runner.growth(winner);
        let limit = runner.settings.constraints.max_growth;
        disqualified = disqualified.or_else(|| growth.and_then(|growth| growth.passes(limit).err()));
        if let Some(ratio) = ratio(&pairs) {
            runner.best(winner, ratio.value);
        }
    }
    let compared = compare(winner, &runner.space.baseline(), pairs, disqualified);
    let comparison = Comparison { growth, ..compared };
    let confirmed = comparison.verdict == Verdict::Faster;
    findings.rechecks.push(comparison);
    Ok(confirmed)
}

/// What earlier phases have left over, beyond the needs of the ablation and the recheck after it.
fn spare<S: Subject>(runner: &Runner<'_, S>, allotment: &Allotment, winner: &Candidate) -> usize {
    let needed = if winner.set().count() > 1 { allotment.ablate + 2 * allotment.recheck } else { 0 };
    runner.room().saturating_sub(needed)
}

/// Both, in random order.
fn pair<S: Subject>(
    runner: &mut Runner<'_, S>,
    winner: &Candidate,
) -> Result<Result<Pair, Disqualified>, Halt<S::Stop>> {
    let (stock, hasten) = if runner.random.bool() {
        let stock = runner.baseline(Phase::Recheck)?;
        (stock, runner.cost(Phase::Recheck, winner)?)
    } else {
        let hasten = runner.cost(Phase::Recheck, winner)?;
        (runner.baseline(Phase::Recheck)?, hasten)
    };
    Ok(hasten.map(|hasten| Pair { stock, hasten }))
}

pub(super) fn compare(
    candidate: &Candidate,
    against: &Candidate,
    pairs: Vec<Pair>,
    disqualified: Option<Disqualified>,
) -> Comparison {
    let ratio = ratio(&pairs);
    let verdict = match ratio {
        _ if disqualified.is_some() => Verdict::Failed,
        Some(ratio) => Verdict::of(ratio, 0),
        None => Verdict::NoDifference,
    };
    let (candidate, against) = (candidate.clone(), against.clone());
    Comparison { candidate, against, pairs, ratio, verdict, growth: None, disqualified }
}
