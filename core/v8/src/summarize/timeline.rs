//! The course of a trace for charts: slices of time that widen as the trace grows.

use super::pauses::KINDS;
use super::young::Flow;
use crate::event::{Collection, Kind};
use crate::summary::{Slice, Timeline};

/// The maximum number of slices.
const SLICES: usize = 512;

/// How many pauses are kept individually; beyond this, the longest of each kind in each slice.
const PAUSES: usize = 2048;

/// The width at the beginning of a trace; doubled as often as needed.
const WIDTH_MS: f64 = 10.0;

pub(super) struct Slices {
    width_ms: f64,
    /// Where the first slice begins: a multiple of the width.
    from_ms: f64,
    slices: Vec<Part>,
    pauses: Vec<(f64, Kind, f64)>,
    is_complete: bool,
}

/// One slice; empty ones are omitted.
#[derive(Clone, Copy, Default)]
struct Part {
    slice: Slice,
    /// By kind: when, and how long.
    longest: [Option<(f64, f64)>; 3],
}

impl Default for Slices {
    fn default() -> Self {
        Self { width_ms: WIDTH_MS, from_ms: 0.0, slices: Vec::new(), pauses: Vec::new(), is_complete: true }
    }
}

impl Slices {
    /// `since` is the end of the previous collection: allocation is spread evenly over the time between.
    pub(super) fn push(&mut self, collection: &Collection, since: Option<f64>, flow: Flow) {
        let at_ms = collection.at_ms;
        if self.slices.is_empty() {
            self.from_ms = (at_ms / WIDTH_MS).floor() * WIDTH_MS;
        }
        let last = self.reach(at_ms);
        self.spread(since.unwrap_or(at_ms), at_ms, last, flow.allocated);
        self.slices[last].push(collection, flow);
        if self.is_complete && self.pauses.len() < PAUSES {
            self.pauses.push((at_ms, collection.kind, collection.pause_ms));
        } else {
            self.is_complete = false;
            self.pauses = Vec::new();
        }
    }

    pub(super) fn finish(self) -> Timeline {
        let Self { width_ms, from_ms, slices, mut pauses, is_complete } = self;
        if !is_complete {
            pauses = slices.iter().flat_map(Part::longest).collect();
            pauses.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let slices = slices.into_iter().enumerate().map(|(i, part)| Slice {
            from_ms: from_ms + i as f64 * width_ms,
            to_ms: from_ms + (i + 1) as f64 * width_ms,
            ..part.slice
        });
        Timeline { pauses, is_complete, slices: slices.collect() }
    }

    fn index(&self, at_ms: f64) -> usize {
        ((at_ms - self.from_ms) / self.width_ms).max(0.0) as usize
    }

    /// Makes room up to `at_ms`, and returns the index of its slice.
    fn reach(&mut self, at_ms: f64) -> usize {
        let mut index = self.index(at_ms);
        while index >= SLICES {
            self.widen();
            index = self.index(at_ms);
        }
        if self.slices.len() <= index {
            self.slices.resize(index + 1, Part::default());
        }
        index
    }

    fn widen(&mut self) {
        self.width_ms *= 2.0;
        let from_ms = (self.from_ms / self.width_ms).floor() * self.width_ms;
        // The first slice may begin in the middle of a wider one.
        if from_ms < self.from_ms {
            self.slices.insert(0, Part::default());
            self.from_ms = from_ms;
        }
        self.slices = self.slices.chunks(2).map(Part::together).collect();
    }

    /// `last` is the slice of `at_ms`.
    fn spread(&mut self, since_ms: f64, at_ms: f64, last: usize, bytes: u64) {
        let first = self.index(since_ms);
        let span_ms = at_ms - since_ms;
        let mut given = 0;
        for index in first..last {
            let end_ms = self.from_ms + (index + 1) as f64 * self.width_ms;
            let share = ((end_ms - since_ms) / span_ms).clamp(0.0, 1.0);
            let so_far = ((bytes as f64 * share) as u64).clamp(given, bytes);
            self.slices[index].add(so_far - given);
            given = so_far;
        }
        self.slices[last].add(bytes - given);
    }
}

impl Part {
    fn push(&mut self, collection: &Collection, flow: Flow) {
        let slice = &mut self.slice;
        slice.promoted = slice.promoted.saturating_add(flow.promoted);
        slice.pause_ms += collection.pause_ms;
        for used in [collection.used_before, collection.used_after].into_iter().flatten() {
            slice.used_min = if slice.used_max > 0 { slice.used_min.min(used) } else { used };
            slice.used_max = slice.used_max.max(used);
        }
        slice.committed_max =
            slice.committed_max.max(collection.committed_before).max(collection.committed_after);
        slice.external_max = slice.external_max.max(collection.external_after);
        slice.spaces = collection.spaces.or(slice.spaces);
        slice.collections += 1;
        let longest = &mut self.longest[collection.kind as usize];
        if longest.is_none_or(|(_, pause_ms)| pause_ms < collection.pause_ms) {
            *longest = Some((collection.at_ms, collection.pause_ms));
        }
    }

    fn add(&mut self, allocated: u64) {
        self.slice.allocated = self.slice.allocated.saturating_add(allocated);
    }

    /// Merges one or two neighbours.
    fn together(parts: &[Part]) -> Part {
        parts.iter().copied().reduce(Part::join).unwrap_or_default()
    }

    fn join(self, next: Part) -> Part {
        let (a, b) = (self.slice, next.slice);
        let used_min = match (a.used_max, b.used_max) {
            (1.., 1..) => a.used_min.min(b.used_min),
            (1.., 0) => a.used_min,
            _ => b.used_min,
        };
        let longer = |kind: usize| match (self.longest[kind], next.longest[kind]) {
            (Some(first), Some(second)) => Some(if second.1 > first.1 { second } else { first }),
            (first, second) => first.or(second),
        };
        let slice = Slice {
            collections: a.collections + b.collections,
            allocated: a.allocated.saturating_add(b.allocated),
            promoted: a.promoted.saturating_add(b.promoted),
            pause_ms: a.pause_ms + b.pause_ms,
            used_min,
            used_max: a.used_max.max(b.used_max),
            committed_max: a.committed_max.max(b.committed_max),
            external_max: a.external_max.max(b.external_max),
            spaces: b.spaces.or(a.spaces),
            ..a
        };
        Part { slice, longest: [longer(0), longer(1), longer(2)] }
    }

    fn longest(&self) -> impl Iterator<Item = (f64, Kind, f64)> {
        let pauses = KINDS.into_iter().zip(self.longest);
        pauses.filter_map(|(kind, longest)| longest.map(|(at_ms, pause_ms)| (at_ms, kind, pause_ms)))
    }
}
