//! Each level of each knob alone, in rounds of random order; what is harmful or null leaves the race early.

use hasten_evidence::paired::Pair;
use hasten_evidence::verdict::NOISE_FLOOR;

use super::allotment::Allotment;
use super::block;
use super::runner::Runner;
use super::{Fate, Findings, Halt, Phase, Screened};
use crate::measure::{Disqualified, Subject};
use crate::space::Dimension;
use crate::statistics::{Effect, effects, holm, logs};

/// With one round there is no spread.
const FEWEST_ROUNDS: usize = 2;
/// More say little more of what is known to help or not to,
const ENOUGH_ROUNDS: usize = 12;
/// and of anything.
const MOST_ROUNDS: usize = 30;
/// The error probability of a claim, for all levels together.
const LEVEL: f64 = 0.05;
/// How many that only look promising go on with the search.
const MOST_PROMISING: usize = 3;

/// A level that is worth more measurements.
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
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// For room.
    Waiting,
    Racing,
    /// It is known well enough, or not worth more.
    Done,
    Disqualified(Disqualified),
}

/// What goes on, the best first, and what is left for it.
pub(super) fn run<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    findings: &mut Findings,
) -> Result<(Vec<Promising>, Allotment), Halt<S::Stop>> {
    let mut arms = arms(runner);
    runner.phase(Phase::Screen, &format!("{} settings, each alone", arms.len()));
    let (mut left, mut later) = (allotment.screen, *allotment);
    let mut has_given_up = false;
    loop {
        admit(&mut arms, left);
        let racing = count(&arms, &State::Racing);
        if racing == 0 || left < block::size(racing) {
            // What was set aside for combinations is of no use while nothing helps alone.
            if has_given_up || !promising(findings).is_empty() {
                break;
            }
            left += later.give_up_combinations();
            has_given_up = true;
            continue;
        }
        left -= block::size(racing);
        let measured = measure_round(runner, &mut arms);
        retire(&mut arms, runner.settings.effect);
        findings.screened = judge(&arms, runner.settings.effect);
        show_best(runner, findings);
        measured?;
    }
    tell_untried(runner, &arms);
    Ok((promising(findings), if has_given_up { later } else { *allotment }))
}

/// All levels, in the registry's order, which is that of importance.
fn arms<S: Subject>(runner: &Runner<'_, S>) -> Vec<Arm> {
    let levels = |(knob, dimension): (usize, &Dimension)| {
        (1..dimension.levels.len()).map(move |level| Arm {
            knob,
            level,
            pairs: Vec::new(),
            state: State::Waiting,
        })
    };
    runner.space.dimensions.iter().enumerate().flat_map(levels).collect()
}

/// As many as there is room for, when each needs its first rounds.
fn admit(arms: &mut [Arm], left: usize) {
    let mut racing = count(arms, &State::Racing);
    for arm in arms.iter_mut().filter(|arm| arm.state == State::Waiting) {
        racing += 1;
        if FEWEST_ROUNDS * block::size(racing) > left {
            return;
        }
        arm.state = State::Racing;
    }
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

fn measure_round<S: Subject>(runner: &mut Runner<'_, S>, arms: &mut [Arm]) -> Result<(), Halt<S::Stop>> {
    let mut order: Vec<usize> = (0..arms.len()).filter(|&arm| arms[arm].state == State::Racing).collect();
    runner.random.shuffle(&mut order);
    let baseline = runner.space.baseline();
    let candidates: Vec<_> =
        order.iter().map(|&arm| baseline.with(arms[arm].knob, arms[arm].level)).collect();
    let costs = block::measure(runner, Phase::Screen, &candidates)?;
    for (arm, cost) in order.into_iter().zip(costs) {
        match cost {
            Ok(pair) => arms[arm].pairs.push(pair),
            Err(reason) => arms[arm].state = State::Disqualified(reason),
        }
    }
    Ok(())
}

/// Takes out what is not likely to gain as much as was asked for, and what is known by now.
fn retire(arms: &mut [Arm], wanted: f64) {
    let effects = effects_of(arms);
    for (arm, effect) in arms.iter_mut().zip(effects).filter(|(arm, _)| arm.state == State::Racing) {
        let rounds = arm.pairs.len();
        let is_hopeless =
            rounds >= FEWEST_ROUNDS && effect.is_some_and(|effect| is_ruled_out(effect, wanted));
        let is_known =
            rounds >= ENOUGH_ROUNDS && effect.is_some_and(|effect| effect.bound(0.01) > NOISE_FLOOR.ln_1p());
        if is_hopeless || is_known || rounds >= MOST_ROUNDS {
            arm.state = State::Done;
        }
    }
}

/// A gain as large as was asked for, with 95 %.
fn is_ruled_out(effect: Effect, wanted: f64) -> bool {
    effect.bound(0.95) < wanted.ln_1p()
}

fn effects_of(arms: &[Arm]) -> Vec<Option<Effect>> {
    let logs: Vec<Vec<f64>> = arms.iter().map(|arm| logs(&arm.pairs)).collect();
    effects(&logs.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn judge(arms: &[Arm], wanted: f64) -> Vec<Screened> {
    let effects = effects_of(arms);
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
            ruled_out: effect.is_some_and(|effect| is_ruled_out(effect, wanted)),
            fate,
        }
    };
    arms.iter().zip(effects).map(judged).collect()
}

fn fate(effect: Effect, corrected: f64) -> Fate {
    let better = effect.mean > NOISE_FLOOR.ln_1p();
    match () {
        () if better && corrected < LEVEL => Fate::Kept,
        () if better && effect.p() < LEVEL => Fate::Promising,
        () if effect.mean < -NOISE_FLOOR.ln_1p() && corrected < LEVEL => Fate::Harmful,
        () => Fate::Null,
    }
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
