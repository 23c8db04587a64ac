//! One collection, whatever wrote it down: `--trace-gc` of any release, `--trace-gc-nvp`, or hasten's recorder.

use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A V8 heap: a process has one for its main thread and one for each worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Isolate {
    pub pid: u32,
    /// The address that V8 prints; 0 where the source does not tell isolates apart.
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
    /// How long the program stood still, in milliseconds.
    pub pause_ms: f64,
    /// Incremental marking before the pause, on the program's own thread, in milliseconds.
    pub steps_ms: f64,
    /// Bytes in objects, dead ones included, in the whole heap. The recorder leaves them out where collections are
    /// frequent, and knows only the second of some full ones.
    pub used_before: Option<u64>,
    pub used_after: Option<u64>,
    /// Bytes that the heap had from the system; 0 where the source does not tell.
    pub committed_before: u64,
    pub committed_after: u64,
    /// Bytes outside of the heap that objects keep alive, such as buffers, where the source tells.
    pub external_after: Option<u64>,
    /// V8's word for why, such as `allocation failure`; empty where the source does not tell.
    pub reason: Reason,
    /// Memory was short, or somebody asked (`global.gc()`, a heap snapshot): the program did not come to it by itself.
    pub last_resort: bool,
    /// What became of young objects, where the source tells.
    pub young: Option<Young>,
    /// Bytes in each space behind the collection, where the source tells.
    pub spaces: Option<Spaces>,
}

/// The young generation in one collection; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Young {
    /// What the collection looked at: young objects before it, dead ones included.
    pub examined: Option<u64>,
    /// Allocated since the collection before, in the young generation or the whole heap, as the source has it.
    pub allocated: Option<u64>,
    /// Survived and stayed young.
    pub copied: Option<u64>,
    /// Survived and became old.
    pub promoted: Option<u64>,
    /// The size of one semi-space at that moment.
    pub capacity: Option<u64>,
}

/// Bytes in objects by space; what a source does not know is 0.
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

/// V8's reasons are a closed set in each release, and another one in the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason(pub Arc<str>);

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
