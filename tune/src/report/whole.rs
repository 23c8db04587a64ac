//! The whole session in a line: what is kept, and of how many.

use serde::Serialize;

use super::words::{change, interval, percent};
use super::{Effect, Fate, Report, Verdict};

/// How the settings came out, all of them counted once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub headline: String,
    pub support: String,
    pub settings: usize,
    pub kept: usize,
    /// They help, but add nothing to what is kept.
    pub not_needed: usize,
    pub no_gain: usize,
    /// A gain as large as was asked for is neither proven nor ruled out.
    pub open: usize,
    pub harmful: usize,
    pub disqualified: usize,
    pub untried: usize,
}

impl Report {
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = |fates: &[Fate]| self.screened.iter().filter(|row| fates.contains(&row.fate)).count();
        Summary {
            headline: self.headline(),
            support: self.support(),
            settings: self.screened.len(),
            kept: self.winner.as_ref().map_or(0, |winner| winner.settings.len()),
            not_needed: count(&[Fate::NotNeeded]),
            no_gain: count(&[Fate::NoGain]),
            open: count(&[Fate::NotProven, Fate::Undecided]),
            harmful: count(&[Fate::Harmful]),
            disqualified: count(&[Fate::Disqualified]),
            untried: count(&[Fate::Untried]),
        }
    }

    /// The verdict in a line.
    #[must_use]
    pub fn headline(&self) -> String {
        let (name, wanted) = (&self.objective.name, percent(self.noise.wanted_effect));
        let count = |fates: &[Fate]| self.screened.iter().filter(|row| fates.contains(&row.fate)).count();
        let (all, out) = (self.screened.len(), count(&[Fate::Disqualified]));
        let open = count(&[Fate::NotProven, Fate::Undecided]);
        let untried = match count(&[Fate::Untried]) {
            0 => String::new(),
            untried => format!(", {untried} not tried"),
        };
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
            (Verdict::Better | Verdict::NoDifference, _) => {
                let tried = all - count(&[Fate::Untried]) - out;
                let out = if out > 0 { format!(", {out} disqualified") } else { String::new() };
                format!("None of {tried} settings saves {wanted} of {name}{out}{untried}")
            }
            (Verdict::Undecided, _) => {
                format!("Could not tell whether {open} of {all} settings save {wanted} of {name}{untried}")
            }
            (Verdict::TooNoisy, _) => {
                format!(
                    "Too noisy to see a difference of {wanted} in {name}: {open} of {all} settings are open{untried}"
                )
            }
            (Verdict::Unfinished, _) => "Stopped before anything could be proven".to_owned(),
        }
    }

    /// What stands behind the headline.
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

    /// The other side of less CPU: whether somebody else pays for it.
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
