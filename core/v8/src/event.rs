//! One collection, whatever recorded it: `--trace-gc` of any release, `--trace-gc-nvp`, or hasten's recorder.

use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A V8 heap: a process has one for its main thread and one for each worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Isolate {
    pub pid: u32,
    /// The address that V8 prints; 0 if the source does not distinguish isolates.
    pub address: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The young generation, by copying.
    Scavenge,
    /// The young generation, by marking (`--minor-ms`).
    MinorMarkSweep,
    /// The whole heap. Its pause is the part that stops the program; marking may have gone on before it.
    MarkCompact,
}

/// One collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collection {
    pub isolate: Isolate,
    /// When the pause ended, in milliseconds since the isolate (or the recorder's process) started.
    pub at_ms: f64,
    pub kind: Kind,
    /// How long the program was stopped, in milliseconds.
    pub pause_ms: f64,
    /// Incremental marking before the pause, on the program's own thread, in milliseconds.
    pub steps_ms: f64,
    /// Bytes in objects, dead ones included, in the whole heap. The recorder omits them if collections are frequent,
    /// and knows only the second figure for some full ones.
    pub used_before: Option<u64>,
    pub used_after: Option<u64>,
    /// Bytes that the heap had from the system; 0 if unknown.
    pub committed_before: u64,
    pub committed_after: u64,
    /// Bytes outside the heap kept alive by objects, such as buffers, if known.
    pub external_after: Option<u64>,
    /// V8's reason, such as `allocation failure`; empty if unknown.
    pub reason: Reason,
    /// Memory was short, or the collection was requested (`global.gc()`, a heap snapshot): the program did not reach
    /// it by itself.
    pub last_resort: bool,
    /// What happened to young objects, if known.
    pub young: Option<Young>,
    /// Bytes in each space after the collection, if known.
    pub spaces: Option<Spaces>,
}

/// The young generation in one collection; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Young {
    /// The young objects examined by the collection, including dead ones.
    pub examined: Option<u64>,
    /// Allocated since the previous collection, in the young generation or the whole heap, depending on the source.
    pub allocated: Option<u64>,
    /// Survived and stayed young.
    pub copied: Option<u64>,
    /// Survived and became old.
    pub promoted: Option<u64>,
    /// The size of one semi-space at that moment.
    pub capacity: Option<u64>,
}

/// Bytes in objects by space; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spaces {
    pub new: u64,
    pub old: u64,
    pub code: u64,
    pub map: u64,
    pub large: u64,
    pub new_large: u64,
    pub read_only: u64,
    /// Trusted space of Node 22 and later, and whatever later releases add.
    pub other: u64,
}

/// V8's reasons are a closed set in each release, but the set changes between releases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason(pub Arc<str>);

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
