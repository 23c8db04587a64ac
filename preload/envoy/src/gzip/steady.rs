//! The rest of a body that comes in short pieces.
//!
//! An engine learns the window anew with each piece; zlib-rs keeps its tables. It continues where the stream is, behind the
//! same window, without a wrapper of its own.

use core::ffi::{c_int, c_uint};
use core::ptr;

use hasten_deflate::abi::{Z_DEFLATED, Z_FINISH, Z_OK, Z_STREAM_END, Z_SYNC_FLUSH, ZStream};
use hasten_deflate::engine::zlib::ZlibApi;
use hasten_deflate::stream::{Deflate, Flush};

use super::memory::{allocate, free};
use super::output::Output;

const ZLIB: ZlibApi = ZlibApi::ZLIB_RS;

/// A stream of zlib-rs. In its own memory, because its state points back to it.
pub(super) struct Steady(Box<ZStream>);

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
        let (level, window_bits) = (settings.level.max(LEAST_LEVEL), settings.window_bits);
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
        let mut steady = Self(zlib);
        // SAFETY: an open stream without a wrapper; the window is copied.
        let learned = unsafe { (ZLIB.set_dictionary)(&raw mut *steady.0, window.as_ptr(), length as c_uint) };
        (learned == Z_OK).then_some(steady)
    }

    /// Compresses a piece of the body of `stream`, and returns the number of bytes of output.
    pub(super) fn deflate(
        &mut self,
        stream: &mut Deflate,
        input: &[u8],
        flush: Flush,
        output: &mut Output,
    ) -> usize {
        let before = self.0.total_out;
        stream.account(input);
        (self.0.next_in, self.0.avail_in) = (input.as_ptr(), input.len() as c_uint);
        let is_last = flush == Flush::Finish;
        loop {
            let room = output.room();
            let length = room.len();
            (self.0.next_out, self.0.avail_out) = (room.as_mut_ptr(), length as c_uint);
            let flush = if is_last { Z_FINISH } else { Z_SYNC_FLUSH };
            // SAFETY: an open stream, with input and room for output.
            let result = unsafe { (ZLIB.deflate)(&raw mut *self.0, flush) };
            let is_full = self.0.avail_out == 0;
            output.advance(length - self.0.avail_out as usize);
            if result == Z_STREAM_END || !is_full {
                break;
            }
        }
        (self.0.next_in, self.0.next_out) = (ptr::null(), ptr::null_mut());
        let mut written = (self.0.total_out - before) as usize;
        if is_last {
            let (trailer, length) = stream.trailer();
            output.append(&trailer[..length]);
            written += length;
        }
        written
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // SAFETY: an open stream. It says only whether it was in the middle of something.
        unsafe { (ZLIB.end)(&raw mut *self.0) };
    }
}
