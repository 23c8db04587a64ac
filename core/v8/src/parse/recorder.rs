//! What the recorder of `plugins/node` writes: JSON lines, the first of which says of which process.

use std::borrow::Cow;

use serde::Deserialize;

use super::cursor::MOST;
use crate::event::{Isolate, Kind, Spaces, Young};
use crate::summary::Process;

/// `{"hasten_gc":1,…}`.
#[derive(Debug, Deserialize)]
pub(super) struct Header<'a> {
    hasten_gc: u32,
    pid: u32,
    #[serde(borrow)]
    node: Option<Cow<'a, str>>,
    #[serde(borrow)]
    script: Option<Cow<'a, str>>,
    semi_space_max: Option<u64>,
    heap_limit: Option<u64>,
    memory_limit: Option<u64>,
}

/// `{"gc":"scavenge",…}`.
#[derive(Debug, Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    gc: Cow<'a, str>,
    pub at_ms: f64,
    pub pause_ms: f64,
    #[serde(borrow, default)]
    pub flags: Cow<'a, str>,
    /// Where collections are frequent, most entries tell the pause only.
    pub before: Option<Heap>,
    pub after: Option<Heap>,
    new_before: Option<u64>,
    spaces: Option<Sizes>,
    spaces_before: Option<Sizes>,
}

/// `{"gap":true,…}`: a stretch in which nobody looked.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Gap {
    gap: bool,
    pub from_ms: f64,
    pub at_ms: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Heap {
    pub used: u64,
    pub committed: u64,
    #[serde(default)]
    pub external: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Sizes {
    new: u64,
    old: u64,
    code: u64,
    map: u64,
    large: u64,
    new_large: u64,
    read_only: u64,
    other: u64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Collection(Kind),
    /// A step of marking: it belongs to the next collection of the whole heap.
    Step,
    Callbacks,
}

impl<'a> Header<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        json(line).filter(|header: &Header| header.hasten_gc == 1)
    }

    pub(super) fn isolate(&self) -> Isolate {
        Isolate { pid: self.pid, address: 0 }
    }

    pub(super) fn process(&self) -> Process {
        let version = |node: &Cow<str>| node.strip_prefix('v').unwrap_or(node).to_owned();
        Process {
            node: self.node.as_ref().map(version),
            script: self.script.as_deref().map(str::to_owned),
            semi_space_max: self.semi_space_max,
            heap_limit: self.heap_limit,
            memory_limit: self.memory_limit,
        }
    }
}

impl Gap {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let gap: Self = json(line)?;
        let is_sound = is_time(gap.from_ms) && is_time(gap.at_ms) && gap.from_ms <= gap.at_ms;
        (gap.gap && is_sound).then_some(gap)
    }
}

impl<'a> Entry<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let entry: Self = json(line)?;
        let heaps = [entry.before, entry.after]
            .into_iter()
            .flatten()
            .flat_map(|heap| [heap.used, heap.committed, heap.external]);
        let spaces = [entry.spaces, entry.spaces_before].into_iter().flatten().flat_map(Sizes::all);
        let is_size = |bytes: u64| bytes <= MOST as u64;
        let is_sound = heaps.chain(spaces).chain(entry.new_before).all(is_size)
            && is_time(entry.at_ms)
            && is_time(entry.pause_ms);
        is_sound.then_some(entry)
    }

    pub(super) fn what(&self) -> Option<What> {
        match &*self.gc {
            "scavenge" => Some(What::Collection(Kind::Scavenge)),
            "minor-mark-sweep" => Some(What::Collection(Kind::MinorMarkSweep)),
            "mark-compact" => Some(What::Collection(Kind::MarkCompact)),
            "incremental-marking" => Some(What::Step),
            "weak-callbacks" => Some(What::Callbacks),
            _ => None,
        }
    }

    pub(super) fn spaces(&self) -> Option<Spaces> {
        let Sizes { new, old, code, map, large, new_large, read_only, other } = self.spaces?;
        Some(Spaces { new, old, code, map, large, new_large, read_only, other })
    }

    /// The spaces on both sides of a pause tell what became of young objects: the young spaces before it are what it
    /// looked at, the ones behind it what it copied, and by what the others grew is what it promoted.
    pub(super) fn young(&self, kind: Kind) -> Option<Young> {
        if kind == Kind::MarkCompact {
            return None;
        }
        let after = self.spaces?;
        let before = self.spaces_before;
        let promoted = before.map(|before| after.elder().saturating_sub(before.elder()));
        let new_large = before.map_or(0, |before| before.new_large);
        Some(Young {
            examined: self
                .new_before
                .or(before.map(|before| before.new))
                .map(|new| new.saturating_add(new_large)),
            allocated: None,
            copied: Some(after.new.saturating_add(after.new_large)),
            promoted,
            capacity: None,
        })
    }
}

impl Sizes {
    fn all(self) -> [u64; 8] {
        let Self { new, old, code, map, large, new_large, read_only, other } = self;
        [new, old, code, map, large, new_large, read_only, other]
    }

    fn elder(&self) -> u64 {
        [self.old, self.code, self.map, self.large, self.other].into_iter().fold(0, u64::saturating_add)
    }
}

/// Checked for UTF-8 once: `from_slice` does it for each of the forty strings of a line.
fn json<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_str(str::from_utf8(line).ok()?).ok()
}

fn is_time(ms: f64) -> bool {
    (0.0..=MOST).contains(&ms)
}
