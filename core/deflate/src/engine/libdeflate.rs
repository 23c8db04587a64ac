//! libdeflate, the most compression for the time. What is linked is not the library as published but a build of ours
//! that can begin and end in the middle of a stream (`part.c`).

mod ffi;

use std::ptr::NonNull;

use super::{Bits, Chunk, Engine, EngineKind, Settings, Written, serves};
use crate::pool;

/// zlib's level to libdeflate's, by `examples/measure.rs`. Level 0 is never asked for.
const LEVELS: [u8; 10] = [1, 1, 2, 3, 3, 5, 6, 7, 7, 7];

const MAX_LEVEL: usize = 9;

/// Its window, whatever the stream's.
const WINDOW: usize = 1 << 15;

/// A compressor for each level that was asked for.
#[derive(Debug, Default)]
pub struct Libdeflate {
    compressors: [Option<Compressor>; MAX_LEVEL + 1],
}

impl Libdeflate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses with one of libdeflate's own levels, 1 to 9.
    pub fn compress_at(&mut self, level: u8, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        if chunk.input.is_empty() && !chunk.last {
            return Some(Written { bytes: 0, after: chunk.before, synced: false });
        }
        let slot = self.compressors.get_mut(usize::from(level))?;
        if slot.is_none() {
            *slot = Compressor::new(level);
        }
        let compressor = slot.as_mut()?;
        if chunk.history.is_empty() {
            return compressor.compress(chunk.before, chunk.input, 0, chunk.last, out);
        }
        // Matches are found by comparing with what is in front of the input, so the two must be one piece.
        let history = &chunk.history[chunk.history.len().saturating_sub(WINDOW)..];
        let mut joined = pool::scratch(history.len() + chunk.input.len());
        joined[..history.len()].copy_from_slice(history);
        joined[history.len()..].copy_from_slice(chunk.input);
        compressor.compress(chunk.before, &joined, history.len(), chunk.last, out)
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
        self.compress_at(*LEVELS.get(usize::from(settings.level))?, chunk, out)
    }
}

#[derive(Debug)]
struct Compressor(NonNull<ffi::Compressor>);

// SAFETY: a compressor is memory that belongs to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Compressor {}

impl Compressor {
    fn new(level: u8) -> Option<Self> {
        // SAFETY: the function has no precondition; a level that does not exist has no compressor.
        NonNull::new(unsafe { ffi::hasten_libdeflate_new(level.into()) }).map(Self)
    }

    /// Compresses what is in `bytes` behind its first `history`.
    fn compress(
        &mut self,
        before: Bits,
        bytes: &[u8],
        history: usize,
        last: bool,
        out: &mut [u8],
    ) -> Option<Written> {
        let (mut value, mut count) = (before.value(), before.count());
        // Its loop looks at the first byte before it asks whether there is one.
        if bytes.len() == history && (history > 0 || count > 0) {
            return None;
        }
        // SAFETY: the compressor is alive and ours alone; the buffers are slices of these lengths, the history is within
        // the first, and there is input behind it unless the whole stream is empty. Fewer than eight bits come before.
        let written = unsafe {
            ffi::hasten_libdeflate_compress(
                self.0.as_ptr(),
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
        unsafe { ffi::hasten_libdeflate_free(self.0.as_ptr()) }
    }
}
