//! zlib as an engine: one raw stream, created once and reset for every chunk.

mod api;

use std::ffi::{c_int, c_uint};
use std::ptr;

pub use api::{
    Deflate, DeflateEnd, DeflateInit2, DeflateParams, DeflatePending, DeflatePrime, DeflateReset,
    DeflateSetDictionary, DeflateTune, Stream, ZlibApi,
};

use super::{Bits, Chunk, Engine, EngineKind, Settings, Strategy, Tuning, Written};
use crate::abi::{self, ZStream};
use crate::pages::{self, Page};

/// zlib-rs, or the program's own zlib.
#[derive(Debug)]
pub struct Zlib {
    kind: EngineKind,
    api: ZlibApi,
    /// In its own memory, since zlib's state points back to it.
    stream: Page<ZStream>,
    configured: Option<Configured>,
}

/// The parameters last set on the stream.
#[derive(Clone, Copy, Debug)]
struct Configured {
    window_bits: u8,
    mem_level: u8,
    level: u8,
    strategy: Strategy,
}

// SAFETY: a stream of zlib is tied to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Zlib {}

impl Zlib {
    /// `None` if memory runs out.
    pub fn zlib_rs() -> Option<Self> {
        Self::new(EngineKind::ZlibRs, ZlibApi::ZLIB_RS)
    }

    /// `None` before [`ZlibApi::set_original`], or if memory runs out.
    pub fn original() -> Option<Self> {
        ZlibApi::original().and_then(|api| Self::new(EngineKind::Original, *api))
    }

    fn new(kind: EngineKind, api: ZlibApi) -> Option<Self> {
        Page::new(ZStream::new()).map(|stream| Self { kind, api, stream, configured: None })
    }

    fn stream(&mut self) -> Stream {
        &raw mut *self.stream
    }

    /// A fresh stream with these settings.
    fn prepare(&mut self, settings: &Settings) -> Option<()> {
        match self.configured {
            Some(now) if now.window_bits == settings.window_bits && now.mem_level == settings.mem_level => {
                self.reset(now, settings)?;
            }
            _ => self.init(settings)?,
        }
        self.tune(settings.tuning)
    }

    /// The settings that the engine gets in place of the stream's.
    ///
    /// Its memory is not the stream's, so there is no reason to save any. The lowest level of zlib-rs is avoided: it
    /// can exhaust the buffer for its own output, which ends the process.
    fn adapted(&self, settings: &Settings) -> Settings {
        let level = match (self.kind, settings.level) {
            (EngineKind::ZlibRs, 1) => 2,
            (_, level) => level,
        };
        Settings { level, mem_level: settings.mem_level.max(8), ..*settings }
    }

    fn init(&mut self, settings: &Settings) -> Option<()> {
        self.end();
        let init2 = self.api.init2;
        let (level, strategy) = (c_int::from(settings.level), settings.strategy as c_int);
        let (window_bits, mem_level) = (c_int::from(settings.window_bits), c_int::from(settings.mem_level));
        let size = size_of::<ZStream>() as c_int;
        *self.stream = ZStream { zalloc: Some(pages::zalloc), zfree: Some(pages::zfree), ..ZStream::new() };
        let stream = self.stream();
        // SAFETY: the stream has no state and has an allocator of the kind zlib wants. Negative window bits ask for raw
        // deflate. Only the part of the version before its first dot is looked at.
        let status = unsafe {
            init2(stream, level, abi::Z_DEFLATED, -window_bits, mem_level, strategy, c"1.2.13".as_ptr(), size)
        };
        self.configured = (status == abi::Z_OK).then_some(Configured {
            window_bits: settings.window_bits,
            mem_level: settings.mem_level,
            level: settings.level,
            strategy: settings.strategy,
        });
        self.configured.map(drop)
    }

    fn reset(&mut self, now: Configured, settings: &Settings) -> Option<()> {
        let stream = self.stream();
        // SAFETY: the stream was initialized.
        ok(unsafe { (self.api.reset)(stream) })?;
        if now.level == settings.level && now.strategy == settings.strategy {
            return Some(());
        }
        let (level, strategy) = (c_int::from(settings.level), settings.strategy as c_int);
        // SAFETY: as above. Nothing has been compressed since the reset, so nothing is written either.
        ok(unsafe { (self.api.params)(stream, level, strategy) })?;
        self.configured = Some(Configured { level: settings.level, strategy: settings.strategy, ..now });
        Some(())
    }

    /// A reset restores the level's own tuning.
    fn tune(&mut self, tuning: Option<Tuning>) -> Option<()> {
        let Some(Tuning { good_length, max_lazy, nice_length, max_chain }) = tuning else { return Some(()) };
        let stream = self.stream();
        // SAFETY: the stream is initialized.
        ok(unsafe { (self.api.tune)(stream, good_length, max_lazy, nice_length, max_chain) })
    }

    /// Makes the stream continue another one.
    fn continue_from(&mut self, before: Bits, history: &[u8]) -> Option<()> {
        let stream = self.stream();
        if !before.is_empty() {
            // SAFETY: the stream is initialized.
            ok(unsafe {
                (self.api.prime)(stream, c_int::from(before.count()), c_int::from(before.value()))
            })?;
        }
        if !history.is_empty() {
            let length = c_uint::try_from(history.len()).ok()?;
            // SAFETY: the stream is initialized and raw; the dictionary is copied.
            ok(unsafe { (self.api.set_dictionary)(stream, history.as_ptr(), length) })?;
        }
        Some(())
    }

    fn set_buffers(&mut self, input: &[u8], out: &mut [u8]) -> Option<()> {
        self.stream.next_in = input.as_ptr();
        self.stream.avail_in = c_uint::try_from(input.len()).ok()?;
        self.stream.next_out = out.as_mut_ptr();
        // A stream cannot be told of more room than this.
        self.stream.avail_out = c_uint::try_from(out.len()).unwrap_or(c_uint::MAX);
        Some(())
    }

    fn deflate(&mut self, flush: c_int) -> c_int {
        let stream = self.stream();
        // SAFETY: the stream is initialized, and its buffers are slices that outlive the call.
        unsafe { (self.api.deflate)(stream, flush) }
    }

    fn finish(&mut self) -> Option<Written> {
        let done = self.deflate(abi::Z_FINISH) == abi::Z_STREAM_END;
        done.then_some(Written { bytes: self.stream.total_out as usize, after: Bits::NONE, synced: false })
    }

    /// Ends the block, but not at a byte boundary.
    fn end_block(&mut self) -> Option<Written> {
        // An empty stream with nothing to end is not an error.
        if !matches!(self.deflate(abi::Z_BLOCK), abi::Z_OK | abi::Z_BUF_ERROR) || self.stream.avail_in > 0 {
            return None;
        }
        let (mut pending, mut bits) = (0, 0);
        let stream = self.stream();
        // SAFETY: the stream is initialized, and both results are writable.
        ok(unsafe { (self.api.pending)(stream, &raw mut pending, &raw mut bits) })?;
        let count = u8::try_from(bits).ok().filter(|bits| *bits < 8)?;
        if pending > 0 {
            return None;
        }
        let bytes = self.stream.total_out as usize;
        Some(Written { bytes, after: self.unfinished(count)?, synced: false })
    }

    /// The bits that zlib still holds: a flush begins with them.
    fn unfinished(&mut self, count: u8) -> Option<Bits> {
        if count == 0 {
            return Some(Bits::NONE);
        }
        let mut flushed = [0; 16];
        self.set_buffers(&[], &mut flushed)?;
        ok(self.deflate(abi::Z_SYNC_FLUSH))?;
        Some(Bits::new(flushed[0], count))
    }

    fn end(&mut self) {
        if self.configured.take().is_some() {
            let stream = self.stream();
            // SAFETY: the stream was initialized and is not used again without `init`. The status says only whether it
            // was in the middle of something.
            unsafe { (self.api.end)(stream) };
        }
    }

    /// No pointer into the caller's memory may survive the call.
    fn forget_buffers(&mut self) {
        self.stream.next_in = ptr::null();
        self.stream.avail_in = 0;
        self.stream.next_out = ptr::null_mut();
        self.stream.avail_out = 0;
    }
}

impl Engine for Zlib {
    fn kind(&self) -> EngineKind {
        self.kind
    }

    fn compress(&mut self, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        self.prepare(&self.adapted(settings))?;
        self.continue_from(chunk.before, chunk.history)?;
        self.set_buffers(chunk.input, out)?;
        let written = if chunk.last { self.finish() } else { self.end_block() };
        self.forget_buffers();
        if written.is_none() {
            // Even after a reset zlib-rs counts output that did not fit as taken from its own buffer, and ends the
            // process once that is used up.
            self.end();
        }
        written
    }
}

impl Drop for Zlib {
    fn drop(&mut self) {
        self.end();
    }
}

fn ok(status: c_int) -> Option<()> {
    (status == abi::Z_OK).then_some(())
}
