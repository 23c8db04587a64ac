//! Measures candidates one after another within the budget, and keeps the results.

use std::time::Duration;

use fastrand::Rng;

use super::{Growth, Halt, Phase, Record, Settings, Status, Trial, Watcher};
use crate::measure::{Disqualified, Outcome, Subject};
use crate::space::{Candidate, Space};

/// How often the baseline may fail in a row: for example, a port that is still in use is no reason to give up.
const BASELINE_ATTEMPTS: usize = 3;

/// A measurement may take this many times as long as usual.
const RESERVE: f64 = 1.3;

pub(super) struct Runner<'a, S> {
    pub(super) space: &'a Space,
    pub(super) settings: &'a Settings,
    pub(super) random: Rng,
    subject: &'a mut S,
    pub(super) record: &'a mut Record,
    clock: &'a dyn Fn() -> Duration,
    watcher: &'a mut dyn Watcher,
    trials: Vec<Trial>,
    /// The time before this run's first measurement.
    before: Duration,
    /// The time in measurements, including those of a record.
    measured: Duration,
    best: Option<(Candidate, f64)>,
}

/// A candidate's cost, or why it is disqualified.
pub(super) type Cost = Result<f64, Disqualified>;

impl<'a, S: Subject> Runner<'a, S> {
    pub(super) fn new(
        space: &'a Space,
        settings: &'a Settings,
        subject: &'a mut S,
        record: &'a mut Record,
        clock: &'a dyn Fn() -> Duration,
        watcher: &'a mut dyn Watcher,
    ) -> Self {
        Self {
            space,
            settings,
            random: Rng::with_seed(settings.seed),
            subject,
            record,
            clock,
            watcher,
            trials: Vec::new(),
            before: clock(),
            measured: Duration::ZERO,
            best: None,
        }
    }

    pub(super) fn baseline(&mut self, phase: Phase) -> Result<f64, Halt<S::Stop>> {
        let baseline = self.space.baseline();
        let mut attempts = 1;
        loop {
            match self.cost(phase, &baseline)? {
                Ok(cost) => return Ok(cost),
                Err(reason) if attempts == BASELINE_ATTEMPTS => return Err(Halt::Baseline(reason)),
                Err(reason) => self.watcher.remark(&format!("the service fails as it is: {reason}; again")),
            }
            attempts += 1;
        }
    }

    pub(super) fn cost(&mut self, phase: Phase, candidate: &Candidate) -> Result<Cost, Halt<S::Stop>> {
        let trial = match self.record.next(phase, candidate)? {
            Some(trial) => trial,
            None => self.measure(phase, candidate)?,
        };
        self.measured += Duration::from_secs_f64(trial.seconds);
        let cost = match &trial.outcome {
            Outcome::Measured(_) => {
                trial.cost.ok_or_else(|| Disqualified::Crashed { what: "no cost".into() })
            }
            Outcome::Disqualified(reason) => Err(reason.clone()),
        };
        self.watcher.tried(&trial);
        self.trials.push(trial);
        Ok(cost)
    }

    fn measure(&mut self, phase: Phase, candidate: &Candidate) -> Result<Trial, Halt<S::Stop>> {
        if !self.has_time_for(1) {
            return Err(Halt::OutOfTime);
        }
        self.watcher.trying(&Status {
            phase,
            candidate,
            best: self.best.as_ref(),
            elapsed: self.elapsed(),
            budget: self.settings.budget,
        });
        let begun = (self.clock)();
        let outcome = self.subject.measure(candidate).map_err(Halt::Stopped)?;
        let (outcome, cost) = self.judge(candidate, outcome)?;
        let seconds = ((self.clock)() - begun).as_secs_f64();
        let trial = Trial { phase, candidate: candidate.clone(), seconds, outcome, cost };
        self.record.keep(trial.clone(), self.subject.knowledge())?;
        Ok(trial)
    }

    /// Limits apply to candidates: the baseline is what the user has.
    fn judge(
        &self,
        candidate: &Candidate,
        outcome: Outcome,
    ) -> Result<(Outcome, Option<f64>), Halt<S::Stop>> {
        let Outcome::Measured(measurement) = &outcome else {
            return Ok((outcome, None));
        };
        let cost = self.settings.objective.cost(measurement);
        if candidate.set().next().is_none() {
            return Ok((outcome, Some(cost?)));
        }
        if let Err(reason) = self.settings.constraints.check(measurement) {
            return Ok((Outcome::Disqualified(reason), None));
        }
        Ok(match cost {
            Ok(cost) => (outcome, Some(cost)),
            Err(error) => {
                (Outcome::Disqualified(Disqualified::FailedRequests { what: error.to_string() }), None)
            }
        })
    }

    /// A candidate's effect on the bytes on the wire, from all measurements so far.
    pub(super) fn growth(&self, candidate: &Candidate) -> Option<Growth> {
        Growth::of(&self.trials, candidate)
    }

    fn elapsed(&self) -> Duration {
        self.before + self.measured
    }

    /// How many more measurements fit. A session resumed with more time gets the same answer as at first.
    pub(super) fn room(&self) -> usize {
        let budget = self.record.budget().unwrap_or_else(|| self.time_to_measure());
        let left = budget.saturating_sub(self.measured).as_secs_f64();
        let usual = self.usual_seconds() * RESERVE.sqrt();
        if usual > 0.0 { (left / usual) as usize } else { usize::MAX }
    }

    /// The budget minus the time before the first measurement.
    pub(super) fn time_to_measure(&self) -> Duration {
        self.settings.budget.saturating_sub(self.before)
    }

    /// The time before the first measurement, which will recur on resuming.
    pub(super) fn spent_before(&self) -> Duration {
        self.before
    }

    /// How long a measurement takes, as far as known.
    pub(super) fn usual_seconds(&self) -> f64 {
        let seconds: Vec<f64> = self.trials.iter().map(|trial| trial.seconds).collect();
        if seconds.is_empty() { 0.0 } else { hasten_evidence::statistics::median(&seconds) }
    }

    pub(super) fn has_time_for(&self, measurements: usize) -> bool {
        let needed = self.usual_seconds() * RESERVE * measurements as f64;
        self.elapsed().as_secs_f64() + needed <= self.settings.budget.as_secs_f64()
    }

    pub(super) fn phase(&mut self, phase: Phase, what: &str) {
        self.watcher.phase(phase, what);
    }

    pub(super) fn note(&mut self, line: &str) {
        self.watcher.note(line);
    }

    pub(super) fn remark(&mut self, line: &str) {
        self.watcher.remark(line);
    }

    /// Reports the best so far for the display: a ratio, and its candidate.
    pub(super) fn best(&mut self, candidate: &Candidate, ratio: f64) {
        if self.best.as_ref().is_none_or(|(best, known)| ratio > *known || best == candidate) {
            self.best = Some((candidate.clone(), ratio));
        }
    }

    pub(super) fn into_trials(self) -> Vec<Trial> {
        self.trials
    }
}
