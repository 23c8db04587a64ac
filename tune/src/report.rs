//! What a session found out: data first, a page and a summary for the terminal as views of it.
//!
//! Effects are changes of the objective relative to the baseline: -0.12 is 12 % less. Whether less is better says
//! [`Objective::less_is_better`].

mod html;
mod terminal;
mod whole;
mod words;

use hasten_evidence::report::Style;
use serde::{Deserialize, Serialize};

use crate::measure::{Counter, Outcome};

pub use self::whole::Summary;
pub use self::words::{duration, value};

/// Of the JSON. It grows with every change that a reader could stumble over.
pub const VERSION: u32 = 1;

/// A whole session, stopped early or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub version: u32,
    /// Of hasten.
    pub hasten: String,
    /// When the session began, as RFC 3339.
    pub started: String,
    pub objective: Objective,
    /// Limits of the user's, in his words.
    pub constraints: Vec<String>,
    pub verdict: Verdict,
    /// Why it was stopped; none if it came to its end.
    #[serde(default)]
    pub stopped: Option<String>,
    /// What was proven to help; none, if nothing was.
    pub winner: Option<Winner>,
    /// Of the service as it is; none if nobody counted.
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

/// What was made better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// `CPU per request`.
    pub name: String,
    /// `µs`; empty for a number of the user's.
    pub unit: String,
    pub less_is_better: bool,
}

/// What an answer takes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    pub per_request: f64,
    pub counted_by: Counter,
    /// How much more a setting may take, as a share; none for as much as it likes.
    pub limit: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Fresh pairs show the winner to be better.
    Better,
    /// A gain as large as was asked for is ruled out for everything that was tried.
    NoDifference,
    /// A gain as large as was asked for is neither seen nor ruled out.
    Undecided,
    /// The same, because the machine hides effects as small as was asked for.
    TooNoisy,
    /// It was stopped before it could know.
    Unfinished,
}

/// A relative change with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub change: f64,
    pub low: f64,
    pub high: f64,
}

/// One value of the objective on each side, measured one after the other.
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
    /// Of all settings together, from the pairs below alone.
    pub effect: Effect,
    /// What they do to the bytes on the wire.
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
    /// What goes with it, and what it costs; empty if nothing does.
    pub risk: String,
    /// The winner against itself without this setting: what the setting carries.
    pub carries: Option<Effect>,
    pub pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Screened {
    #[serde(flatten)]
    pub setting: Setting,
    pub effect: Option<Effect>,
    /// What it does to the bytes on the wire.
    #[serde(default)]
    pub bytes: Option<Effect>,
    pub pairs: Vec<Pair>,
    pub fate: Fate,
}

/// What became of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// In the profile.
    Kept,
    /// It helps alone, but another level does better, or it carries nothing beside the others.
    NotNeeded,
    /// A gain as large as was asked for is ruled out.
    NoGain,
    /// It looked better alone; fresh pairs or the comparison with the others did not show that it is.
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
    /// What the pairs take for an effect; the truth is 0.
    pub effect: Option<Effect>,
    /// What the session could see, as a share of the objective.
    pub smallest_effect: Option<f64>,
    /// What the user asked to see.
    pub wanted_effect: f64,
    /// What would help, if that is not enough.
    pub advice: Vec<String>,
}

/// One fresh start of the service, driven once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub number: usize,
    /// `noise`, `screen`, `search`, `recheck` or `ablate`.
    pub phase: String,
    /// `stock`, or what is set.
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

/// What the user may change by hand, as hasten does not.
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

/// To be pasted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// The session as it was asked for.
    pub tune: String,
    /// The load as it was run.
    pub load: String,
    /// With the profile; none if there is no profile.
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

    /// The summary for the terminal: verdict, effects, and the command to use what was found.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        terminal::summary(self, style)
    }

    /// With the whole in words and numbers before its parts, and a line break at its end.
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
