//! A trace's findings, in memory that does not grow with it. Serialized, they are the data of `hasten gc --json` and of
//! the page.

use serde::Serialize;

use crate::event::{Isolate, Kind, Reason};
use crate::model::ModelInput;
use crate::profile::Profile;

/// A whole trace: one file, or standard input.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The file, or `-`.
    pub source: String,
    pub lines: Lines,
    /// Why the source was not read to its end, such as a damaged gzip file; what came before is included.
    pub incomplete: Option<String>,
    /// How many times a process reported that its heap was full, and ended.
    pub out_of_memory: u64,
    /// In order of total pause, longest first.
    pub isolates: Vec<IsolateSummary>,
    /// Heaps beyond those that fit into bounded memory: the ones with the shortest total pauses.
    pub rest: Option<Rest>,
}

/// Heaps that are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rest {
    pub isolates: u64,
    pub collections: u64,
    pub pause_ms: f64,
}

/// The fate of every line; the counts add up to `total`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// Unpacked.
    pub bytes: u64,
    pub total: u64,
    /// A collection, or a part of the report of one.
    pub understood: u64,
    /// The program's own output.
    pub other: u64,
    /// V8's lines that were not understood: an unknown release, or a line cut in two.
    pub unknown: u64,
    /// The first few of `unknown`, shortened.
    pub samples: Vec<String>,
}

/// The writer of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    TraceGc,
    TraceGcNvp,
    /// `--trace-gc-nvp` of Node 26.
    TraceGcJson,
    TraceGcVerbose,
    Recorder,
}

/// One heap.
#[derive(Clone, Debug, Serialize)]
pub struct IsolateSummary {
    pub isolate: Isolate,
    /// Every format that reported this heap.
    pub formats: Vec<Format>,
    /// The releases of Node whose traces look like this one, such as `22, 24`; the exact one if the source states it.
    pub node: Option<String>,
    /// The recorder's account of the process.
    pub process: Option<Process>,
    /// From the first collection's end to the last one's, in milliseconds.
    pub first_ms: f64,
    pub last_ms: f64,
    /// How much of that time was not observed: the recorder leaves gaps if collections are very frequent.
    pub unseen_ms: f64,
    pub by_kind: Vec<KindSummary>,
    pub pauses: Pauses,
    /// The fraction, 0 to 1, of wall time between the ends of the first and the last collection, without gaps; so the
    /// first pause itself is excluded.
    pub pause_share: Option<f64>,
    pub longest: Vec<LongPause>,
    pub young: YoungSummary,
    pub heap: HeapSummary,
    /// V8 reported that this heap was full, and the process ended.
    pub ran_out_of_memory: bool,
    pub timeline: Timeline,
    /// What the program's thread did meanwhile, if that was recorded as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The same of worker threads, the busiest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Profile>,
    #[serde(skip)]
    pub model: ModelInput,
}

/// The first line of a recording; bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    pub node: Option<String>,
    pub script: Option<String>,
    /// The largest size of one semi-space that V8 may choose.
    pub semi_space_max: Option<u64>,
    pub heap_limit: Option<u64>,
    /// The container's memory limit.
    pub memory_limit: Option<u64>,
}

/// Pauses of one kind, or of all; milliseconds. Percentiles are accurate to 1 %, the others exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pauses {
    pub count: u64,
    pub total_ms: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct KindSummary {
    pub kind: Kind,
    #[serde(flatten)]
    pub pauses: Pauses,
    /// Like that of all kinds, of which it is a part.
    pub pause_share: Option<f64>,
    /// Incremental marking before these pauses, on the program's own thread.
    pub steps_ms: f64,
    /// How often each reason occurred, most frequent first.
    pub reasons: Vec<(Reason, u64)>,
    /// The distribution of pauses: each bucket's upper edge in milliseconds, and its count.
    pub histogram: Vec<(f64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LongPause {
    pub at_ms: f64,
    pub kind: Kind,
    pub pause_ms: f64,
    pub reason: Reason,
}

/// Allocation and survival since the first collection; rates are bytes per second of wall time. If the recorder knows
/// the heap for some collections only, sums and rates cover the time that it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct YoungSummary {
    pub allocated_bytes: Option<u64>,
    pub allocation_rate: Option<f64>,
    pub promoted_bytes: Option<u64>,
    pub promotion_rate: Option<f64>,
    /// The fraction, 0 to 1, of the bytes examined by a scavenge that it kept. If inferred from the size of the heap,
    /// it assumes that every promoted byte had been copied once, and counts objects born old as promoted.
    pub survival: Option<f64>,
    /// The largest semi-space seen, or inferred from what a scavenge freed, in bytes.
    pub semi_space: Option<u64>,
    /// Whether the source records promotion and survival, rather than hasten inferring them from the size of the heap.
    pub is_measured: bool,
    /// The same for the semi-space.
    pub is_semi_space_measured: bool,
}

/// The heap after full collections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeapSummary {
    pub peak_used: u64,
    /// 0 if unknown.
    pub peak_committed: u64,
    pub peak_external: Option<u64>,
    /// Milliseconds and bytes, thinned out evenly if there are many.
    pub after_full: Vec<(f64, u64)>,
    pub trend: Option<Trend>,
}

/// A straight line through the heap after full collections, without start-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    pub bytes_per_hour: f64,
    /// The interval at 95 %.
    pub low: f64,
    pub high: f64,
    pub collections: u64,
    /// The slope is certainly above zero, and large enough to matter.
    pub is_suspicious: bool,
}

/// For charts: at most a few thousand entries, however long the trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// The pauses; if there are too many, the longest of each kind in each slice of time.
    pub pauses: Vec<(f64, Kind, f64)>,
    /// Whether every pause is in `pauses`.
    pub is_complete: bool,
    pub slices: Vec<Slice>,
}

/// A slice of wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    pub from_ms: f64,
    pub to_ms: f64,
    pub collections: u64,
    /// Spread evenly over the time between collections.
    pub allocated: u64,
    pub promoted: u64,
    pub pause_ms: f64,
    /// Both are 0 if no collection in it records them.
    pub used_min: u64,
    pub used_max: u64,
    /// 0 if unknown.
    pub committed_max: u64,
    pub external_max: Option<u64>,
    /// The last state of the spaces in it, if known.
    pub spaces: Option<crate::event::Spaces>,
}
