//! A session's findings, phase by phase; everything that a report shows.

use hasten_evidence::paired::{Estimate, Pair};
use hasten_evidence::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::Growth;
use crate::measure::{Disqualified, Outcome};
use crate::space::Candidate;

/// Ratios are cost of the baseline / cost of the candidate, as everywhere in hasten: above 1 the candidate needs less.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    pub trials: Vec<Trial>,
    pub noise: Option<Noise>,
    /// One for each level of each knob.
    pub screened: Vec<Screened>,
    pub searched: Vec<Searched>,
    /// Winner against baseline, in fresh pairs; the last one concerns the final proposal.
    pub rechecks: Vec<Comparison>,
    /// The winner without one knob against the winner.
    pub ablations: Vec<Ablation>,
    pub conclusion: Conclusion,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub phase: Phase,
    pub candidate: Candidate,
    /// From the end of the measurement before to the end of this one.
    pub seconds: f64,
    pub outcome: Outcome,
    /// The objective's value; lower is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The baseline against itself.
    Noise,
    /// Each level of each knob alone.
    Screen,
    /// Combinations of what helped.
    Search,
    /// The winner against the baseline, again.
    Recheck,
    /// The winner without one of its knobs.
    Ablate,
}

/// What the baseline against itself reveals about the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    pub pairs: Vec<Pair>,
    pub ratio: Estimate,
    /// Anything but "no difference" is a false alarm.
    pub verdict: Verdict,
    /// How much two starts of the same service differ: the relative standard deviation of one measurement.
    pub spread: f64,
    /// The smallest effect that the recheck detects in four of five sessions.
    pub visible: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Screened {
    pub knob: usize,
    pub level: usize,
    /// One per round; `stock` is the baseline at the candidate's time, from those before and after it.
    pub pairs: Vec<Pair>,
    /// With a 95 % interval for this level alone.
    pub ratio: Option<Estimate>,
    /// Its effect on the bytes on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Corrected for the number of screened levels (Holm).
    pub p: Option<f64>,
    /// Whether a gain of the requested size is ruled out, with 95 %.
    pub ruled_out: bool,
    pub fate: Fate,
}

/// What screening decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fate {
    /// Better, and not by the luck of many comparisons.
    Kept,
    /// Looks better; later phases decide whether it is.
    Promising,
    Null,
    Harmful,
    Disqualified {
        reason: Disqualified,
    },
    /// There was not enough time for it.
    NotTried,
}

/// A combination and its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Searched {
    pub candidate: Candidate,
    pub pairs: Vec<Pair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disqualified: Option<Disqualified>,
}

/// Two candidates in pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub candidate: Candidate,
    /// What `stock` means in the pairs.
    pub against: Candidate,
    pub pairs: Vec<Pair>,
    pub ratio: Option<Estimate>,
    pub verdict: Verdict,
    /// The candidate's effect on the bytes on the wire, against the service as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disqualified: Option<Disqualified>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ablation {
    pub knob: usize,
    /// `against` is the winner without the knob.
    pub comparison: Comparison,
    /// Corrected for the number of knobs (Holm).
    pub p: Option<f64>,
    /// Whether it was shown to contribute to the gain.
    pub carries: bool,
}

/// How a session ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Conclusion {
    /// Cheaper in fresh pairs, and each of its knobs contributes.
    Proven { candidate: Candidate, ratio: Estimate },
    /// No level of any knob looked better than the baseline.
    NothingHelps,
    /// What looked better did not hold in fresh pairs.
    NotConfirmed { candidate: Candidate },
    /// Stopped by the user, by a fault, or by the budget.
    #[default]
    Unfinished,
}

impl Findings {
    /// What may be recommended.
    #[must_use]
    pub fn proven(&self) -> Option<(&Candidate, Estimate)> {
        match &self.conclusion {
            Conclusion::Proven { candidate, ratio } => Some((candidate, *ratio)),
            _ => None,
        }
    }
}

impl Phase {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Screen => "screen",
            Self::Search => "search",
            Self::Recheck => "recheck",
            Self::Ablate => "ablate",
        }
    }
}
