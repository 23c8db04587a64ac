//! libdeflate: a whole stream in one call.

use std::ptr::NonNull;

use libdeflate_sys as ffi;

use super::{Bits, Chunk, Engine, EngineKind, Settings, Written, serves};

/// zlib's level to libdeflate's: the fastest whose output is no larger than zlib's, by `examples/measure.rs`. Level 0 is
/// never asked for.
const LEVELS: [usize; 10] = [1, 1, 2, 3, 4, 5, 6, 6, 7, 8];

const MAX_LEVEL: usize = 12;

/// A compressor for each level that was asked for.
#[derive(Debug, Default)]
pub struct Libdeflate {
    compressors: [Option<Compressor>; MAX_LEVEL + 1],
}

impl Libdeflate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses a whole stream with one of libdeflate's own levels, 0 to 12.
    pub fn compress_whole(&mut self, level: usize, input: &[u8], out: &mut [u8]) -> Option<usize> {
        let slot = self.compressors.get_mut(level)?;
        if slot.is_none() {
            *slot = Compressor::new(level);
        }
        slot.as_mut()?.compress(input, out)
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
        let level = *LEVELS.get(usize::from(settings.level))?;
        let bytes = self.compress_whole(level, chunk.input, out)?;
        Some(Written { bytes, after: Bits::NONE, synced: false })
    }
}

#[derive(Debug)]
struct Compressor(NonNull<ffi::libdeflate_compressor>);

// SAFETY: a compressor is memory that belongs to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Compressor {}

impl Compressor {
    fn new(level: usize) -> Option<Self> {
        // SAFETY: the function has no precondition; a level that does not exist has no compressor.
        NonNull::new(unsafe { ffi::libdeflate_alloc_compressor(level as i32) }).map(Self)
    }

    fn compress(&mut self, input: &[u8], out: &mut [u8]) -> Option<usize> {
        // SAFETY: the compressor is alive and ours alone; the buffers are slices of these lengths.
        let bytes = unsafe {
            ffi::libdeflate_deflate_compress(
                self.0.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                out.as_mut_ptr().cast(),
                out.len(),
            )
        };
        // No stream is empty: zero says that this one did not fit.
        (bytes > 0).then_some(bytes)
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the compressor is alive, and nobody uses it afterwards.
        unsafe { ffi::libdeflate_free_compressor(self.0.as_ptr()) }
    }
}
