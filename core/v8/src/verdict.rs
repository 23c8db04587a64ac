//! A trace's findings in one sentence.

use serde::Serialize;

use crate::summary::{IsolateSummary, Summary};
use crate::units;

/// Below this share of wall time, there is nothing to gain.
const CHEAP: f64 = 0.02;
/// Above this share, collection is among the first things to look at.
const DEAR: f64 = 0.10;
/// A pause noticed by someone waiting for an answer, in milliseconds.
const NOTICED_MS: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    Good,
    Notable,
    Bad,
    /// Too little data to say anything.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    pub tone: Tone,
    pub text: String,
}

impl Headline {
    /// The worst first: running out of memory, a leak, time, then a single long pause.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        if summary.out_of_memory > 0 {
            return Self::new(Tone::Bad, "The heap was full, and the process ended");
        }
        let Some(heap) = summary.busiest() else {
            return Self::new(Tone::Unknown, "No collections");
        };
        let leak = summary.isolates.iter().find_map(|one| one.heap.trend.filter(|trend| trend.is_suspicious));
        if let Some(trend) = leak {
            let slope = units::bytes(trend.bytes_per_hour);
            return Self::new(Tone::Bad, format!("What survives grows by {slope} an hour: perhaps a leak"));
        }
        Self::of_time(heap)
    }

    fn of_time(heap: &IsolateSummary) -> Self {
        let longest = heap.pauses.max_ms;
        let Some(share) = heap.pause_share else {
            return Self::new(Tone::Unknown, "Too short a trace to say what collections cost");
        };
        let time = units::percent(share);
        let stops = format!("Collections stop the program {time} of the time");
        let at_once = format!("for up to {}", units::pause(longest));
        match (share, longest) {
            (share, _) if share >= DEAR => Self::new(Tone::Bad, format!("{stops}, {at_once}")),
            (share, _) if share >= CHEAP => Self::new(Tone::Notable, format!("{stops}, {at_once}")),
            (_, longest) if longest >= NOTICED_MS => {
                Self::new(Tone::Notable, format!("Collections cost little, but stop the program {at_once}"))
            }
            _ => Self::new(Tone::Good, format!("Collections cost little: {time} of the time, {at_once}")),
        }
    }

    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

impl Summary {
    /// The heap with the longest total pause.
    #[must_use]
    pub fn busiest(&self) -> Option<&IsolateSummary> {
        self.isolates.iter().find(|one| one.pauses.count > 0)
    }

    /// The first heap with a CPU profile.
    #[must_use]
    pub fn profiled(&self) -> Option<&IsolateSummary> {
        self.isolates.iter().find(|one| one.profile.is_some() || !one.workers.is_empty())
    }
}
