//! ISA-L: one pass over the input, with or without history.

mod ffi;

use std::ptr::NonNull;

use super::{Bits, Chunk, Engine, EngineKind, Settings, Written, serves};
use crate::pages;

/// Maps zlib's levels to ISA-L's, by `examples/measure_streams.rs`. Level 0 is never asked for.
const LEVELS: [u32; 10] = [2, 2, 3, 3, 3, 3, 3, 3, 3, 3];

/// `ISAL_DEF_LVL3_EXTRA_LARGE`: hash table, matches and the symbols of a block. Whatever a level does not need for its
/// table makes its blocks larger.
const LEVEL_BUFFER: usize = 596 * 1024;

/// Positions are 32-bit; half of that range is plenty.
const MAX_INPUT: usize = 1 << 31;

/// ISA-L's state: half a megabyte, of which a small chunk touches only a little.
pub struct Isal {
    context: NonNull<Context>,
}

#[repr(C, align(64))]
struct Context {
    stream: ffi::Stream,
    level_buffer: [u8; LEVEL_BUFFER],
}

// SAFETY: a stream of ISA-L is tied to no thread, and between two calls its pointers lead into this context or nowhere.
unsafe impl Send for Isal {}

impl Isal {
    /// `None` if memory runs out.
    pub fn new() -> Option<Self> {
        // Zeros are valid for integers and raw pointers, of which the context is made.
        pages::take(size_of::<Context>()).map(|memory| Self { context: memory.cast() })
    }

    fn context(&mut self) -> &mut Context {
        // SAFETY: we alone own the context, and it lives as long as `self`.
        unsafe { self.context.as_mut() }
    }

    /// Compresses with one of ISA-L's own levels, 1 to 3.
    pub fn compress_at(
        &mut self,
        level: u32,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
    ) -> Option<Written> {
        if !chunk.last && chunk.input.is_empty() {
            return Some(Written { bytes: 0, after: chunk.before, synced: false });
        }
        self.prepare(level, settings, chunk, out)?;
        let written = self.run(chunk.last);
        self.context().stream.forget_buffers();
        written
    }

    fn prepare(&mut self, level: u32, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<()> {
        if chunk.input.len() > MAX_INPUT || chunk.history.len() > settings.window() {
            return None;
        }
        let Context { stream, level_buffer } = self.context();
        // SAFETY: the stream is ours; the function overwrites every field that matters.
        unsafe { ffi::isal_deflate_init(stream) };
        stream.level = level;
        stream.level_buf = level_buffer.as_mut_ptr();
        stream.level_buf_size = LEVEL_BUFFER as u32;
        stream.hist_bits = settings.window_bits.into();
        stream.state.bits.bits = chunk.before.value().into();
        stream.state.bits.count = chunk.before.count().into();
        // SAFETY: the stream has just been initialized, and at most a window is copied into it.
        let status =
            unsafe { ffi::isal_deflate_set_dict(stream, chunk.history.as_ptr(), chunk.history.len() as u32) };
        stream.next_in = chunk.input.as_ptr();
        stream.avail_in = chunk.input.len() as u32;
        stream.next_out = out.as_mut_ptr();
        stream.avail_out = u32::try_from(out.len()).unwrap_or(u32::MAX);
        (status == ffi::COMP_OK).then_some(())
    }

    fn run(&mut self, last: bool) -> Option<Written> {
        let stream = &mut self.context().stream;
        stream.end_of_stream = last.into();
        stream.flush = if last { ffi::NO_FLUSH } else { ffi::SYNC_FLUSH };
        // SAFETY: the stream is initialized, and its buffers are slices that outlive the call.
        let status = unsafe { ffi::isal_deflate(stream) };
        let end = if last { ffi::STATE_END } else { ffi::STATE_NEW_BLOCK };
        let done = status == ffi::COMP_OK && stream.avail_in == 0 && stream.state.state == end;
        done.then_some(Written { bytes: stream.total_out as usize, after: Bits::NONE, synced: !last })
    }
}

impl Drop for Isal {
    fn drop(&mut self) {
        // SAFETY: the memory came from `new`, and nobody uses it afterwards.
        unsafe { pages::give_back(self.context.cast()) }
    }
}

impl Engine for Isal {
    fn kind(&self) -> EngineKind {
        EngineKind::Isal
    }

    fn compress(&mut self, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        if !serves(EngineKind::Isal, settings, chunk) {
            return None;
        }
        self.compress_at(*LEVELS.get(usize::from(settings.level))?, settings, chunk, out)
    }
}
