//! The course of a session: noise, screening, search, recheck, ablation.
//!
//! The next measurement depends on the settings, the seed and the earlier measurements, and on nothing else. So a
//! stopped session is resumed by running it again with its [`Record`], which first answers in place of the service.

mod ablate;
mod allotment;
mod block;
mod findings;
mod growth;
mod noise;
mod pairs;
mod record;
mod runner;
mod screen;
mod search;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use crate::measure::{Disqualified, Subject};
use crate::objective::{Constraints, NoCost, Objective};
use crate::space::{Candidate, Space};

pub use allotment::LEAST_ROOM;
use allotment::{Allotment, enough_for};
pub use findings::{
    Ablation, Comparison, Conclusion, Fate, Findings, Noise, Phase, Screened, Searched, Trial,
};
pub use growth::{Growth, bytes_of_baseline};
pub use record::{Record, RecordError};
use runner::Runner;

/// Fewer pairs yield no meaningful interval.
const FEWEST_PAIRS: usize = 6;

/// The user's wishes.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub budget: Duration,
    /// The smallest effect worth having, as a share: 0.03 is 3 %.
    pub effect: f64,
    pub seed: u64,
    pub objective: Objective,
    pub constraints: Constraints,
}

/// Observes a session.
pub trait Watcher {
    fn phase(&mut self, phase: Phase, what: &str);
    /// Before each measurement.
    fn trying(&mut self, status: &Status<'_>);
    /// After each; replayed measurements are not announced beforehand.
    fn tried(&mut self, trial: &Trial);
    /// Information that the report also contains.
    fn note(&mut self, line: &str);
    /// Information that the report's reader needs.
    fn remark(&mut self, line: &str);
}

#[derive(Clone, Debug)]
pub struct Status<'a> {
    pub phase: Phase,
    pub candidate: &'a Candidate,
    pub best: Option<&'a (Candidate, f64)>,
    pub elapsed: Duration,
    pub budget: Duration,
}

/// Why a session ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Halt<E> {
    #[error("time is up")]
    OutOfTime,
    /// The subject's reason.
    #[error("stopped")]
    Stopped(E),
    /// The service fails even as its owner runs it.
    #[error("the service fails as it is, without any setting of hasten's: {0}")]
    Baseline(Disqualified),
    #[error(transparent)]
    NoCost(#[from] NoCost),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Not even the shortest session fits.
    #[error("one measurement takes {seconds:.1} s, so {budget:.0} s are too short for a proof")]
    TooShort { seconds: f64, budget: f64, needed: f64 },
}

/// The shortest budget in which loads of this many seconds can prove anything, if nothing else took time.
#[must_use]
pub fn shortest(seconds_of_load: f64) -> Duration {
    Duration::from_secs_f64(seconds_of_load * LEAST_ROOM as f64)
}

/// A budget in which all settings are measured often enough, as far as a session's measurements show. Larger than
/// `settings.budget`, which was not enough.
#[must_use]
pub fn sufficient(space: &Space, settings: &Settings, trials: &[Trial]) -> Option<Duration> {
    /// More than the random variation of a measurement.
    const RESERVE: f64 = 1.3;
    /// Seconds; a budget is given in minutes.
    const STEP: f64 = 60.0;
    let measured = trials.len() as f64;
    let mean = trials.iter().map(|trial| trial.seconds).sum::<f64>() / measured;
    let all = mean * RESERVE * enough_for(space.in_order().len()) as f64;
    let enough = all.max(settings.budget.as_secs_f64() * RESERVE) / STEP;
    (measured > 0.0).then(|| Duration::from_secs_f64(enough.ceil() * STEP))
}

/// Runs the phases; whatever stops them, the findings up to then are available.
pub fn run<S: Subject>(
    space: &Space,
    settings: &Settings,
    subject: &mut S,
    record: &mut Record,
    clock: &dyn Fn() -> Duration,
    watcher: &mut dyn Watcher,
) -> (Findings, Option<Halt<S::Stop>>) {
    let mut findings = Findings::default();
    let mut runner = Runner::new(space, settings, subject, record, clock, watcher);
    let halt = phases(&mut runner, &mut findings).err();
    findings.trials = runner.into_trials();
    (findings, halt)
}

fn phases<S: Subject>(runner: &mut Runner<'_, S>, findings: &mut Findings) -> Result<(), Halt<S::Stop>> {
    // The first start has a cold page cache, and shows how long a measurement takes.
    runner.baseline(Phase::Noise)?;
    let allotment = Allotment::new(runner)?;
    noise::measure(runner, &allotment, findings)?;
    let (promising, allotment) = screen::run(runner, &allotment, findings)?;
    if promising.is_empty() {
        findings.conclusion = Conclusion::NothingHelps;
        return Ok(());
    }
    let Some(winner) = search::run(runner, &allotment, &promising, findings)? else {
        findings.conclusion = Conclusion::NothingHelps;
        return Ok(());
    };
    if !pairs::recheck(runner, &allotment, &winner, findings)? {
        findings.conclusion = Conclusion::NotConfirmed { candidate: winner };
        return Ok(());
    }
    let kept = ablate::run(runner, &allotment, &winner, findings)?;
    if kept != winner && !pairs::recheck(runner, &allotment, &kept, findings)? {
        findings.conclusion = Conclusion::NotConfirmed { candidate: kept };
        return Ok(());
    }
    let last = findings.rechecks.last().and_then(|comparison| comparison.ratio);
    if let Some(ratio) = last {
        findings.conclusion = Conclusion::Proven { candidate: kept, ratio };
    }
    Ok(())
}
