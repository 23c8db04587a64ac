//! Turns samples into the behaviour of the young generation: how much was allocated between two collections, how much
//! of it was copied and promoted, and how large a semi-space was. What a source does not record is inferred from what
//! it does.

use super::Unfit;
use super::input::{ModelInput, Sample};
use crate::event::Kind;

pub(crate) const MB: f64 = 1024.0 * 1024.0;

/// V8 starts with a semi-space of this size and doubles it.
pub(crate) const SMALLEST: f64 = MB;

/// A larger `--max-semi-space-size` no longer makes a young generation.
pub(crate) const LARGEST: f64 = 1024.0 * MB;

/// A trace of fewer scavenges shows only start-up and chance.
const FEWEST: usize = 12;

/// Scavenges with less allocation before them than this were requested.
const LEAST_ALLOCATION: f64 = SMALLEST / 8.0;

/// The number of scavenges after a full collection, which begin with an empty semi-space, that shows how full one may
/// become.
const FEWEST_EMPTY: usize = 4;

/// The bytes between two collections that fill a semi-space, in semi-spaces, if the trace does not show it: V8 starts
/// between 80 % and full, and some objects are born old.
const USUAL_OCCUPANCY: f64 = 0.97;

/// Allocation larger than a semi-space by this factor still fits: some objects are born old.
const BORN_OLD: f64 = 1.08;

/// V8 doubles a semi-space at the next collection after as much as it holds has survived; twice that is certain.
const SURVIVORS_AT_LIMIT: f64 = 3.0;

/// One collection in a run of consecutive ones; bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub is_full: bool,
    pub pause_ms: f64,
    /// In the whole heap, since the previous collection.
    pub allocated: f64,
    /// Young objects left by the previous collection.
    pub kept: f64,
    pub copied: f64,
    pub promoted: f64,
    /// One semi-space when the collection began.
    pub capacity: f64,
    pub used_after: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// Each run is free of gaps.
    pub runs: Vec<Vec<Step>>,
    /// The largest semi-space that was in use.
    pub semi_space: f64,
    /// Enough survived at that size for V8 to double it, and V8 did not: that is the limit.
    pub is_limited: bool,
    /// `(allocated + kept) / capacity` of a scavenge.
    pub occupancy: f64,
    /// V8 decides about growth after a scavenge (24 and later), not before the next one.
    pub grows_at_once: bool,
    /// Copied and promoted bytes are the source's figures, not inferred.
    pub is_measured: bool,
}

impl Observed {
    pub(crate) fn of(input: &ModelInput, limit: Option<u64>) -> Result<Observed, Unfit> {
        let parts = input.parts();
        let scavenges = || parts.iter().flatten().filter(|sample| sample.kind != Kind::MarkCompact);
        if scavenges().any(|sample| sample.kind == Kind::MinorMarkSweep) {
            return Err(Unfit::MinorMarkSweep);
        }
        let count = scavenges().count();
        if count < FEWEST {
            return Err(Unfit::TooFew { detailed: count, all: input.scavenges(), needed: FEWEST });
        }
        let is_measured = scavenges().filter(|sample| reported(sample).is_some()).count() * 10 >= count * 9;
        let grows_at_once = scavenges().filter(|sample| sample.capacity.is_some()).count() * 2 >= count;
        let mut runs: Vec<Vec<Step>> =
            parts.iter().enumerate().map(|(n, part)| steps(part, n == 0 && starts(part))).collect();
        capacities(&mut runs, limit, is_measured);
        if !is_measured {
            conclude(&mut runs);
        }
        let semi_space = largest_capacity(&runs).ok_or(Unfit::NoAllocation)?;
        let observed = Observed {
            is_limited: survivors_at(&runs, semi_space) > SURVIVORS_AT_LIMIT * semi_space,
            occupancy: occupancy(&runs),
            runs,
            semi_space,
            grows_at_once,
            is_measured,
        };
        observed.checked()
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.runs.iter().flatten()
    }

    pub(crate) fn scavenges(&self) -> impl Iterator<Item = &Step> {
        self.steps().filter(|step| !step.is_full)
    }

    fn checked(self) -> Result<Observed, Unfit> {
        let allocated: f64 = self.steps().map(|step| step.allocated).sum();
        if allocated < LEAST_ALLOCATION * self.scavenges().count() as f64 {
            return Err(Unfit::NoAllocation);
        }
        match self.occupancy {
            occupancy if (0.4..=2.5).contains(&occupancy) => Ok(self),
            occupancy => Err(Unfit::Irregular { occupancy }),
        }
    }
}

/// Copied and promoted bytes, if recorded.
fn reported(sample: &Sample) -> Option<(u64, u64)> {
    Some((sample.copied?, sample.promoted?))
}

/// Whether a trace starts with the process: its first collection finds a heap from which nothing has been collected.
fn starts(part: &[Sample]) -> bool {
    part.first().is_some_and(|sample| (sample.used_before as f64) < 8.0 * MB)
}

fn steps(samples: &[Sample], is_start: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(samples.len());
    let mut before: Option<(&Sample, f64, Option<u64>)> = None;
    for sample in samples {
        let (used, copied, capacity) = match before {
            Some((last, copied, capacity)) => (last.used_after as f64, copied, capacity),
            // At the start of a process, V8's initial heap is not young.
            None if is_start => (sample.used_before as f64 - SMALLEST, 0.0, None),
            None => {
                before = Some((sample, sample.copied.unwrap_or(0) as f64, sample.capacity));
                continue;
            }
        };
        let is_full = sample.kind == Kind::MarkCompact;
        let (survived, promoted) = reported(sample).unwrap_or((0, 0));
        let survived = if is_full { 0.0 } else { survived as f64 };
        steps.push(Step {
            is_full,
            pause_ms: sample.pause_ms,
            allocated: (sample.used_before as f64 - used).max(0.0),
            kept: copied,
            copied: survived,
            promoted: promoted as f64,
            capacity: capacity.map_or(0.0, |bytes| bytes as f64),
            used_after: sample.used_after as f64,
        });
        before = Some((sample, survived, sample.capacity));
    }
    steps
}

/// If not recorded: V8 doubles a semi-space and never shrinks that of a busy program, so its size is the power of two
/// closest to its contents, and at least the previous size.
fn capacities(runs: &mut [Vec<Step>], limit: Option<u64>, is_measured: bool) {
    let mut fills: Vec<f64> =
        runs.iter().flatten().filter(|step| !step.is_full).map(|step| step.allocated + step.kept).collect();
    fills.sort_by(f64::total_cmp);
    // A large array may be born old; a single one says nothing about the semi-space.
    let usual = fills.get(fills.len().saturating_sub(1) * 19 / 20).copied().unwrap_or(0.0);
    let ceiling = limit.map_or_else(|| power_of_two(usual), |bytes| power_of_two(bytes as f64));
    for run in runs {
        let mut capacity = SMALLEST;
        for step in run {
            if !step.is_full {
                let held = step.allocated + step.kept;
                let size = if is_measured { power_of_two(held) } else { room_for(held) };
                capacity = size.clamp(capacity, 2.0 * capacity).min(ceiling);
            }
            if step.capacity < SMALLEST {
                step.capacity = capacity;
            }
        }
    }
}

/// The nearest power of two, within what V8 accepts.
fn power_of_two(bytes: f64) -> f64 {
    bytes.clamp(SMALLEST, LARGEST).log2().round().exp2()
}

/// What else was kept is unknown: at least this large, and part of it was born old.
fn room_for(bytes: f64) -> f64 {
    (bytes / BORN_OLD).clamp(SMALLEST, LARGEST).log2().ceil().exp2()
}

/// For a trace that records only the heap: a scavenge came when the semi-space was full, so what was not allocated
/// since had been kept. The heap grew by what was promoted, and by the change in what was kept.
fn conclude(runs: &mut [Vec<Step>]) {
    let empty = ratios(runs, |before| before.is_full);
    let full = if empty.len() < FEWEST_EMPTY { USUAL_OCCUPANCY } else { median(empty) };
    for run in runs {
        for at in 1..run.len() {
            let kept = match (run[at - 1].is_full, run[at].is_full) {
                (true, _) => 0.0,
                (false, false) => (full * run[at].capacity - run[at].allocated).max(0.0),
                // A full collection may come at any time.
                (false, true) => run[at - 1].kept,
            };
            run[at].kept = kept;
            run[at - 1].copied = if run[at - 1].is_full { 0.0 } else { kept };
        }
        for at in 1..run.len() {
            let (step, before) = (run[at], run[at - 1]);
            if !step.is_full {
                let growth = step.used_after - before.used_after - step.copied + step.kept;
                run[at].promoted = growth.clamp(0.0, step.kept);
            }
        }
    }
}

/// `(allocated + kept) / capacity` of scavenges in a large enough semi-space, selected by the preceding step.
fn ratios(runs: &[Vec<Step>], is_wanted: fn(&Step) -> bool) -> Vec<f64> {
    let largest = largest_capacity(runs).unwrap_or(SMALLEST);
    runs.iter()
        .flat_map(|run| run.windows(2))
        .filter(|pair| !pair[1].is_full && is_wanted(&pair[0]) && pair[1].capacity >= largest)
        .map(|pair| (pair[1].allocated + pair[1].kept) / pair[1].capacity)
        .collect()
}

fn largest_capacity(runs: &[Vec<Step>]) -> Option<f64> {
    runs.iter().flatten().filter(|step| !step.is_full).map(|step| step.capacity).max_by(f64::total_cmp)
}

fn survivors_at(runs: &[Vec<Step>], capacity: f64) -> f64 {
    let steps = runs.iter().flatten().filter(|step| !step.is_full && step.capacity >= capacity);
    steps.map(|step| step.copied + step.promoted).sum()
}

fn occupancy(runs: &[Vec<Step>]) -> f64 {
    let all = ratios(runs, |_| true);
    if all.is_empty() { USUAL_OCCUPANCY } else { median(all) }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}
