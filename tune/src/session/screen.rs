//! Each level of each knob alone, in rounds of random order; what is harmful or null leaves the race early.

use hasten_evidence::paired::Pair;
use hasten_evidence::verdict::NOISE_FLOOR;

use super::allotment::Allotment;
use super::block;
use super::runner::Runner;
use super::{Fate, Findings, Halt, Phase, Screened};
use crate::measure::Subject;
use crate::statistics::{Effect, effects, holm, logs};

/// With one round there is no spread.
const FEWEST_ROUNDS: usize = 2;
/// More say little more.
const MOST_ROUNDS: usize = 12;
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

/// A level in the race.
struct Arm {
    knob: usize,
    level: usize,
    pairs: Vec<Pair>,
    racing: bool,
    fate: Option<Fate>,
}

/// What goes on, the best first.
pub(super) fn run<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    findings: &mut Findings,
) -> Result<Vec<Promising>, Halt<S::Stop>> {
    let mut arms = arms(runner, allotment.screen);
    let racing = arms.iter().filter(|arm| arm.racing).count();
    runner.phase(Phase::Screen, &format!("{racing} settings, each alone"));
    let mut left = allotment.screen;
    for round in 0..MOST_ROUNDS {
        let racing = arms.iter().filter(|arm| arm.racing).count();
        if racing == 0 || round >= FEWEST_ROUNDS && left < block::size(racing) {
            break;
        }
        left = left.saturating_sub(block::size(racing));
        let measured = measure_round(runner, &mut arms);
        if round + 1 >= FEWEST_ROUNDS {
            drop_hopeless(&mut arms, runner.settings.effect);
        }
        findings.screened = judge(&arms);
        show_best(runner, findings);
        measured?;
    }
    Ok(promising(findings))
}

/// All levels; those that time is too short for do not race. The registry's order is that of importance.
fn arms<S: Subject>(runner: &mut Runner<'_, S>, allotted: usize) -> Vec<Arm> {
    let mut arms: Vec<Arm> = Vec::new();
    for (knob, dimension) in runner.space.dimensions.iter().enumerate() {
        for level in 1..dimension.levels.len() {
            let fits = FEWEST_ROUNDS * block::size(arms.len() + 1) <= allotted;
            let fate = (!fits).then_some(Fate::NotTried);
            arms.push(Arm { knob, level, pairs: Vec::new(), racing: fits, fate });
        }
    }
    let untried = arms.iter().filter(|arm| !arm.racing).count();
    if untried > 0 {
        runner.remark(&format!(
            "{untried} of {} settings are not tried for lack of time: give a larger --budget, or choose with --only",
            arms.len()
        ));
    }
    arms
}

fn measure_round<S: Subject>(runner: &mut Runner<'_, S>, arms: &mut [Arm]) -> Result<(), Halt<S::Stop>> {
    let mut order: Vec<usize> = (0..arms.len()).filter(|&arm| arms[arm].racing).collect();
    runner.random.shuffle(&mut order);
    let baseline = runner.space.baseline();
    let candidates: Vec<_> =
        order.iter().map(|&arm| baseline.with(arms[arm].knob, arms[arm].level)).collect();
    let costs = block::measure(runner, Phase::Screen, &candidates)?;
    for (arm, cost) in order.into_iter().zip(costs) {
        match cost {
            Ok(pair) => arms[arm].pairs.push(pair),
            Err(reason) => {
                arms[arm].racing = false;
                arms[arm].fate = Some(Fate::Disqualified { reason });
            }
        }
    }
    Ok(())
}

/// Takes out what is not likely to gain as much as was asked for.
fn drop_hopeless(arms: &mut [Arm], wanted: f64) {
    let effects = effects_of(arms);
    for (arm, effect) in arms.iter_mut().zip(effects) {
        if effect.is_some_and(|effect| effect.bound(0.95) < wanted.ln_1p()) {
            arm.racing = false;
        }
    }
}

fn effects_of(arms: &[Arm]) -> Vec<Option<Effect>> {
    let logs: Vec<Vec<f64>> = arms.iter().map(|arm| logs(&arm.pairs)).collect();
    effects(&logs.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn judge(arms: &[Arm]) -> Vec<Screened> {
    let effects = effects_of(arms);
    let tested: Vec<f64> = effects.iter().flatten().map(|effect| effect.p()).collect();
    let mut corrected = holm(&tested).into_iter();
    let judged = |(arm, effect): (&Arm, Option<Effect>)| {
        let p = effect.and_then(|_| corrected.next());
        let fate = match (&arm.fate, effect, p) {
            (Some(fate), _, _) => fate.clone(),
            (None, Some(effect), Some(p)) => fate(effect, p),
            _ => Fate::NotTried,
        };
        Screened {
            knob: arm.knob,
            level: arm.level,
            pairs: arm.pairs.clone(),
            ratio: effect.map(Effect::ratio),
            p,
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

fn promising(findings: &mut Findings) -> Vec<Promising> {
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
