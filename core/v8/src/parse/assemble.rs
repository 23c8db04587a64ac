//! Turns lines into collections: a table completes the collection before it, and a collection reported twice counts
//! once.

use super::event::{Event, Origin, Releases, Row};
use super::profile::Part;
use crate::event::{Collection, Isolate, Kind, Spaces};
use crate::summary::{Format, Process};

/// Heaps with something pending; beyond this, everything pending counts as complete.
const HEAPS: usize = 256;

/// How many collections the report of a process that ran out of memory can repeat: V8 keeps 512 bytes of them.
const REMEMBERED: usize = 8;

/// A final fact.
#[derive(Clone, Debug)]
pub(crate) enum Fact<'a> {
    Collection(&'a Collection, Formats),
    Release(Isolate, Releases),
    Process(Isolate, Process),
    /// Nothing was observed between these times: what lies on both sides is not adjacent.
    Gap(Isolate, f64, f64),
    /// A part of a CPU profile: that of the main thread, or of the worker with this number.
    Profile(Isolate, Option<u32>, Box<Part>),
    /// This heap was full.
    LastWords(Isolate),
    OutOfMemory,
}

/// The source of a collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Formats {
    pub first: Format,
    pub second: Option<Format>,
    pub has_table: bool,
    pub releases: Releases,
}

#[derive(Default)]
pub(crate) struct Assembler {
    heaps: Vec<Pending>,
    /// The position of the last event: most of them come in a row.
    last: usize,
}

struct Pending {
    isolate: Isolate,
    collection: Option<(Collection, Formats)>,
    remembered: [Option<Key>; REMEMBERED],
    next: usize,
}

/// Two lines that agree in this report the same collection.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    at_ms: f64,
    kind: Kind,
    pause_ms: f64,
    used_after: Option<u64>,
}

impl Assembler {
    pub(crate) fn push(&mut self, event: Event, fact: &mut impl FnMut(Fact)) {
        match event {
            Event::Collection(collection, origin) => self.collection(collection, origin, fact),
            Event::Row(isolate, row) => {
                if let Some((collection, formats)) = &mut self.heap(isolate, fact).collection {
                    formats.has_table = true;
                    complete(collection, row);
                }
            }
            Event::Release(isolate, releases) => fact(Fact::Release(isolate, releases)),
            Event::Process(isolate, process) => {
                self.flush(fact);
                fact(Fact::Process(isolate, process));
            }
            Event::Gap(isolate, from_ms, to_ms) => {
                self.heap(isolate, fact).flush(fact);
                fact(Fact::Gap(isolate, from_ms, to_ms));
            }
            Event::Profile(isolate, worker, part) => {
                // Collections come before the samples of their time.
                self.heap(isolate, fact).flush(fact);
                fact(Fact::Profile(isolate, worker, part));
            }
            Event::OutOfMemory => fact(Fact::OutOfMemory),
        }
    }

    /// Flushes everything pending at the end.
    pub(crate) fn flush(&mut self, fact: &mut impl FnMut(Fact)) {
        for heap in &mut self.heaps {
            heap.flush(fact);
        }
    }

    fn collection(&mut self, collection: Collection, origin: Origin, fact: &mut impl FnMut(Fact)) {
        let heap = self.heap(collection.isolate, fact);
        if origin.is_last_words {
            fact(Fact::LastWords(collection.isolate));
            if heap.remembered.contains(&Some(Key::of(&collection))) {
                return;
            }
        }
        if let Some((pending, formats)) = &mut heap.collection
            && formats.is_same(pending, &collection, origin)
        {
            formats.second = Some(origin.format);
            formats.releases = formats.releases & origin.releases;
            merge(pending, collection);
            return;
        }
        heap.flush(fact);
        heap.remembered[heap.next] = Some(Key::of(&collection));
        heap.next = (heap.next + 1) % REMEMBERED;
        let formats =
            Formats { first: origin.format, second: None, has_table: false, releases: origin.releases };
        heap.collection = Some((collection, formats));
    }

    fn heap(&mut self, isolate: Isolate, fact: &mut impl FnMut(Fact)) -> &mut Pending {
        if self.heaps.get(self.last).is_none_or(|heap| heap.isolate != isolate) {
            self.last = match self.heaps.iter().position(|heap| heap.isolate == isolate) {
                Some(known) => known,
                None => {
                    if self.heaps.len() == HEAPS {
                        self.flush(fact);
                        self.heaps.clear();
                    }
                    self.heaps.push(Pending::new(isolate));
                    self.heaps.len() - 1
                }
            };
        }
        &mut self.heaps[self.last]
    }
}

impl Pending {
    fn new(isolate: Isolate) -> Self {
        Self { isolate, collection: None, remembered: [None; REMEMBERED], next: 0 }
    }

    fn flush(&mut self, fact: &mut impl FnMut(Fact)) {
        if let Some((collection, formats)) = &self.collection {
            fact(Fact::Collection(collection, *formats));
            self.collection = None;
        }
    }
}

impl Key {
    fn of(collection: &Collection) -> Self {
        let Collection { at_ms, kind, pause_ms, used_after, .. } = *collection;
        Self { at_ms, kind, pause_ms, used_after }
    }
}

impl Formats {
    /// Whether `next` is the pending collection in another format: in the same millisecond, as long and as large as
    /// the digits of both can tell.
    fn is_same(&self, pending: &Collection, next: &Collection, origin: Origin) -> bool {
        /// 0.1 ms in Node 18 and in `--trace-gc-nvp`.
        const PAUSE_MS: f64 = 0.1;
        /// 0.1 MiB in `--trace-gc`.
        const BYTES: u64 = (1 << 20) / 10;
        self.first != origin.format
            && self.second.is_none_or(|second| second != origin.format)
            && pending.kind == next.kind
            && pending.at_ms == next.at_ms
            && (pending.pause_ms - next.pause_ms).abs() < PAUSE_MS
            && is_near(pending.used_before, next.used_before, BYTES)
            && is_near(pending.used_after, next.used_after, BYTES)
    }
}

fn is_near(a: Option<u64>, b: Option<u64>, bytes: u64) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.abs_diff(b) < bytes)
}

/// The format that measures the young generation is the more precise one; it has no reason before Node 26.
fn merge(pending: &mut Collection, next: Collection) {
    let (exact, other) = if pending.young.is_some_and(|young| young.allocated.is_some()) {
        (pending.clone(), next)
    } else {
        (next, pending.clone())
    };
    let has_reason = !exact.reason.0.is_empty();
    *pending = Collection {
        pause_ms: if exact.pause_ms == 0.0 { other.pause_ms } else { exact.pause_ms },
        steps_ms: exact.steps_ms.max(other.steps_ms),
        committed_before: if exact.committed_before == 0 {
            other.committed_before
        } else {
            exact.committed_before
        },
        committed_after: if exact.committed_after == 0 {
            other.committed_after
        } else {
            exact.committed_after
        },
        external_after: exact.external_after.or(other.external_after),
        reason: if has_reason { exact.reason.clone() } else { other.reason },
        last_resort: exact.last_resort || other.last_resort,
        young: exact.young.or(other.young),
        spaces: exact.spaces.or(other.spaces),
        ..exact
    };
}

fn complete(collection: &mut Collection, row: Row) {
    let mut space = |place: fn(&mut Spaces) -> &mut u64, bytes: u64| {
        let place = place(collection.spaces.get_or_insert_default());
        *place = place.saturating_add(bytes);
    };
    match row {
        Row::New { used, capacity } => {
            space(|spaces| &mut spaces.new, used);
            survivors(collection, used, Some(capacity));
        }
        Row::NewLarge(used) => {
            space(|spaces| &mut spaces.new_large, used);
            survivors(collection, used, None);
        }
        Row::Old(used) => space(|spaces| &mut spaces.old, used),
        Row::Code(used) => space(|spaces| &mut spaces.code, used),
        Row::Map(used) => space(|spaces| &mut spaces.map, used),
        Row::Large(used) => space(|spaces| &mut spaces.large, used),
        Row::ReadOnly(used) => space(|spaces| &mut spaces.read_only, used),
        Row::Other(used) => space(|spaces| &mut spaces.other, used),
        Row::Committed(bytes) if collection.committed_after == 0 => collection.committed_after = bytes,
        Row::Committed(_) => {}
        Row::External(bytes) => collection.external_after = Some(bytes),
    }
}

/// The young spaces after a collection contain what it kept there, unless that was counted more precisely.
fn survivors(collection: &mut Collection, used: u64, capacity: Option<u64>) {
    let young = collection.young.get_or_insert_default();
    if young.allocated.is_none() {
        young.copied = Some(young.copied.unwrap_or(0).saturating_add(used));
    }
    if young.capacity.is_none() {
        young.capacity = capacity;
    }
}
