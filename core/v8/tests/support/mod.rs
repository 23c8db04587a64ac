//! A heap of known behaviour, and the available traces.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hasten_v8::event::{Collection, Isolate, Kind, Reason, Young};

pub(crate) const MB: u64 = 1 << 20;

/// Objects are allocated in lumps of this size.
const LUMP: u64 = 16 << 10;

/// The old generation is collected after growing by this much.
const OLD_GROWTH: u64 = 64 * MB;

/// A program: what it allocates, and how long that lives in bytes allocated meanwhile.
pub(crate) struct Heap {
    pub(crate) allocated: u64,
    /// The share that lives for ever.
    pub(crate) immortal: f64,
    /// The share that lives for this many bytes.
    pub(crate) window: (f64, u64),
}

/// A lump on its way through the young generation.
struct Lump {
    born: u64,
    is_old_enough: bool,
}

impl Heap {
    /// What V8 would write with this limit, if a millisecond passed with each megabyte.
    pub(crate) fn run(&self, limit: u64) -> Vec<Collection> {
        let mut state = State::new();
        let mut now = 0;
        while now < self.allocated {
            now += LUMP;
            state.young.push_back(Lump { born: now, is_old_enough: false });
            state.used += LUMP as f64;
            state.fresh += LUMP;
            if state.old_growth > OLD_GROWTH as f64 {
                self.collect_all(&mut state, now);
            } else if state.fresh as f64 + state.kept >= state.capacity as f64 {
                self.scavenge(&mut state, now, limit);
            }
        }
        state.trace
    }

    /// Bytes of a lump that are still alive.
    fn alive(&self, lump: &Lump, now: u64) -> f64 {
        let (share, window) = self.window;
        let passing = if now - lump.born < window { share } else { 0.0 };
        LUMP as f64 * (self.immortal + passing)
    }

    fn scavenge(&self, state: &mut State, now: u64, limit: u64) {
        let (mut copied, mut promoted) = (0.0, 0.0);
        let mut young = VecDeque::new();
        for lump in state.young.drain(..) {
            let alive = self.alive(&lump, now);
            if lump.is_old_enough {
                promoted += alive;
            } else {
                copied += alive;
                young.push_back(Lump { is_old_enough: true, ..lump });
            }
        }
        state.young = young;
        let garbage = state.fresh as f64 + state.kept - copied - promoted;
        let pause = 0.1 + 0.5 * (copied + 0.3 * promoted) / MB as f64;
        state.report(now, Kind::Scavenge, pause, garbage, (copied, promoted));
        (state.fresh, state.kept) = (0, copied);
        state.old_growth += promoted;
        if state.capacity < limit && state.survived > state.capacity as f64 {
            state.capacity *= 2;
            state.survived = 0.0;
        }
        state.survived += copied + promoted;
    }

    fn collect_all(&self, state: &mut State, now: u64) {
        let promoted: f64 = state.young.drain(..).map(|lump| self.alive(&lump, now)).sum();
        let live = state.base + self.immortal * now as f64 + self.window.0 * self.window.1.min(now) as f64;
        state.report(now, Kind::MarkCompact, 5.0, state.used - live.min(state.used), (0.0, promoted));
        (state.fresh, state.kept, state.old_growth) = (0, 0.0, 0.0);
    }
}

struct State {
    trace: Vec<Collection>,
    young: VecDeque<Lump>,
    capacity: u64,
    fresh: u64,
    kept: f64,
    survived: f64,
    old_growth: f64,
    base: f64,
    used: f64,
}

impl State {
    fn new() -> State {
        let base = 3.0 * MB as f64;
        State {
            trace: Vec::new(),
            young: VecDeque::new(),
            capacity: MB,
            fresh: 0,
            kept: 0.0,
            survived: 0.0,
            old_growth: 0.0,
            base,
            used: base,
        }
    }

    fn report(&mut self, now: u64, kind: Kind, pause_ms: f64, garbage: f64, (copied, promoted): (f64, f64)) {
        let before = self.used;
        self.used -= garbage.max(0.0);
        self.trace.push(Collection {
            isolate: Isolate { pid: 1, address: 1 },
            at_ms: now as f64 / MB as f64,
            kind,
            pause_ms,
            steps_ms: 0.0,
            used_before: Some(before as u64),
            used_after: Some(self.used as u64),
            committed_before: before as u64,
            committed_after: self.used as u64,
            external_after: None,
            reason: Reason(Arc::from("allocation failure")),
            last_resort: false,
            young: Some(Young {
                examined: None,
                allocated: None,
                copied: Some(copied as u64),
                promoted: Some(promoted as u64),
                capacity: None,
            }),
            spaces: None,
        });
    }
}

/// Like `--trace-gc`: tenths of a megabyte, and nothing about the young generation.
pub(crate) fn only_heap(trace: Vec<Collection>) -> Vec<Collection> {
    let tenths = |bytes: u64| (bytes as f64 / MB as f64 * 10.0).round() as u64 * MB / 10;
    let plain = |one: Collection| Collection {
        used_before: one.used_before.map(tenths),
        used_after: one.used_after.map(tenths),
        young: None,
        ..one
    };
    trace.into_iter().map(plain).collect()
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Like `--trace-gc-nvp` of Node 20.
pub(crate) fn text(trace: &[Collection]) -> String {
    let line = |one: &Collection| {
        let young = one.young.unwrap_or_default();
        format!(
            "[7:0x5000]    {:.0} ms: pause={:.2} mutator=1.0 gc={} reduce_memory=0 total_size_before={} total_size_after={} \
             allocated=0 promoted={} new_space_survived={} promotion_rate=0.0%\n",
            one.at_ms,
            one.pause_ms,
            if one.kind == Kind::Scavenge { "s" } else { "mc" },
            one.used_before.unwrap_or_default(),
            one.used_after.unwrap_or_default(),
            young.promoted.unwrap_or_default(),
            young.copied.unwrap_or_default(),
        )
    };
    trace.iter().map(line).collect()
}
