//! The original zlib inside a stream of ours.
//!
//! zlib handles a stream that is flushed every few bytes at lower cost: it keeps its hash tables between calls, whereas
//! an engine would have to learn the window again for each. The original gets the memory that the stream already has,
//! which has room for it at a memory level one lower, and continues where the stream is: same window, same unfinished
//! byte. Header, checksum and trailer remain ours.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::{NonNull, null, null_mut};

use hasten_deflate::abi::{Z_BUF_ERROR, Z_DEFLATED, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, Z_UNKNOWN, ZStream};
use hasten_deflate::engine::Settings;
use hasten_deflate::header::Wrapper;
use hasten_deflate::pool;
use hasten_deflate::store::Store;
use hasten_deflate::stream::{Deflate, Flush};
use hasten_telemetry::{Reason, slot};

use crate::allocation::put;
use crate::deflate::{advance, input, output};
use crate::hooks::original;

/// A stream of the original, in the memory of one of ours.
#[derive(Debug)]
pub(crate) struct Nested {
    /// In the stream's memory, because the original's state points back to it.
    inner: NonNull<Inner>,
    /// Whether the original has not been called yet, and does not know what the outer stream did last.
    is_fresh: bool,
    /// The bytes after the last block, once there is one.
    trailer: Option<Trailer>,
}

#[derive(Debug)]
struct Inner {
    strm: ZStream,
    arena: Arena,
}

/// Hands out a stream's memory from front to back.
#[derive(Debug)]
struct Arena {
    store: *const Store,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Trailer {
    bytes: [u8; 8],
    len: usize,
    done: usize,
}

impl Nested {
    /// Opens the original where `stream` is. If there is no room for it, nothing changes.
    ///
    /// # Safety
    ///
    /// `stream` does not move while the result is in use.
    pub(crate) unsafe fn take_over(stream: &mut Deflate) -> Option<Self> {
        let mut window = pool::scratch(stream.settings().window())?;
        let (len, bits) = stream.hand_over(&mut window);
        // SAFETY: the arena serves from memory that `stream` no longer uses.
        unsafe {
            let Some(mut nested) = Self::open(stream) else {
                stream.take_back(&window[..len], bits);
                return None;
            };
            let strm = nested.stream();
            if let Some(tuning) = stream.settings().tuning {
                let (good, lazy) = (tuning.good_length, tuning.max_lazy);
                original::deflateTune.get()(strm, good, lazy, tuning.nice_length, tuning.max_chain);
            }
            let primed = original::deflatePrime.get()(strm, bits.count().into(), bits.value().into());
            let learned = original::deflateSetDictionary.get()(strm, window.as_ptr(), len as c_uint);
            if primed != Z_OK || learned != Z_OK {
                stream.take_back(&window[..len], bits);
                return None;
            }
            slot().bypass(Reason::SmallFlushes);
            Some(nested)
        }
    }

    /// # Safety
    ///
    /// As [`Nested::take_over`].
    unsafe fn open(stream: &Deflate) -> Option<Self> {
        // SAFETY: the place has room and alignment for an `Inner`, and is used for nothing else.
        unsafe {
            let (place, next) = stream.store().place(0, size_of::<Inner>())?;
            let mut strm = ZStream::new();
            strm.zalloc = Some(arena_alloc);
            strm.zfree = Some(arena_free);
            let inner = put(place, Inner { strm, arena: Arena { store: stream.store(), next } });
            let inner = NonNull::new(inner)?;
            let strm = &raw mut (*inner.as_ptr()).strm;
            (*strm).opaque = (&raw mut (*inner.as_ptr()).arena).cast();
            let Settings { level, window_bits, mem_level, strategy, .. } = *stream.settings();
            let (version, size) = (c"1.2.13".as_ptr(), size_of::<ZStream>() as c_int);
            let (window, mem_level) = (-c_int::from(window_bits), c_int::from(mem_level) - 1);
            let code = original::deflateInit2_.get()(
                strm,
                level.into(),
                Z_DEFLATED,
                window,
                mem_level,
                strategy as c_int,
                version,
                size,
            );
            (code == Z_OK).then_some(Self { inner, is_fresh: true, trailer: None })
        }
    }

    /// The original's own stream.
    pub(crate) fn stream(&mut self) -> *mut ZStream {
        // SAFETY: the inner stream lives as long as the outer one's memory.
        unsafe { &raw mut (*self.inner.as_ptr()).strm }
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.trailer.is_none()
    }

    /// # Safety
    ///
    /// The buffers of `strm` are valid; `outer` is the stream that this one is nested in.
    pub(crate) unsafe fn deflate(&mut self, outer: &mut Deflate, strm: &mut ZStream, flush: Flush) -> c_int {
        if self.trailer.is_none() {
            // Without room, zlib refuses before it remembers the flush.
            let is_idle = strm.avail_in == 0 && strm.avail_out > 0 && self.pending().0 == 0;
            if self.is_fresh && is_idle && outer.repeats(flush) {
                return Z_BUF_ERROR;
            }
            // SAFETY: the caller's promise.
            let code = unsafe { self.pass_flush(outer, strm, flush) };
            if code != Z_STREAM_END {
                return code;
            }
            let (bytes, len) = outer.trailer();
            self.trailer = Some(Trailer { bytes, len, done: 0 });
        } else if flush != Flush::Finish {
            return Z_STREAM_ERROR;
        } else if strm.avail_out == 0 || strm.avail_in != 0 {
            return Z_BUF_ERROR;
        }
        // SAFETY: the caller's promise.
        unsafe { self.end(strm) }
    }

    /// Writes as much of the trailer as fits.
    ///
    /// # Safety
    ///
    /// `next_out` of `strm` is valid for writes of `avail_out` bytes.
    unsafe fn end(&mut self, strm: &mut ZStream) -> c_int {
        let Some(trailer) = &mut self.trailer else { return Z_STREAM_ERROR };
        let rest = &trailer.bytes[trailer.done..trailer.len];
        let now = rest.len().min(strm.avail_out as usize);
        // SAFETY: the caller's buffer has `avail_out` bytes.
        unsafe { output(strm.next_out, now as c_uint) }.copy_from_slice(&rest[..now]);
        trailer.done += now;
        let is_done = trailer.done == trailer.len;
        advance(strm, 0, now as c_uint);
        if is_done { Z_STREAM_END } else { Z_OK }
    }

    /// Lets the original compress the contents of the caller's buffers.
    ///
    /// # Safety
    ///
    /// As [`Nested::deflate`].
    unsafe fn pass_flush(&mut self, outer: &mut Deflate, strm: &mut ZStream, flush: Flush) -> c_int {
        // SAFETY: as `pass`.
        let code = unsafe { self.pass(outer, strm, |strm| original::deflate.get()(strm, flush as c_int)) };
        self.is_fresh &= code < 0;
        code
    }

    /// Lets the original work on the caller's buffers.
    ///
    /// # Safety
    ///
    /// As [`Nested::deflate`]. `call` calls a function of the original for the stream passed to it.
    unsafe fn pass(
        &mut self,
        outer: &mut Deflate,
        strm: &mut ZStream,
        call: impl FnOnce(*mut ZStream) -> c_int,
    ) -> c_int {
        // SAFETY: the buffers are the caller's; the inner stream is ours.
        unsafe {
            let inner = &mut *self.stream();
            inner.msg = null();
            (inner.next_in, inner.avail_in) = (strm.next_in, strm.avail_in);
            (inner.next_out, inner.avail_out) = (strm.next_out, strm.avail_out);
            let code = call(inner);
            if !inner.msg.is_null() {
                strm.msg = inner.msg;
            }
            if strm.data_type == Z_UNKNOWN {
                strm.data_type = inner.data_type;
            }
            let (consumed, produced) = (strm.avail_in - inner.avail_in, strm.avail_out - inner.avail_out);
            outer.account(input(strm.next_in, consumed));
            advance(strm, consumed, produced);
            if outer.wrapper() != Wrapper::Raw {
                strm.adler = outer.check().into();
            }
            code
        }
    }

    /// # Safety
    ///
    /// As [`Nested::deflate`].
    pub(crate) unsafe fn params(
        &mut self,
        outer: &mut Deflate,
        strm: &mut ZStream,
        settings: Settings,
    ) -> c_int {
        let (level, strategy) = (settings.level.into(), settings.strategy as c_int);
        if self.is_fresh && outer.must_flush_for(&settings) {
            // The original would not flush: to it, the stream has only just begun.
            // SAFETY: the caller's promise.
            unsafe { self.pass_flush(outer, strm, Flush::Block) };
        }
        // SAFETY: the caller's promise.
        let code =
            unsafe { self.pass(outer, strm, |strm| original::deflateParams.get()(strm, level, strategy)) };
        if code == Z_OK {
            outer.note_settings(settings);
        }
        code
    }

    pub(crate) fn pending(&mut self) -> (usize, u8) {
        let (mut bytes, mut bits) = (0, 0);
        // SAFETY: the inner stream and two integers of ours.
        unsafe { original::deflatePending.get()(self.stream(), &raw mut bytes, &raw mut bits) };
        let trailer = self.trailer.map_or(0, |trailer| trailer.len - trailer.done);
        (bytes as usize + trailer, bits as u8)
    }

    /// Ends the nesting, keeping the window.
    pub(crate) fn give_back(&mut self, outer: &mut Deflate) {
        // A stream can do without its window.
        let Some(mut window) = pool::scratch(outer.settings().window()) else {
            return outer.take_back(&[], hasten_deflate::engine::Bits::NONE);
        };
        let mut len = 0;
        // SAFETY: the buffer has room for the window.
        unsafe { original::deflateGetDictionary.get()(self.stream(), window.as_mut_ptr(), &raw mut len) };
        outer.take_back(&window[..len as usize], hasten_deflate::engine::Bits::NONE);
    }

    /// A copy for `outer`, which is the copy of the stream this one is nested in.
    ///
    /// # Safety
    ///
    /// As [`Nested::take_over`].
    pub(crate) unsafe fn copy_into(&mut self, outer: &mut Deflate) -> Option<Self> {
        // SAFETY: as in `open`; the original uses the source's allocator for the copy, so it gets the copy's arena.
        unsafe {
            let (place, next) = outer.store().place(0, size_of::<Inner>())?;
            let copy =
                put(place, Inner { strm: ZStream::new(), arena: Arena { store: outer.store(), next } });
            let source = self.stream();
            let arena = (*source).opaque;
            (*source).opaque = (&raw mut (*copy).arena).cast();
            let code = original::deflateCopy.get()(&raw mut (*copy).strm, source);
            (*source).opaque = arena;
            (code == Z_OK).then_some(Self { inner: NonNull::new(copy)?, ..*self })
        }
    }
}

/// # Safety
///
/// `arena` points to the [`Arena`] of an [`Inner`] in use, and nothing else uses it meanwhile; its store is that of the
/// stream around it, which is alive.
unsafe extern "C" fn arena_alloc(arena: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: `opaque` of an inner stream: its arena, and the store of the stream around it.
    unsafe {
        let arena = &mut *arena.cast::<Arena>();
        let Some((place, next)) = (*arena.store).place(arena.next, items as usize * size as usize) else {
            return null_mut();
        };
        arena.next = next;
        place.as_ptr().cast()
    }
}

/// The memory belongs to the outer stream.
extern "C" fn arena_free(_: *mut c_void, _: *mut c_void) {}
