//! Our own: matches from buckets of positions, found for all positions ahead of the parser.

mod bits;
mod block;
mod cpu;
mod finder;
mod huffman;
mod level;
mod parse;
mod split;
mod symbols;
mod tokens;

use core::ptr::NonNull;

use self::bits::Writer;
use self::cpu::{Avx2, Cpu, Portable};
use self::finder::{Finder, Text};
use self::level::Level;
use self::parse::{Parse, Place};
use self::tokens::Tokens;
use super::{Chunk, Engine, EngineKind, Settings, Written, serves};
use crate::{pages, pool};

/// The tables: half a megabyte, of which a short chunk touches only a little.
#[derive(Debug)]
pub struct Bucket {
    memory: NonNull<Memory>,
    avx2: Option<Avx2>,
}

/// It may be all zeros.
#[repr(C)]
struct Memory {
    finder: finder::Memory,
    tokens: Tokens,
}

// SAFETY: memory that is tied to no thread, and nobody else has a pointer to it.
unsafe impl Send for Bucket {}

impl Bucket {
    /// `None` if memory runs out.
    pub fn new() -> Option<Self> {
        // Zeros are valid for integers, of which it is made, and the alignment is that of a cache line.
        pages::take(size_of::<Memory>()).map(|memory| Self { memory: memory.cast(), avx2: Avx2::detect() })
    }

    /// Whether this CPU has what makes the engine faster than libdeflate.
    pub fn is_fast() -> bool {
        Avx2::detect().is_some()
    }

    /// Works as on a CPU without vectors of 32 bytes.
    pub fn portable() -> Option<Self> {
        let mut engine = Self::new()?;
        engine.avx2 = None;
        Some(engine)
    }

    /// Compresses with one of the engine's own levels, 0 to [`Self::LEVELS`] - 1.
    pub fn compress_at(
        &mut self,
        level: u8,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
    ) -> Option<Written> {
        if chunk.input.is_empty() {
            return empty(chunk, out);
        }
        // SAFETY: we alone own the memory, and it lives as long as `self`.
        let memory = unsafe { self.memory.as_mut() };
        match self.avx2 {
            Some(cpu) => at_level(level, cpu, memory, settings, chunk, out),
            None => at_level(level, Portable::new(), memory, settings, chunk, out),
        }
    }

    /// How many levels there are.
    pub const LEVELS: u8 = 4;
}

fn empty(chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
    if !chunk.last {
        return Some(Written { bytes: 0, after: chunk.before, synced: false });
    }
    let mut writer = Writer::new(chunk.before, out);
    block::write_empty(&mut writer)?;
    Some(end(writer, true))
}

/// Completes the last byte of a stream.
fn end(mut writer: Writer, last: bool) -> Written {
    if last {
        writer.align();
    }
    let (bytes, after) = writer.finish();
    Written { bytes, after, synced: false }
}

fn at_level<C: Cpu>(
    level: u8,
    cpu: C,
    memory: &mut Memory,
    settings: &Settings,
    chunk: &Chunk,
    out: &mut [u8],
) -> Option<Written> {
    let by = match level {
        0 => compress::<C, level::Two>,
        1 => compress::<C, level::Four>,
        2 => compress::<C, level::Eight>,
        3 => compress::<C, level::EightLazier>,
        _ => return None,
    };
    by(cpu, memory, settings, chunk, out)
}

fn compress<C: Cpu, L: Level>(
    cpu: C,
    memory: &mut Memory,
    settings: &Settings,
    chunk: &Chunk,
    out: &mut [u8],
) -> Option<Written> {
    let window = settings.window();
    let history = &chunk.history[chunk.history.len().saturating_sub(window)..];
    let (before, length) = (history.len(), history.len() + chunk.input.len());
    if length + Text::BEHIND >= Text::LONGEST {
        return None;
    }
    let mut buffer = pool::scratch(length + Text::BEHIND)?;
    buffer[..before].copy_from_slice(history);
    buffer[before..length].copy_from_slice(chunk.input);
    buffer[length..].fill(0);
    // SAFETY: the buffer is neither written nor given back before the text is used for the last time.
    let text = unsafe { Text::new(&buffer) };
    let Memory { finder, tokens } = memory;
    let mut finder = Finder::<L>::new(text, finder, window);
    let mut place = Place { position: before as u32, ready: finder.enter_history(before as u32) };
    let mut writer = Writer::new(chunk.before, out);
    while place.position < text.end() {
        tokens.clear();
        let start = place.position as usize;
        place = cpu.run(Parse { finder: &mut finder, tokens: &mut *tokens, place });
        let plain = &buffer[start..place.position as usize];
        block::write(cpu, &mut writer, tokens, plain, chunk.last && place.position == text.end())?;
    }
    Some(end(writer, chunk.last))
}

/// For each of zlib's levels, the fastest of the engine's own that yields output of its size, by `examples/frontier.rs`,
/// and up to what size of input a faster one does.
const LEVELS: [(u8, usize, u8); 10] = [
    (0, 0, 0),
    (0, 0, 0),
    (0, 0, 0),
    (1, 0, 1),
    (1, 0, 1),
    (1, 2560, 2),
    (2, 4 << 10, 3),
    (3, 0, 3),
    (3, 0, 3),
    (3, 0, 3),
];

/// Behind a history, where zlib finds more, short chunks get this level in place of the one before.
const LAZIER: u8 = 3;
const SHORT_PART: usize = 32 << 10;

fn own_level(settings: &Settings, chunk: &Chunk) -> Option<u8> {
    let length = chunk.input.len();
    let (of_short, short, of_others) = *LEVELS.get(usize::from(settings.level))?;
    let own = if length <= short { of_short } else { of_others };
    let is_part = !chunk.history.is_empty() && length < SHORT_PART && own + 1 == LAZIER;
    Some(if is_part { LAZIER } else { own })
}

impl Engine for Bucket {
    fn kind(&self) -> EngineKind {
        EngineKind::Bucket
    }

    fn compress(&mut self, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        if !serves(EngineKind::Bucket, settings, chunk) {
            return None;
        }
        self.compress_at(own_level(settings, chunk)?, settings, chunk, out)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // SAFETY: the memory came from `new`, and nobody uses it afterwards.
        unsafe { pages::give_back(self.memory.cast()) }
    }
}
