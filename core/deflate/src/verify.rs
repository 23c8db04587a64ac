//! Checks an engine's output by decompressing it.

use std::ffi::{c_int, c_uint};
use std::ptr::NonNull;

use libdeflate_sys as ffi;
use libz_rs_sys as zlib;

use crate::engine::{Bits, Chunk, Settings, Written};
use crate::pool::{self, Pool};

static DECOMPRESSORS: Pool<Decompressor> = Pool::new();
static INFLATERS: Pool<Inflater> = Pool::new();

/// Whether `output`, which ends as `written` says, is part of a deflate stream and decodes to exactly the input of
/// `chunk`; `None` if there is no memory to find out. Engines' output for other chunks of the stream is assumed to be
/// right.
pub fn check(settings: &Settings, chunk: &Chunk, output: &[u8], written: &Written) -> Option<bool> {
    let Some(output) = output.get(..written.bytes) else { return Some(false) };
    let mut plain = pool::scratch(chunk.input.len() + 1)?;
    let inflated = if chunk.last && chunk.before.is_empty() && chunk.history.is_empty() {
        DECOMPRESSORS.with(Decompressor::new, |engine| engine.inflate(output, &mut plain))
    } else {
        INFLATERS.with(Inflater::new, |engine| engine.inflate(settings, chunk, output, written, &mut plain))
    };
    Some(inflated == Some(chunk.input.len()) && plain[..chunk.input.len()] == *chunk.input)
}

/// Whether that could be checked, and holds.
pub fn matches(settings: &Settings, chunk: &Chunk, output: &[u8], written: &Written) -> bool {
    check(settings, chunk, output, written) == Some(true)
}

/// Unpacks a whole stream; returns its length if it is well formed and fits.
pub fn unpack(stream: &[u8], plain: &mut [u8]) -> Option<usize> {
    DECOMPRESSORS.with(Decompressor::new, |engine| engine.inflate(stream, plain))
}

/// libdeflate's decompressor, for whole streams.
#[derive(Debug)]
struct Decompressor(NonNull<ffi::libdeflate_decompressor>);

// SAFETY: a decompressor is memory tied to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Decompressor {}

impl Decompressor {
    fn new() -> Option<Self> {
        // SAFETY: the function has no precondition.
        NonNull::new(unsafe { ffi::libdeflate_alloc_decompressor() }).map(Self)
    }

    /// The length of the plain text, if the stream is well formed, fits and ends where `output` does.
    fn inflate(&mut self, output: &[u8], plain: &mut [u8]) -> Option<usize> {
        let (mut consumed, mut produced) = (0, 0);
        // SAFETY: the decompressor is ours alone; the buffers are slices of these lengths.
        let status = unsafe {
            ffi::libdeflate_deflate_decompress_ex(
                self.0.as_ptr(),
                output.as_ptr().cast(),
                output.len(),
                plain.as_mut_ptr().cast(),
                plain.len(),
                &raw mut consumed,
                &raw mut produced,
            )
        };
        let whole = status == ffi::libdeflate_result_LIBDEFLATE_SUCCESS && consumed == output.len();
        whole.then_some(produced)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the decompressor is alive, and nobody uses it afterwards.
        unsafe { ffi::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// zlib-rs's inflate, for part of a stream.
struct Inflater {
    /// In a box, since zlib's state points back to it.
    stream: Box<zlib::z_stream>,
}

// SAFETY: a stream of zlib-rs is tied to no thread, and nobody else has a pointer to this one.
unsafe impl Send for Inflater {}

impl Inflater {
    fn new() -> Option<Self> {
        let mut stream = Box::<zlib::z_stream>::default();
        let size = size_of::<zlib::z_stream>() as c_int;
        // SAFETY: the stream has no state yet; zlib-rs allocates by itself.
        ok(unsafe { zlib::inflateInit2_(&raw mut *stream, -15, zlib::zlibVersion(), size) })?;
        Some(Self { stream })
    }

    fn inflate(
        &mut self,
        settings: &Settings,
        chunk: &Chunk,
        output: &[u8],
        written: &Written,
        plain: &mut [u8],
    ) -> Option<usize> {
        self.stream.next_out = plain.as_mut_ptr();
        self.stream.avail_out = c_uint::try_from(plain.len()).ok()?;
        // A part that does not end the stream is given an end, to see that it stops where it says.
        let (end, length) = final_block(written.after);
        let (mut output, mut end) = (output, if chunk.last { &[] } else { &end[..length] });
        self.begin(settings, chunk.history)?;
        if !chunk.before.is_empty() {
            let first = output.split_off_first().or_else(|| end.split_off_first())?;
            self.prime(chunk.before, *first)?;
        }
        let ended = self.feed(output)?;
        let as_said = ended == chunk.last && (ended || self.feed(end)?);
        as_said.then_some(self.stream.total_out as usize)
    }

    fn begin(&mut self, settings: &Settings, history: &[u8]) -> Option<()> {
        let stream = &raw mut *self.stream;
        // SAFETY: the stream was initialized by `new`.
        ok(unsafe { zlib::inflateReset2(stream, -c_int::from(settings.window_bits)) })?;
        if history.is_empty() {
            return Some(());
        }
        let length = c_uint::try_from(history.len()).ok()?;
        // SAFETY: as above; the dictionary is copied.
        ok(unsafe { zlib::inflateSetDictionary(stream, history.as_ptr(), length) })
    }

    /// Feeds the bits of `first` beyond those that were there before.
    fn prime(&mut self, before: Bits, first: u8) -> Option<()> {
        let count = before.count();
        if first & ((1 << count) - 1) != before.value() {
            return None;
        }
        let (bits, value) = (8 - c_int::from(count), c_int::from(first >> count));
        // SAFETY: the stream was initialized by `new`.
        ok(unsafe { zlib::inflatePrime(&raw mut *self.stream, bits, value) })
    }

    /// Inflates all of `input`; whether the stream ends with it.
    fn feed(&mut self, input: &[u8]) -> Option<bool> {
        self.stream.next_in = input.as_ptr();
        self.stream.avail_in = c_uint::try_from(input.len()).ok()?;
        // SAFETY: the stream is initialized, its buffers are slices that outlive the call.
        let status = unsafe { zlib::inflate(&raw mut *self.stream, zlib::Z_SYNC_FLUSH) };
        match status {
            zlib::Z_STREAM_END if self.stream.avail_in == 0 => Some(true),
            zlib::Z_OK | zlib::Z_BUF_ERROR if self.stream.avail_in == 0 => Some(false),
            _ => None,
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: the stream was initialized by `new`, and nobody uses it afterwards.
        unsafe { zlib::inflateEnd(&raw mut *self.stream) };
    }
}

/// The bits behind a chunk and an empty block that ends the stream, with its length.
fn final_block(after: Bits) -> ([u8; 4], usize) {
    // Final, with fixed codes, and containing only the end of the block: 1, 01, 0000000.
    const EMPTY: (u32, usize) = (0b11, 10);
    let bits = u32::from(after.value()) | EMPTY.0 << after.count();
    (bits.to_le_bytes(), (usize::from(after.count()) + EMPTY.1).div_ceil(8))
}

fn ok(status: c_int) -> Option<()> {
    (status == zlib::Z_OK).then_some(())
}
