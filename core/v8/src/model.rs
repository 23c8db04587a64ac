//! The cost of other sizes of the young generation.
//!
//! A trace at one size shows how long objects live (in bytes allocated meanwhile), what a scavenge costs, and when V8
//! let the young generation grow. The same program is then simulated at any other size by a small arithmetic model of
//! V8. docs/gc-model.md compares the predictions with measurements, and says where they are wrong.

mod cost;
mod input;
mod lifetime;
mod observe;
mod simulate;

use serde::Serialize;

pub use input::ModelInput;

use cost::Cost;
use lifetime::Lifetimes;
use observe::{LARGEST, Observed, SMALLEST};
use simulate::{Outcome, Script};

/// Why a trace reveals nothing about other sizes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "{}, and a prediction needs {needed} of them: record for longer, or under load",
        known(*detailed, *all)
    )]
    TooFew {
        /// Collections whose heap size is known.
        detailed: usize,
        all: u64,
        needed: usize,
    },
    #[error("hardly anything was allocated: record while the program works")]
    NoAllocation,
    #[error("the young generation is collected by marking (--minor-ms), which the model does not know")]
    MinorMarkSweep,
    #[error(
        "scavenges came after {occupancy:.1} semi-spaces of allocation, where they come after one: most objects are born \
         old, or lines are missing from the trace"
    )]
    Irregular { occupancy: f64 },
    #[error("the model does not reproduce the trace itself: {what} come out {factor:.1} times as large")]
    NotReproduced { what: &'static str, factor: f64 },
}

/// The summary counts all of them, and the reader sees that number, too.
fn known(detailed: usize, all: u64) -> String {
    if detailed as u64 == all {
        return format!("the trace holds {all} scavenges");
    }
    format!("of the trace's {all} scavenges, {detailed} come with the size of the heap")
}

/// A model of one heap, made from a trace of it.
#[derive(Clone, Debug)]
pub struct Model {
    semi_space: u64,
    is_limited: bool,
    wall_ms: f64,
    is_measured: bool,
    /// By size, smallest first.
    ladder: Vec<Prediction>,
}

/// What the traced program would have done with another limit of its semi-spaces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// `--max-semi-space-size`, in bytes.
    pub semi_space: u64,
    pub scavenges: f64,
    pub scavenge_pause_ms: f64,
    pub copied_bytes: f64,
    pub promoted_bytes: f64,
    pub full_collections: f64,
    pub full_pause_ms: f64,
    /// The size that a semi-space reaches within the trace; a program whose objects die young needs less than the
    /// limit.
    pub reached: u64,
    /// The total pause of scavenges is expected to lie between these two, in four of five cases.
    pub scavenge_pause_low_ms: f64,
    pub scavenge_pause_high_ms: f64,
}

impl Model {
    /// `limit` is the `--max-semi-space-size` under which the trace was recorded, in bytes, if known.
    pub fn fit(input: &ModelInput, limit: Option<u64>) -> Result<Model, Unfit> {
        let observed = Observed::of(input, limit)?;
        let lifetimes = Lifetimes::of(&observed);
        let cost = Cost::of(&observed);
        let scripts: Vec<Script> = observed.runs.iter().map(|run| Script::of(run, &lifetimes)).collect();
        let play = |limit: f64| {
            scripts
                .iter()
                .map(|script| script.play(&observed, &lifetimes, &cost, limit))
                .fold(Outcome::default(), sum)
        };
        let correction = Correction::of(input, &play(observed.semi_space), observed.is_measured)?;
        let mut ladder = Vec::new();
        let mut size = SMALLEST;
        while size <= LARGEST {
            ladder.push(correction.apply(&play(size), size, observed.semi_space));
            size *= 2.0;
        }
        // If two sizes differ by less than the model's own unevenness, the larger one must not look worse.
        for at in 1..ladder.len() {
            ladder[at].scavenges = ladder[at].scavenges.min(ladder[at - 1].scavenges);
        }
        Ok(Model {
            semi_space: observed.semi_space as u64,
            is_limited: observed.is_limited,
            wall_ms: input.wall_ms(),
            is_measured: observed.is_measured,
            ladder,
        })
    }

    /// The effect of a limit of `semi_space` bytes. Like V8, this rounds it up to a power of two.
    pub fn predict(&self, semi_space: u64) -> Prediction {
        let fits = |prediction: &&Prediction| prediction.semi_space >= semi_space;
        *self.ladder.iter().find(fits).unwrap_or(&self.ladder[self.ladder.len() - 1])
    }

    /// Every size that V8 accepts, smallest first.
    pub fn predictions(&self) -> &[Prediction] {
        &self.ladder
    }

    /// The largest semi-space used while the trace was recorded.
    pub fn semi_space(&self) -> u64 {
        self.semi_space
    }

    /// Whether V8 would have made semi-spaces larger than that if allowed.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// From the first collection to the last one.
    pub fn wall_ms(&self) -> f64 {
        self.wall_ms
    }

    /// Whether the trace recorded what was copied and promoted; otherwise that is inferred from the heap's size.
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }
}

fn sum(a: Outcome, b: Outcome) -> Outcome {
    Outcome {
        scavenges: a.scavenges + b.scavenges,
        pause_ms: a.pause_ms + b.pause_ms,
        copied: a.copied + b.copied,
        promoted: a.promoted + b.promoted,
        fulls: a.fulls + b.fulls,
        reached: a.reached.max(b.reached),
    }
}

/// The model's error on its own trace is assumed for other sizes as well.
struct Correction {
    scavenges: f64,
    pause: f64,
    fulls: f64,
    full_pause_ms: f64,
    doubt: f64,
}

/// The model's error on its own trace may reach this factor.
const TOLERANCE: f64 = 3.0;

impl Correction {
    fn of(input: &ModelInput, own: &Outcome, is_measured: bool) -> Result<Correction, Unfit> {
        let totals = input.totals();
        let scavenges = totals.scavenges as f64 / own.scavenges.max(1.0);
        let pause = if own.pause_ms > 0.0 { totals.scavenge_pause_ms / own.pause_ms } else { 0.0 };
        if !(1.0 / TOLERANCE..=TOLERANCE).contains(&(scavenges / gaps(input))) {
            return Err(Unfit::NotReproduced { what: "scavenges", factor: gaps(input) / scavenges });
        }
        Ok(Correction {
            scavenges,
            pause,
            fulls: totals.fulls as f64 / own.fulls.max(1.0),
            full_pause_ms: totals.full_pause_ms / (totals.fulls as f64).max(1.0),
            doubt: if is_measured { 1.0 } else { ERROR_OF_CONCLUSIONS },
        })
    }

    fn apply(&self, outcome: &Outcome, size: f64, observed: f64) -> Prediction {
        let pause = outcome.pause_ms * self.pause;
        let doublings = (size / observed).log2().abs();
        let factor = FIRST_ERROR * self.doubt * ERROR_PER_DOUBLING.powf(doublings);
        Prediction {
            semi_space: size as u64,
            scavenges: outcome.scavenges * self.scavenges,
            scavenge_pause_ms: pause,
            copied_bytes: outcome.copied * self.scavenges,
            promoted_bytes: outcome.promoted * self.scavenges,
            full_collections: outcome.fulls * self.fulls,
            full_pause_ms: outcome.fulls * self.fulls * self.full_pause_ms,
            reached: outcome.reached as u64,
            scavenge_pause_low_ms: pause / factor,
            scavenge_pause_high_ms: pause * factor,
        }
    }
}

/// The error of predictions of the total pause, from docs/results/gc-model.json: four of five lie within. Predictions
/// inferred from the heap's size are further off.
const FIRST_ERROR: f64 = 1.1;
const ERROR_PER_DOUBLING: f64 = 1.12;
const ERROR_OF_CONCLUSIONS: f64 = 1.12;

/// The ratio of all collections to those that were kept.
fn gaps(input: &ModelInput) -> f64 {
    let totals = input.totals();
    let kept: usize = input.parts().iter().map(Vec::len).sum();
    (totals.scavenges + totals.fulls) as f64 / kept.max(1) as f64
}
