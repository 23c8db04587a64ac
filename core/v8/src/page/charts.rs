//! The data of the charts: columns in uPlot's form, rounded to what is visible.

use serde::Serialize;

use super::budget::Budget;
use crate::event::Spaces;
use crate::profile::{ActivitySlice, Profile};
use crate::summary::{IsolateSummary, KindSummary, Slice, Summary, Trend};
use crate::words::{short_names, shortened};

#[derive(Debug, Serialize)]
pub(super) struct Charts {
    traces: Vec<Trace>,
}

#[derive(Debug, Serialize)]
struct Trace {
    name: String,
    heaps: Vec<Heap>,
}

/// Times in seconds, sizes in KiB, pauses in milliseconds.
#[derive(Debug, Serialize)]
struct Heap {
    name: String,
    first: f64,
    last: f64,
    pauses: Pauses,
    is_complete: bool,
    slices: Columns,
    full: Vec<(f64, u64)>,
    trend: Option<Trend>,
    histograms: Vec<Histogram>,
    cpu: Option<Cpu>,
}

/// Shares, 0 to 1, of each slice of time, from the bottom of the stack to its top. What is missing was idle.
#[derive(Debug, Serialize)]
struct Cpu {
    at: Vec<f64>,
    shares: Vec<(String, Vec<Option<f64>>)>,
}

/// A slice of which V8 sampled less than this says nothing.
const LEAST_SAMPLED: f64 = 0.05;
/// Of a function, in a legend.
const NAME: usize = 40;

#[derive(Debug, Default, Serialize)]
struct Pauses {
    at: Vec<f64>,
    kind: Vec<&'static str>,
    ms: Vec<f64>,
}

#[derive(Debug, Default, Serialize)]
struct Columns {
    from: Vec<f64>,
    to: Vec<f64>,
    allocated: Vec<u64>,
    promoted: Vec<u64>,
    pause: Vec<f64>,
    used_min: Vec<u64>,
    used_max: Vec<u64>,
    committed: Vec<u64>,
    /// In the order of [`SPACES`]; empty if no source records them.
    spaces: Vec<(&'static str, Vec<Option<u64>>)>,
}

#[derive(Debug, Serialize)]
struct Histogram {
    kind: &'static str,
    count: u64,
    buckets: Vec<(f64, u64)>,
}

/// From the bottom of the stack to its top: the longest-lived first.
type Space = (&'static str, fn(&Spaces) -> u64);
const SPACES: [Space; 8] = [
    ("old", |spaces| spaces.old),
    ("large objects", |spaces| spaces.large),
    ("code", |spaces| spaces.code),
    ("maps", |spaces| spaces.map),
    ("trusted and others", |spaces| spaces.other),
    ("read-only", |spaces| spaces.read_only),
    ("young", |spaces| spaces.new),
    ("young large objects", |spaces| spaces.new_large),
];

impl Charts {
    pub(super) fn of(traces: &[Summary], budget: &Budget) -> Self {
        let names = short_names(traces);
        let trace = |(trace, name): (&Summary, String)| Trace {
            name,
            heaps: budget.heaps(trace).iter().map(|heap| Heap::of(heap, budget)).collect(),
        };
        Self { traces: traces.iter().zip(names).map(trace).collect() }
    }
}

impl Heap {
    fn of(heap: &IsolateSummary, budget: &Budget) -> Self {
        let (first_ms, last_ms) = extent(heap);
        let (pauses, is_complete) = budget.pauses(heap);
        let thinned = heap.heap.after_full.chunks(heap.heap.after_full.len().div_ceil(400).max(1));
        Self {
            name: heap.name(),
            first: seconds(first_ms),
            last: seconds(last_ms),
            pauses: Pauses {
                at: pauses.iter().map(|pause| seconds(pause.0)).collect(),
                kind: pauses.iter().map(|pause| pause.1.word()).collect(),
                ms: pauses.iter().map(|pause| rounded(pause.2)).collect(),
            },
            is_complete,
            slices: Columns::of(&budget.slices(heap)),
            full: thinned.map(|chunk| (seconds(chunk[0].0), chunk[0].1 / 1024)).collect(),
            trend: heap.heap.trend,
            histograms: heap.by_kind.iter().map(Histogram::of).collect(),
            cpu: heap.profile.as_ref().map(|profile| Cpu::of(profile, &budget.cpu_slices(profile))),
        }
    }
}

/// Of collections and of the CPU profile, whatever there is.
fn extent(heap: &IsolateSummary) -> (f64, f64) {
    let collections = (heap.pauses.count > 0).then_some((heap.first_ms, heap.last_ms));
    let profile = heap.profile.as_ref().map(|profile| (profile.from_ms, profile.to_ms));
    let both = collections.into_iter().chain(profile);
    both.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))).unwrap_or((heap.first_ms, heap.last_ms))
}

impl Cpu {
    fn of(profile: &Profile, slices: &[ActivitySlice]) -> Self {
        let column = |ms: &dyn Fn(&ActivitySlice) -> f64| {
            let share = |slice: &ActivitySlice| {
                let busy_ms = slice.self_ms.iter().sum::<f64>()
                    + slice.other_ms
                    + slice.program_ms
                    + slice.collector_ms;
                let sampled_ms = busy_ms + slice.idle_ms;
                let is_told = sampled_ms > (slice.to_ms - slice.from_ms) * LEAST_SAMPLED;
                is_told.then(|| rounded((ms(slice) / sampled_ms).clamp(0.0, 1.0)))
            };
            slices.iter().map(share).collect::<Vec<_>>()
        };
        let mut shares = vec![("collections".to_owned(), column(&|slice| slice.collector_ms))];
        for (at, function) in profile.functions.iter().take(profile.timeline.functions).enumerate() {
            shares.push((shortened(function.title(), NAME), column(&|slice| slice.self_ms[at])));
        }
        shares.push(("other functions".to_owned(), column(&|slice| slice.other_ms)));
        shares.push(("native code of no function".to_owned(), column(&|slice| slice.program_ms)));
        let middle = |slice: &ActivitySlice| seconds(f64::midpoint(slice.from_ms, slice.to_ms));
        Self { at: slices.iter().map(middle).collect(), shares }
    }
}

impl Columns {
    fn of(slices: &[Slice]) -> Self {
        let kib = |read: fn(&Slice) -> u64| slices.iter().map(|slice| read(slice) / 1024).collect();
        let spaces = SPACES.iter().filter_map(|(name, read)| {
            let column: Vec<_> =
                slices.iter().map(|slice| slice.spaces.as_ref().map(|spaces| read(spaces) / 1024)).collect();
            column.iter().flatten().any(|kib| *kib > 0).then_some((*name, column))
        });
        Self {
            from: slices.iter().map(|slice| seconds(slice.from_ms)).collect(),
            to: slices.iter().map(|slice| seconds(slice.to_ms)).collect(),
            allocated: kib(|slice| slice.allocated),
            promoted: kib(|slice| slice.promoted),
            pause: slices.iter().map(|slice| rounded(slice.pause_ms)).collect(),
            used_min: kib(|slice| slice.used_min),
            used_max: kib(|slice| slice.used_max),
            committed: kib(|slice| slice.committed_max),
            spaces: spaces.collect(),
        }
    }
}

impl Histogram {
    fn of(kind: &KindSummary) -> Self {
        // Buckets are logarithmic; more of them than this would not be seen.
        let buckets = kind.histogram.iter().take(200).copied().collect();
        Self { kind: kind.kind.word(), count: kind.pauses.count, buckets }
    }
}

/// JSON has no infinity, and a chart could not show it.
fn rounded(value: f64) -> f64 {
    if value.is_finite() { (value * 1e3).round() / 1e3 } else { 0.0 }
}

fn seconds(ms: f64) -> f64 {
    rounded(ms / 1e3)
}
