//! libdeflate, the most compression for the time. We link not the published library but our own build of it, which can
//! begin and end in the middle of a stream (`part.c`).

mod ffi;

use std::ptr::NonNull;

use super::{Bits, Chunk, Engine, EngineKind, Settings, Written, serves};
use crate::{pages, pool};

/// For each of zlib's levels, the least effort that yields output of its size, by `examples/measure_streams.rs`: well below it
/// in total, and at most 3 % above it for any file. libdeflate's own levels are not used: if longer matches are
/// accepted immediately, less searching gets as far. Level 0 is never asked for.
const EFFORTS: [Effort; 11] = [
    Effort::FASTEST,
    Effort::FASTEST,
    Effort { parsing: Parsing::Greedy, depth: 4, nice_length: 128 },
    Effort { parsing: Parsing::Greedy, depth: 5, nice_length: 128 },
    Effort { parsing: Parsing::Lazy, depth: 8, nice_length: 64 },
    Effort { parsing: Parsing::Lazy, depth: 24, nice_length: 130 },
    Effort { parsing: Parsing::Lazy, depth: 35, nice_length: 130 },
    Effort { parsing: Parsing::Lazy, depth: 60, nice_length: 130 },
    Effort { parsing: Parsing::Lazy, depth: 100, nice_length: 258 },
    Effort { parsing: Parsing::Lazy, depth: 128, nice_length: 258 },
    Effort::COUNTERS,
];

/// A level of our own at which ascending numbers become shortest. The latest candidates share the digits that seldom
/// change; an older one that shares one more digit costs a longer distance, and breaks the run of matches with the same
/// length and distance. So this level is both faster and, by up to a half, shorter than all others.
pub const COUNTERS: u8 = 10;

/// Up to this size the fastest parsing matches zlib's level.
const FASTEST_UP_TO: [usize; 11] = [usize::MAX, usize::MAX, 8 << 10, 2 << 10, 0, 0, 0, 0, 0, 0, 0];

/// How hard to look for matches.
#[derive(Clone, Copy, Debug)]
struct Effort {
    parsing: Parsing,
    /// How many candidates are looked at.
    depth: u32,
    /// A match of this length is good enough to stop looking.
    nice_length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parsing {
    Fastest = 0,
    Greedy = 1,
    Lazy = 2,
}

impl Effort {
    const FASTEST: Self = Self { parsing: Parsing::Fastest, depth: 1, nice_length: 64 };
    const COUNTERS: Self = Self { parsing: Parsing::Lazy, depth: 4, nice_length: 32 };

    fn of(level: u8, length: usize) -> Option<Self> {
        let level = usize::from(level);
        let is_short = length <= *FASTEST_UP_TO.get(level)?;
        Some(if is_short { Self::FASTEST } else { EFFORTS[level] })
    }
}

/// Up to this size small tables are enough, and clearing large ones takes longer than compressing.
const SMALL: usize = 4 << 10;

/// Tables for the fastest parsing and for all others, small and large, made on first use.
#[derive(Debug, Default)]
pub struct Libdeflate {
    compressors: [Option<Compressor>; 4],
}

impl Libdeflate {
    pub fn new() -> Self {
        Self::default()
    }

    /// With all tables; `None` if memory runs out.
    pub(crate) fn complete() -> Option<Self> {
        let mut engine = Self::new();
        for (has_chains, is_small) in [(false, false), (false, true), (true, false), (true, true)] {
            engine.tables(has_chains, is_small)?;
        }
        Some(engine)
    }

    fn compressor(&mut self, effort: Effort, window: usize, length: usize) -> Option<&mut Compressor> {
        let compressor = self.tables(effort.parsing != Parsing::Fastest, length <= SMALL)?;
        compressor.tune(effort, window);
        Some(compressor)
    }

    fn tables(&mut self, has_chains: bool, is_small: bool) -> Option<&mut Compressor> {
        let slot = &mut self.compressors[usize::from(has_chains) * 2 + usize::from(is_small)];
        if slot.is_none() {
            *slot = Compressor::new(if is_small { &ffi::SMALL } else { &ffi::LARGE }, has_chains);
        }
        slot.as_mut()
    }
}

impl Engine for Libdeflate {
    fn kind(&self) -> EngineKind {
        EngineKind::Libdeflate
    }

    fn compress(&mut self, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        if !serves(EngineKind::Libdeflate, settings, chunk) {
            return None;
        }
        if chunk.input.is_empty() && !chunk.last {
            return Some(Written { bytes: 0, after: chunk.before, synced: false });
        }
        let effort = Effort::of(settings.level, chunk.input.len())?;
        let compressor =
            self.compressor(effort, settings.window(), chunk.history.len() + chunk.input.len())?;
        if chunk.history.is_empty() {
            return compressor.compress(chunk.before, chunk.input, 0, chunk.last, out);
        }
        // Matches are found by comparing with what precedes the input, so history and input must be contiguous.
        let history = &chunk.history[chunk.history.len().saturating_sub(settings.window())..];
        let mut joined = pool::scratch(history.len() + chunk.input.len())?;
        joined[..history.len()].copy_from_slice(history);
        joined[history.len()..].copy_from_slice(chunk.input);
        compressor.compress(chunk.before, &joined, history.len(), chunk.last, out)
    }
}

#[derive(Debug)]
struct Compressor {
    api: &'static ffi::Api,
    tables: NonNull<ffi::Compressor>,
}

// SAFETY: a compressor is memory tied to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Compressor {}

impl Compressor {
    fn new(api: &'static ffi::Api, has_chains: bool) -> Option<Self> {
        // SAFETY: the two functions form an allocator, which the compressor keeps.
        NonNull::new(unsafe { (api.new)(has_chains, pages::malloc, pages::free) })
            .map(|tables| Self { api, tables })
    }

    fn tune(&mut self, effort: Effort, window: usize) {
        let Effort { parsing, depth, nice_length } = effort;
        // SAFETY: the compressor is alive and ours alone, and has the tables for this parsing (`Libdeflate::compressor`).
        unsafe { (self.api.tune)(self.tables.as_ptr(), parsing as u32, depth, nice_length, window as u32) }
    }

    /// Compresses the part of `bytes` that follows its first `history` bytes.
    fn compress(
        &mut self,
        before: Bits,
        bytes: &[u8],
        history: usize,
        last: bool,
        out: &mut [u8],
    ) -> Option<Written> {
        let (mut value, mut count) = (before.value(), before.count());
        // SAFETY: the compressor is alive and ours alone; the buffers are slices of these lengths, the history lies
        // within the first, and input follows it unless the whole stream is empty (`serves`). `before` holds fewer than
        // eight bits.
        let written = unsafe {
            (self.api.compress)(
                self.tables.as_ptr(),
                bytes.as_ptr(),
                history,
                bytes.len() - history,
                last,
                out.as_mut_ptr(),
                out.len(),
                &raw mut value,
                &raw mut count,
            )
        };
        let after = if last { Bits::NONE } else { Bits::new(value, count) };
        (written > 0).then_some(Written { bytes: written, after, synced: false })
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the compressor is alive, and nobody uses it afterwards.
        unsafe { (self.api.free)(self.tables.as_ptr()) }
    }
}
