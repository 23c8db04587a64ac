//! The findings of a session: data first, with a page and a terminal summary as views of it.
//!
//! Effects are changes of the objective relative to the baseline: -0.12 is 12 % less.
//! [`Objective::less_is_better`] says whether less is better.

mod html;
mod terminal;
mod whole;
mod words;

use hasten_evidence::report::Style;
use serde::{Deserialize, Serialize};

use crate::measure::{Counter, Outcome};

pub use self::whole::Summary;
pub use self::words::{duration, value};

/// The version of the JSON. It grows with every change that could break a reader.
pub const VERSION: u32 = 1;

/// A whole session, stopped early or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub version: u32,
    /// hasten's version.
    pub hasten: String,
    /// When the session began, as RFC 3339.
    pub started: String,
    pub objective: Objective,
    /// The user's limits, as he wrote them.
    pub constraints: Vec<String>,
    pub verdict: Verdict,
    /// Why it was stopped; `None` if it ran to its end.
    #[serde(default)]
    pub stopped: Option<String>,
    /// The proven improvement; `None` if there is none.
    pub winner: Option<Winner>,
    /// For the service as it is; `None` if nothing counted bytes.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Each level of each knob against the baseline.
    pub screened: Vec<Screened>,
    pub noise: Noise,
    /// All measurements, in their order.
    pub trials: Vec<Trial>,
    pub disqualified: Vec<Rejected>,
    /// Knobs that were not tried, and why.
    pub not_tried: Vec<NotTried>,
    pub suggestions: Vec<Suggestion>,
    pub budget: Budget,
    /// The machine and the programs, as names and values in order of importance.
    pub environment: Vec<(String, String)>,
    pub commands: Commands,
    /// What the reader must know before believing a number.
    pub warnings: Vec<String>,
}

/// The quantity that was improved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// `CPU per request`.
    pub name: String,
    /// `µs`; empty for a user's own number.
    pub unit: String,
    pub less_is_better: bool,
}

/// The size of an answer on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    pub per_request: f64,
    pub counted_by: Counter,
    /// How much larger a setting may make it, as a share; `None` for no limit.
    pub limit: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Fresh pairs show the winner to be better.
    Better,
    /// A gain of the requested size is ruled out for everything that was tried.
    NoDifference,
    /// A gain of the requested size is neither seen nor ruled out.
    Undecided,
    /// The same, because the machine hides effects of the requested size.
    TooNoisy,
    /// It was stopped before it could decide.
    Unfinished,
}

/// A relative change with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub change: f64,
    pub low: f64,
    pub high: f64,
}

/// The objective's value on each side, measured one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub baseline: f64,
    pub candidate: f64,
}

/// A knob at a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub knob: String,
    pub level: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    pub settings: Vec<Kept>,
    /// For all settings together, from the pairs below alone.
    pub effect: Effect,
    /// Their effect on the bytes on the wire.
    #[serde(default)]
    pub bytes: Option<Effect>,
    /// Measured after the winner was chosen.
    pub pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    #[serde(flatten)]
    pub setting: Setting,
    /// What the knob does, in a line.
    pub about: String,
    /// Its side effects and costs; empty if there are none.
    pub risk: String,
    /// The winner against itself without this setting: the setting's contribution.
    pub carries: Option<Effect>,
    pub pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Screened {
    #[serde(flatten)]
    pub setting: Setting,
    pub effect: Option<Effect>,
    /// Its effect on the bytes on the wire.
    #[serde(default)]
    pub bytes: Option<Effect>,
    pub pairs: Vec<Pair>,
    pub fate: Fate,
}

/// The outcome for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// In the profile.
    Kept,
    /// It helps alone, but another level does better, or it contributes nothing beside the others.
    NotNeeded,
    /// A gain of the requested size is ruled out.
    NoGain,
    /// It looked better alone; fresh pairs or the comparison with the others did not confirm it.
    NotProven,
    /// Neither a gain nor its absence was seen.
    Undecided,
    Harmful,
    Disqualified,
    /// There was no time left.
    Untried,
}

/// The baseline against itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    pub pairs: Vec<Pair>,
    /// The apparent effect of the pairs; the truth is 0.
    pub effect: Option<Effect>,
    /// The smallest effect that the session could see, as a share of the objective.
    pub smallest_effect: Option<f64>,
    /// The effect that the user asked for.
    pub wanted_effect: f64,
    /// What would help if that is not enough.
    pub advice: Vec<String>,
}

/// One fresh start of the service, driven once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub number: usize,
    /// `noise`, `screen`, `search`, `recheck` or `ablate`.
    pub phase: String,
    /// `stock`, or the settings.
    pub candidate: String,
    /// Seconds from the beginning of the session.
    pub at: f64,
    pub outcome: Outcome,
    /// The objective, if it could be measured.
    pub value: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    pub candidate: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTried {
    pub knob: String,
    pub why: String,
}

/// A change that the user may make by hand, since hasten does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    pub text: String,
    pub why: String,
    /// Where; empty if nowhere in particular.
    pub file: String,
    /// The line as it should be; empty if there is none to copy.
    pub line: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub seconds: f64,
    pub used: f64,
}

/// Commands for pasting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// The session as requested.
    pub tune: String,
    /// The load as it was run.
    pub load: String,
    /// With the profile; `None` if there is no profile.
    pub run: Option<String>,
    /// If it was stopped early.
    pub resume: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("cannot make the page: {0}")]
    Template(#[from] minijinja::Error),
    #[error("cannot make the report's data: {0}")]
    Data(#[from] serde_json::Error),
}

impl Report {
    /// The page.
    pub fn html(&self) -> Result<String, ReportError> {
        html::render(self)
    }

    /// The summary for the terminal: verdict, effects, and the command that applies the findings.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        terminal::summary(self, style)
    }

    /// Starts with a summary in words and numbers, and ends with a line break.
    pub fn json(&self) -> Result<String, ReportError> {
        #[derive(Serialize)]
        struct Whole<'a> {
            summary: Summary,
            #[serde(flatten)]
            report: &'a Report,
        }
        Ok(serde_json::to_string_pretty(&Whole { summary: self.summary(), report: self })? + "\n")
    }
}
