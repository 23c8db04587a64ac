//! The whole session in one line: what is kept, and out of how many.

use serde::Serialize;

use super::words::{change, interval, percent};
use super::{Effect, Fate, Report, Verdict};

/// The outcomes of the settings, each counted once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub headline: String,
    pub support: String,
    pub settings: usize,
    pub kept: usize,
    /// They help, but add nothing to what is kept.
    pub not_needed: usize,
    pub no_gain: usize,
    /// A gain of the requested size is neither proven nor ruled out.
    pub open: usize,
    pub harmful: usize,
    pub disqualified: usize,
    pub untried: usize,
}

impl Report {
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            headline: self.headline(),
            support: self.support(),
            settings: self.screened.len(),
            kept: self.winner.as_ref().map_or(0, |winner| winner.settings.len()),
            not_needed: self.count(&[Fate::NotNeeded]),
            no_gain: self.count(&[Fate::NoGain]),
            open: self.count(&[Fate::NotProven, Fate::Undecided]),
            harmful: self.count(&[Fate::Harmful]),
            disqualified: self.count(&[Fate::Disqualified]),
            untried: self.count(&[Fate::Untried]),
        }
    }

    /// The verdict in one line, with all settings counted.
    #[must_use]
    pub fn headline(&self) -> String {
        let (name, wanted) = (&self.objective.name, percent(self.noise.wanted_effect));
        let (all, open) = (self.screened.len(), self.count(&[Fate::NotProven, Fate::Undecided]));
        let untried = self.untried();
        match (self.verdict, &self.winner) {
            (Verdict::Better, Some(winner)) => {
                let Effect { change, .. } = winner.effect;
                let direction = if change < 0.0 { "less" } else { "more" };
                let kept = winner.settings.len();
                format!(
                    "{} {direction} {name}: {kept} of {all} settings kept{untried}",
                    percent(change.abs())
                )
            }
            (Verdict::Better | Verdict::NoDifference, _) => self.nothing_helps(),
            (Verdict::Undecided, _) => {
                let save = if open == 1 { "saves" } else { "save" };
                format!("Could not tell whether {open} of {all} settings {save} {wanted} of {name}{untried}")
            }
            (Verdict::TooNoisy, _) => format!(
                "Too noisy to see a difference of {wanted} in {name}: {open} of {all} settings are open{untried}"
            ),
            (Verdict::Unfinished, _) => {
                let why = self.stopped.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("Stopped before anything could be proven{why}")
            }
        }
    }

    fn nothing_helps(&self) -> String {
        let (name, wanted) = (&self.objective.name, percent(self.noise.wanted_effect));
        let out = self.count(&[Fate::Disqualified]);
        let tried = self.screened.len() - self.count(&[Fate::Untried]) - out;
        let out = if out > 0 { format!(", {out} disqualified") } else { String::new() };
        let untried = self.untried();
        match tried {
            0 => format!("Nothing can be kept{out}{untried}"),
            1 => format!("The one setting that was tried does not save {wanted} of {name}{out}{untried}"),
            _ => format!("None of {tried} settings saves {wanted} of {name}{out}{untried}"),
        }
    }

    fn untried(&self) -> String {
        match self.count(&[Fate::Untried]) {
            0 => String::new(),
            untried => format!(", {untried} not tried"),
        }
    }

    fn count(&self, fates: &[Fate]) -> usize {
        self.screened.iter().filter(|row| fates.contains(&row.fate)).count()
    }

    /// The evidence behind the headline.
    #[must_use]
    pub fn support(&self) -> String {
        match (self.verdict, &self.winner) {
            (Verdict::Better, Some(winner)) => format!(
                "{}, from {} fresh pairs that were measured after the choice was made{}",
                interval(winner.effect),
                winner.pairs.len(),
                self.bytes_in_words(winner.bytes)
            ),
            _ => match self.noise.smallest_effect {
                Some(smallest) => {
                    format!("This session could see differences of {} and more", percent(smallest))
                }
                None => "The noise of this machine was not measured to the end".to_owned(),
            },
        }
    }

    /// The downside of less CPU: whether someone else pays for it.
    fn bytes_in_words(&self, bytes: Option<Effect>) -> String {
        match (bytes, self.bytes) {
            (Some(bytes), _) => {
                format!("; bytes on the wire {} ({})", change(bytes.change), interval(bytes))
            }
            (None, Some(_)) => "; bytes on the wire could not be compared".to_owned(),
            (None, None) => String::new(),
        }
    }
}
