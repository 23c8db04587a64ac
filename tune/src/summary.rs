//! Turns a session's findings into a report.

mod missing;

use hasten_evidence::paired::{Estimate, Pair};

use crate::knob::Choices;
use crate::measure::Outcome;
use crate::report::{
    Budget, Bytes, Commands, Effect, Fate, Kept, Noise, NotTried, Objective, Rejected, Report, Screened,
    Setting, Suggestion, Trial, VERSION, Verdict, Winner,
};
use crate::session::{self, Comparison, Conclusion, Findings, Growth, Settings};
use crate::space::{Candidate, Space};

pub use self::missing::missing;

/// The report's contents besides the findings.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    pub hasten: String,
    pub started: String,
    pub environment: Vec<(String, String)>,
    pub commands: Commands,
    pub constraints: Vec<String>,
    pub not_tried: Vec<NotTried>,
    pub suggestions: Vec<Suggestion>,
    pub warnings: Vec<String>,
    /// Why the session was stopped before its end.
    pub stopped: Option<String>,
    /// Whether the load's bytes are counted.
    pub counts_bytes: bool,
    /// How to make the load run longer.
    pub longer: String,
}

#[must_use]
pub fn report(
    findings: &Findings,
    settings: &Settings,
    choices: &Choices,
    circumstances: Circumstances,
) -> Report {
    let space = choices.space();
    let mut warnings = circumstances.warnings;
    warnings.extend(missing(findings, choices, settings));
    let summary = Summary { longer: &circumstances.longer, findings, settings, choices, space: &space };
    let bytes_warning = summary.bytes_warning(circumstances.counts_bytes);
    Report {
        version: VERSION,
        hasten: circumstances.hasten,
        started: circumstances.started,
        objective: summary.objective(),
        constraints: circumstances.constraints,
        verdict: summary.verdict(),
        stopped: circumstances.stopped,
        winner: summary.winner(),
        bytes: summary.bytes(),
        screened: findings.screened.iter().map(|one| summary.screened(one)).collect(),
        noise: summary.noise(),
        trials: summary.trials(),
        disqualified: summary.rejected(),
        not_tried: circumstances.not_tried,
        suggestions: circumstances.suggestions,
        budget: Budget {
            seconds: settings.budget.as_secs_f64(),
            used: findings.trials.iter().map(|trial| trial.seconds).sum(),
        },
        environment: circumstances.environment,
        commands: circumstances.commands,
        warnings: warnings.into_iter().chain(bytes_warning).collect(),
    }
}

/// Why a knob is in the profile, in one line for its comment; `None` if it is not in it.
#[must_use]
pub fn reason(findings: &Findings, settings: &Settings, knob: usize) -> Option<String> {
    let (candidate, whole) = findings.proven()?;
    let alone = candidate.set().count() == 1;
    let part = carried(findings, candidate, knob).and_then(|comparison| comparison.ratio);
    let Effect { change, low, high } = effect(if alone { whole } else { part? });
    let percent = |share: f64| format!("{:+.1} %", share * 100.0).replace('-', "−");
    let noun = settings.objective.noun();
    Some(format!("{} {noun} ({} to {})", percent(change), percent(low), percent(high)))
}

/// What the winner costs without a knob, by the latest measurement.
fn carried<'a>(findings: &'a Findings, winner: &Candidate, knob: usize) -> Option<&'a Comparison> {
    let of_knob = findings.ablations.iter().filter(|ablation| ablation.knob == knob);
    let same = |comparison: &&Comparison| comparison.candidate == *winner;
    let all = || of_knob.clone().map(|ablation| &ablation.comparison);
    all().rfind(same).or_else(|| all().next_back())
}

struct Summary<'a> {
    longer: &'a str,
    findings: &'a Findings,
    settings: &'a Settings,
    choices: &'a Choices,
    space: &'a Space,
}

impl Summary<'_> {
    fn objective(&self) -> Objective {
        let objective = &self.settings.objective;
        Objective {
            name: objective.noun().to_owned(),
            unit: objective.unit().to_owned(),
            less_is_better: true,
        }
    }

    fn verdict(&self) -> Verdict {
        match self.findings.conclusion {
            Conclusion::Proven { .. } => Verdict::Better,
            Conclusion::Unfinished => Verdict::Unfinished,
            Conclusion::NothingHelps | Conclusion::NotConfirmed { .. } if !self.is_ruled_out() => {
                if self.is_noisy() { Verdict::TooNoisy } else { Verdict::Undecided }
            }
            Conclusion::NothingHelps | Conclusion::NotConfirmed { .. } => Verdict::NoDifference,
        }
    }

    /// Whether nothing that was tried can gain as much as requested.
    fn is_ruled_out(&self) -> bool {
        let fates: Vec<Fate> = self.findings.screened.iter().map(|one| self.fate(one)).collect();
        let is_open = |fate: &Fate| matches!(fate, Fate::NotProven | Fate::Undecided);
        fates.iter().any(|fate| *fate != Fate::Untried) && !fates.iter().any(is_open)
    }

    fn is_noisy(&self) -> bool {
        self.findings.noise.as_ref().is_some_and(|noise| noise.visible > self.settings.effect)
    }

    fn winner(&self) -> Option<Winner> {
        let (candidate, ratio) = self.findings.proven()?;
        let recheck = self.findings.rechecks.last()?;
        let kept = |(knob, level)| {
            let carried = carried(self.findings, candidate, knob);
            Kept {
                setting: self.setting(knob, level),
                about: self.choices.knobs[knob].knob.about().to_owned(),
                risk: self.risk(knob),
                carries: carried.and_then(|comparison| comparison.ratio).map(effect),
                pairs: carried.map(|comparison| pairs(&comparison.pairs)).unwrap_or_default(),
            }
        };
        Some(Winner {
            settings: candidate.set().map(kept).collect(),
            effect: effect(ratio),
            bytes: recheck.growth.map(growth),
            pairs: pairs(&recheck.pairs),
        })
    }

    fn screened(&self, screened: &session::Screened) -> Screened {
        Screened {
            setting: self.setting(screened.knob, screened.level),
            effect: screened.ratio.map(effect),
            bytes: screened.growth.map(growth),
            pairs: pairs(&screened.pairs),
            fate: self.fate(screened),
        }
    }

    fn fate(&self, screened: &session::Screened) -> Fate {
        let proven = self.findings.proven().map(|(candidate, _)| candidate);
        let setting = (screened.knob, screened.level);
        let rechecked = self.rechecked(setting);
        match &screened.fate {
            _ if proven.is_some_and(|candidate| candidate.set().any(|one| one == setting)) => Fate::Kept,
            session::Fate::Harmful => Fate::Harmful,
            session::Fate::Disqualified { .. } => Fate::Disqualified,
            session::Fate::NotTried => Fate::Untried,
            _ if rechecked.is_some_and(|one| one.disqualified.is_some()) => Fate::Disqualified,
            session::Fate::Kept if proven.is_some() => Fate::NotNeeded,
            // Fresh pairs are more reliable than those that it was chosen by.
            _ if rechecked.map_or(screened.ruled_out, |one| self.rules_out(one)) => Fate::NoGain,
            session::Fate::Kept | session::Fate::Promising => Fate::NotProven,
            session::Fate::Null => Fate::Undecided,
        }
    }

    /// The fresh pairs of a setting that won alone.
    fn rechecked(&self, setting: (usize, usize)) -> Option<&Comparison> {
        let alone = |one: &&Comparison| one.candidate.set().eq([setting]);
        self.findings.rechecks.iter().rfind(alone)
    }

    fn rules_out(&self, comparison: &Comparison) -> bool {
        comparison.ratio.is_some_and(|ratio| ratio.high < 1.0 + self.settings.effect)
    }

    fn bytes(&self) -> Option<Bytes> {
        let bytes = session::bytes_of_baseline(&self.findings.trials)?;
        let limit = self.settings.constraints.max_growth;
        Some(Bytes { per_request: bytes.per_request, counted_by: bytes.by, limit })
    }

    /// Why the limit of bytes could not be enforced.
    fn bytes_warning(&self, counts_bytes: bool) -> Option<String> {
        let limit = self.settings.constraints.max_growth?;
        if counts_bytes && self.bytes().is_none() {
            return Some(
                "bytes on the wire were not counted, so --max-bytes was not applied: the load does not tell them; name a \
                 page with --url"
                    .to_owned(),
            );
        }
        let growth = self.findings.proven().and(self.findings.rechecks.last())?.growth?.ratio;
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "−");
        (growth.high > 1.0 + limit).then(|| {
            format!(
                "whether answers grow by more than the {:.1} % of --max-bytes could not be decided: the interval is {} to {}; \
                 a longer load, or one that prints whole bytes, narrows it",
                limit * 100.0,
                percent(growth.low),
                percent(growth.high)
            )
        })
    }

    fn noise(&self) -> Noise {
        let measured = self.findings.noise.as_ref();
        let advice = [
            &format!("let the load run longer: {}", self.longer),
            "give a larger --budget: more pairs see smaller effects",
            "stop other programs on this machine, and keep the clock frequency (`cpupower frequency-set -g performance`)",
        ];
        Noise {
            pairs: measured.map(|noise| pairs(&noise.pairs)).unwrap_or_default(),
            effect: measured.map(|noise| effect(noise.ratio)),
            smallest_effect: measured.map(|noise| noise.visible),
            wanted_effect: self.settings.effect,
            advice: if self.is_noisy() { advice.map(str::to_owned).to_vec() } else { Vec::new() },
        }
    }

    fn trials(&self) -> Vec<Trial> {
        let mut at = 0.0;
        let trial = |(index, trial): (usize, &session::Trial)| {
            let begun = at;
            at += trial.seconds;
            Trial {
                number: index + 1,
                phase: trial.phase.as_str().to_owned(),
                candidate: self.space.describe(&trial.candidate),
                at: begun,
                outcome: trial.outcome.clone(),
                value: trial.cost,
            }
        };
        self.findings.trials.iter().enumerate().map(trial).collect()
    }

    /// Each candidate once, with the first reason.
    fn rejected(&self) -> Vec<Rejected> {
        let mut rejected: Vec<Rejected> = Vec::new();
        for trial in &self.findings.trials {
            let Outcome::Disqualified(reason) = &trial.outcome else { continue };
            let candidate = self.space.describe(&trial.candidate);
            if rejected.iter().all(|known| known.candidate != candidate) {
                rejected.push(Rejected { candidate, reason: reason.to_string() });
            }
        }
        let baseline = self.space.baseline();
        let screened = self.findings.screened.iter().filter_map(|one| match &one.fate {
            session::Fate::Disqualified { reason } => Some((baseline.with(one.knob, one.level), reason)),
            _ => None,
        });
        let rechecked = self
            .findings
            .rechecks
            .iter()
            .filter_map(|one| Some((one.candidate.clone(), one.disqualified.as_ref()?)));
        // No single measurement of these was at fault.
        for (candidate, reason) in screened.chain(rechecked) {
            let candidate = self.space.describe(&candidate);
            if rejected.iter().all(|known| known.candidate != candidate) {
                rejected.push(Rejected { candidate, reason: reason.to_string() });
            }
        }
        rejected
    }

    fn risk(&self, knob: usize) -> String {
        let knob = &self.choices.knobs[knob].knob;
        format!("{} risk: {} Costs {}.", knob.risk().level, knob.risk().why, knob.cost())
    }

    fn setting(&self, knob: usize, level: usize) -> Setting {
        let dimension = &self.space.dimensions[knob];
        Setting { knob: dimension.name.clone(), level: dimension.levels[level].clone() }
    }
}

/// The change in bytes, relative to the baseline.
fn growth(growth: Growth) -> Effect {
    let Estimate { value, low, high } = growth.ratio;
    Effect { change: value - 1.0, low: low - 1.0, high: high - 1.0 }
}

/// The change in cost, relative to the baseline.
fn effect(ratio: Estimate) -> Effect {
    Effect { change: 1.0 / ratio.value - 1.0, low: 1.0 / ratio.high - 1.0, high: 1.0 / ratio.low - 1.0 }
}

fn pairs(measured: &[Pair]) -> Vec<crate::report::Pair> {
    measured.iter().map(|pair| crate::report::Pair { baseline: pair.stock, candidate: pair.hasten }).collect()
}

#[cfg(test)]
mod tests;
