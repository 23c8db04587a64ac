//! The rest of a body that comes in short pieces.
//!
//! An engine learns the window anew with each piece; zlib-rs keeps its tables. It continues where the stream is, behind the
//! same window, without a wrapper of its own.

use core::ffi::{c_int, c_uint};
use core::ptr;

use hasten_compress::engines;
use hasten_deflate::abi::{Z_DEFLATED, Z_FINISH, Z_OK, Z_STREAM_END, Z_SYNC_FLUSH, ZStream};
use hasten_deflate::engine::EngineKind;
use hasten_deflate::engine::zlib::ZlibApi;
use hasten_deflate::header::{self, Wrapper};
use hasten_deflate::stream::{Deflate, Tally};

use super::buffer::Buffer;
use super::memory::{allocate, free};
use super::output::Output;

const ZLIB: ZlibApi = ZlibApi::ZLIB_RS;

/// The rest of a body whose header is written.
pub(super) struct Steady {
    /// A stream of zlib-rs. In its own memory, because its state points back to it.
    zlib: Box<ZStream>,
    /// Of all that the body had so far.
    check: u32,
    total_in: u64,
}

impl Steady {
    /// Continues a stream that was flushed. `None` if there is no memory; then nothing has changed.
    pub(super) fn take_over(stream: &Deflate) -> Option<Self> {
        /// Lower levels and less memory make output that zlib-rs may have no room for.
        const LEAST_LEVEL: u8 = 2;
        const MEM_LEVEL: c_int = 8;
        let settings = stream.settings();
        let mut window = vec![0; settings.window()];
        let length = stream.dictionary(Some(&mut window));
        let mut zlib = Box::new(ZStream { zalloc: Some(allocate), zfree: Some(free), ..ZStream::new() });
        // What a larger window than was asked for adds to short pieces is not worth its time.
        let window_bits = settings.narrow.unwrap_or(settings.window_bits);
        let level = settings.level.max(LEAST_LEVEL);
        let size = size_of::<ZStream>() as c_int;
        // SAFETY: a stream without state. Negative bits of the window ask for no wrapper.
        let opened = unsafe {
            let version = c"1.2.13".as_ptr();
            (ZLIB.init2)(
                &raw mut *zlib,
                level.into(),
                Z_DEFLATED,
                -c_int::from(window_bits),
                MEM_LEVEL,
                settings.strategy as c_int,
                version,
                size,
            )
        };
        if opened != Z_OK {
            return None;
        }
        let mut steady = Self { zlib, check: stream.check(), total_in: stream.total_in() };
        // SAFETY: an open stream without a wrapper; the window is copied.
        let learned =
            unsafe { (ZLIB.set_dictionary)(&raw mut *steady.zlib, window.as_ptr(), length as c_uint) };
        (learned == Z_OK).then_some(steady)
    }

    /// Replaces the contents of the buffer by their compressed form.
    pub(super) fn compress(&mut self, buffer: &mut Buffer, is_last: bool) {
        let length = buffer.length();
        let mut output = Output::new(length);
        buffer.take(length, |input| self.deflate(input, is_last, &mut output));
        if is_last {
            let (trailer, length) = header::trailer(Wrapper::Gzip, self.check, self.total_in as u32);
            output.append(&trailer[..length]);
        }
        let written = output.add_to(buffer);
        let mut tally = Tally::default();
        tally.engines[EngineKind::ZlibRs as usize].used(length, written as usize);
        engines::count(&tally, length as u64, written);
    }

    fn deflate(&mut self, input: &[u8], is_last: bool, output: &mut Output) {
        self.check = Wrapper::Gzip.check(self.check, input);
        self.total_in += input.len() as u64;
        (self.zlib.next_in, self.zlib.avail_in) = (input.as_ptr(), input.len() as c_uint);
        let flush = if is_last { Z_FINISH } else { Z_SYNC_FLUSH };
        loop {
            let room = output.room();
            let length = room.len();
            (self.zlib.next_out, self.zlib.avail_out) = (room.as_mut_ptr(), length as c_uint);
            // SAFETY: an open stream, with input and room for output.
            let result = unsafe { (ZLIB.deflate)(&raw mut *self.zlib, flush) };
            let is_full = self.zlib.avail_out == 0;
            output.advance(length - self.zlib.avail_out as usize);
            if result == Z_STREAM_END || !is_full {
                break;
            }
        }
        (self.zlib.next_in, self.zlib.next_out) = (ptr::null(), ptr::null_mut());
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // SAFETY: an open stream. It says only whether it was in the middle of something.
        unsafe { (ZLIB.end)(&raw mut *self.zlib) };
    }
}
