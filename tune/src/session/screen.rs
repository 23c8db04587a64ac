//! Each level of each knob alone, in rounds of random order; harmful and useless levels drop out early.

use std::collections::BTreeSet;

use hasten_evidence::paired::Pair;
use hasten_evidence::verdict::NOISE_FLOOR;

use super::allotment::Allotment;
use super::block;
use super::runner::Runner;
use super::{Fate, Findings, Growth, Halt, Phase, Screened};
use crate::measure::{Disqualified, Subject};
use crate::statistics::{Effect, effects, holm, logs};

/// One disturbed measurement must not eliminate a setting.
const FEWEST_ROUNDS: usize = 2;
/// More add little about a level known to help or not to,
const ENOUGH_ROUNDS: usize = 12;
/// and these are enough for any level.
const MOST_ROUNDS: usize = 30;
/// The error probability of a claim, for all levels together.
const LEVEL: f64 = 0.05;
/// The confidence of the bound that must lie below the requested gain. It is checked after each round: for the first
/// check at which it holds by chance to be right in 95 of 100 cases, each needs more than that.
const RULED_OUT: f64 = 0.99;
/// How many merely promising levels proceed to the search.
const MOST_PROMISING: usize = 3;

/// A level worth more measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promising {
    pub(super) knob: usize,
    pub(super) level: usize,
    pub(super) mean: f64,
}

/// A level of a knob.
struct Arm {
    knob: usize,
    level: usize,
    pairs: Vec<Pair>,
    growth: Option<Growth>,
    state: State,
}

impl Arm {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Waiting | State::Racing)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Waiting for room.
    Waiting,
    Racing,
    /// Known well enough, or not worth more.
    Done,
    Disqualified(Disqualified),
}

/// The levels that proceed, the best first, and the measurements left for them.
pub(super) fn run<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    findings: &mut Findings,
) -> Result<(Vec<Promising>, Allotment), Halt<S::Stop>> {
    let mut arms = arms(runner);
    let noise = findings.noise.as_ref().map(|noise| logs(&noise.pairs)).unwrap_or_default();
    runner.phase(Phase::Screen, &format!("{} settings, each alone", arms.len()));
    let (mut later, mut used) = (*allotment, 0);
    loop {
        let effects = effects_of(&arms, &noise);
        let round = next_round(&arms, &effects, left(runner, allotment, &later, used));
        if round.is_empty() || has_enough(&arms, allotment, &later, findings) {
            let is_waiting = count(&arms, &State::Waiting) > 0;
            let is_open = arms.iter().any(Arm::is_open);
            if round.is_empty() && is_open && later.give_up(promising_knobs(findings), is_waiting) {
                continue;
            }
            break;
        }
        used += block::size(round.len());
        let measured = measure_round(runner, &mut arms, round);
        check_bytes(runner, &mut arms);
        retire(&mut arms, &noise, runner.settings.effect);
        findings.screened = judge(&arms, &noise, runner.settings.effect);
        show_best(runner, findings);
        measured?;
    }
    tell_untried(runner, &arms);
    let mut promising = promising(findings);
    if later.recheck == 0 {
        // They turned up when there was no time left for a proof.
        promising.clear();
    } else if promising_knobs(findings) > 1 {
        later.regain(allotment, runner.room());
    }
    Ok((promising, later))
}

/// The share of screening; once later phases have given up theirs, everything they do not need, including savings so
/// far.
fn left<S: Subject>(runner: &Runner<'_, S>, allotment: &Allotment, later: &Allotment, used: usize) -> usize {
    if later == allotment {
        allotment.screen.saturating_sub(used)
    } else {
        runner.room().saturating_sub(later.needed())
    }
}

/// Whether there is something to combine, which is a better use of the remaining time.
fn has_enough(arms: &[Arm], allotment: &Allotment, later: &Allotment, findings: &Findings) -> bool {
    later != allotment && count(arms, &State::Waiting) == 0 && promising_knobs(findings) > 1
}

/// All levels, the most promising first.
fn arms<S: Subject>(runner: &Runner<'_, S>) -> Vec<Arm> {
    let arm = |(knob, level)| Arm { knob, level, pairs: Vec::new(), growth: None, state: State::Waiting };
    runner.space.in_order().into_iter().map(arm).collect()
}

/// Which levels are measured next: all, if there is room. Otherwise those that look good at first sight, for a second
/// look, together with untried ones in their order; and then the best so far. One look at many settings finds a large
/// effect sooner than two looks at half of them.
fn next_round(arms: &[Arm], effects: &[Option<Effect>], left: usize) -> Vec<usize> {
    let most = block::capacity(left);
    let of = |state: State| (0..arms.len()).filter(|&arm| arms[arm].state == state).collect::<Vec<_>>();
    let (waiting, mut racing) = (of(State::Waiting), of(State::Racing));
    if waiting.len() + racing.len() <= most {
        return [racing, waiting].concat();
    }
    let mean = |arm: usize| effects[arm].map_or(0.0, |effect| effect.mean);
    racing.sort_by(|&a, &b| mean(b).total_cmp(&mean(a)));
    if !waiting.is_empty() {
        let looks_good =
            |arm: &usize| arms[*arm].pairs.len() < FEWEST_ROUNDS && effects[*arm].is_some_and(is_better);
        racing.retain(looks_good);
    }
    racing.into_iter().chain(waiting).take(most).collect()
}

fn count(arms: &[Arm], state: &State) -> usize {
    arms.iter().filter(|arm| arm.state == *state).count()
}

fn tell_untried<S: Subject>(runner: &mut Runner<'_, S>, arms: &[Arm]) {
    let untried = count(arms, &State::Waiting);
    if untried > 0 {
        runner.remark(&format!(
            "{untried} of {} settings are not tried for lack of time: give a larger --budget, or choose with --only",
            arms.len()
        ));
    }
}

fn measure_round<S: Subject>(
    runner: &mut Runner<'_, S>,
    arms: &mut [Arm],
    mut round: Vec<usize>,
) -> Result<(), Halt<S::Stop>> {
    runner.random.shuffle(&mut round);
    let baseline = runner.space.baseline();
    let candidates: Vec<_> =
        round.iter().map(|&arm| baseline.with(arms[arm].knob, arms[arm].level)).collect();
    let mut costs = Vec::new();
    let measured = block::measure(runner, Phase::Screen, &candidates, &mut costs);
    for (arm, cost) in round.into_iter().zip(costs) {
        match cost {
            Ok(pair) => {
                arms[arm].pairs.push(pair);
                arms[arm].state = State::Racing;
            }
            Err(reason) => arms[arm].state = State::Disqualified(reason),
        }
    }
    measured
}

/// Removes levels that make answers larger than allowed.
fn check_bytes<S: Subject>(runner: &Runner<'_, S>, arms: &mut [Arm]) {
    let baseline = runner.space.baseline();
    for arm in arms.iter_mut().filter(|arm| arm.state == State::Racing) {
        arm.growth = runner.growth(&baseline.with(arm.knob, arm.level));
        let limit = runner.settings.constraints.max_growth;
        if let Some(Err(reason)) = arm.growth.map(|growth| growth.passes(limit)) {
            arm.state = State::Disqualified(reason);
        }
    }
}

/// Removes levels unlikely to gain as much as requested, and those known well enough.
fn retire(arms: &mut [Arm], noise: &[f64], wanted: f64) {
    let effects = effects_of(arms, noise);
    for (arm, effect) in arms.iter_mut().zip(effects).filter(|(arm, _)| arm.state == State::Racing) {
        let rounds = arm.pairs.len();
        let is_hopeless = effect.is_some_and(|effect| is_ruled_out(arm, effect, wanted));
        let is_known =
            rounds >= ENOUGH_ROUNDS && effect.is_some_and(|effect| effect.bound(0.01) > NOISE_FLOOR.ln_1p());
        if is_hopeless || is_known || rounds >= MOST_ROUNDS {
            arm.state = State::Done;
        }
    }
}

/// Whether a gain of the requested size is ruled out.
fn is_ruled_out(arm: &Arm, effect: Effect, wanted: f64) -> bool {
    arm.pairs.len() >= FEWEST_ROUNDS && effect.bound(RULED_OUT) < wanted.ln_1p()
}

/// The spread comes from all levels and the service against itself: so one round is informative, too.
fn effects_of(arms: &[Arm], noise: &[f64]) -> Vec<Option<Effect>> {
    let logs: Vec<Vec<f64>> = arms.iter().map(|arm| logs(&arm.pairs)).collect();
    let groups = logs.iter().map(Vec::as_slice).chain([noise]).collect::<Vec<_>>();
    let mut effects = effects(&groups);
    effects.truncate(arms.len());
    effects
}

fn judge(arms: &[Arm], noise: &[f64], wanted: f64) -> Vec<Screened> {
    let effects = effects_of(arms, noise);
    let tested: Vec<f64> = effects.iter().flatten().map(|effect| effect.p()).collect();
    let mut corrected = holm(&tested).into_iter();
    let judged = |(arm, effect): (&Arm, Option<Effect>)| {
        let p = effect.and_then(|_| corrected.next());
        let fate = match (&arm.state, effect, p) {
            (State::Disqualified(reason), _, _) => Fate::Disqualified { reason: reason.clone() },
            (_, Some(effect), Some(p)) => fate(effect, p),
            _ => Fate::NotTried,
        };
        Screened {
            knob: arm.knob,
            level: arm.level,
            pairs: arm.pairs.clone(),
            ratio: effect.map(Effect::ratio),
            p,
            growth: arm.growth,
            ruled_out: effect.is_some_and(|effect| is_ruled_out(arm, effect, wanted)),
            fate,
        }
    };
    arms.iter().zip(effects).map(judged).collect()
}

fn fate(effect: Effect, corrected: f64) -> Fate {
    match () {
        () if is_better(effect) && corrected < LEVEL => Fate::Kept,
        () if is_better(effect) => Fate::Promising,
        () if effect.mean < -NOISE_FLOOR.ln_1p() && corrected < LEVEL => Fate::Harmful,
        () => Fate::Null,
    }
}

/// As far as one level alone can show.
fn is_better(effect: Effect) -> bool {
    effect.mean > NOISE_FLOOR.ln_1p() && effect.p() < LEVEL
}

fn promising(findings: &Findings) -> Vec<Promising> {
    let with = |wanted: Fate| {
        let chosen = findings.screened.iter().filter(move |screened| screened.fate == wanted);
        let mut chosen: Vec<Promising> = chosen.filter_map(Promising::of).collect();
        chosen.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        chosen
    };
    let (mut kept, mut maybe) = (with(Fate::Kept), with(Fate::Promising));
    maybe.truncate(MOST_PROMISING);
    kept.extend(maybe);
    kept
}

/// How many knobs proceed: with two there is something to combine.
fn promising_knobs(findings: &Findings) -> usize {
    promising(findings).iter().map(|one| one.knob).collect::<BTreeSet<_>>().len()
}

impl Promising {
    fn of(screened: &Screened) -> Option<Self> {
        let mean = screened.ratio?.value.ln();
        Some(Self { knob: screened.knob, level: screened.level, mean })
    }
}

fn show_best<S: Subject>(runner: &mut Runner<'_, S>, findings: &Findings) {
    let value = |screened: &&Screened| screened.ratio.map_or(0.0, |ratio| ratio.value);
    let standing =
        findings.screened.iter().filter(|screened| matches!(screened.fate, Fate::Kept | Fate::Promising));
    if let Some(best) = standing.max_by(|a, b| value(a).total_cmp(&value(b))) {
        let candidate = runner.space.baseline().with(best.knob, best.level);
        runner.best(&candidate, value(&best));
    }
}
