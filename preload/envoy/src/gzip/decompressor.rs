//! The decompressors of Envoy's gzip filter, by the inflate of [`hasten_deflate`].
//!
//! A decompressor of ours takes the place of the original, and has the same interface. It does what the original does,
//! with the same results on damaged bodies too, but inflates into larger pieces of memory. The original is made as well:
//! it has the counters of errors.

use core::ffi::{c_uint, c_void};
use core::mem::transmute;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

use hasten_deflate::abi::{Z_BUF_ERROR, Z_NO_FLUSH, Z_OK, Z_STREAM_END, ZStream};
use hasten_deflate::inflate;
use hasten_envoy_builds::{BOMB_PROTECTION, DecompressorFactory, Gzip};
use hasten_telemetry::{Event, Reason, slot};

use super::buffer::Buffer;
use super::memory::{allocate, free};
use crate::object::Object;
use crate::program::Program;

/// `DecompressorPtr createDecompressor(const std::string& prefix)`: the result is written to `place`, whose address is
/// returned.
pub(super) type Create = unsafe extern "C" fn(
    place: *mut *mut Object,
    factory: NonNull<DecompressorFactory>,
    prefix: *const c_void,
) -> *mut *mut Object;

/// What is known of the program.
struct Known {
    /// The original of [`create`].
    create: usize,
    /// In a decompressor of Envoy's: a pointer to the counter of damaged bodies.
    data_errors: usize,
    /// In the table of that counter's functions, in bytes.
    increment: usize,
    /// The address of `bool runtimeFeatureEnabled(absl::string_view)`.
    feature_enabled: usize,
    /// The address of the feature's name.
    bomb_protection: usize,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

fn known() -> &'static Known {
    KNOWN.get().expect("`prepare` comes before the first decompressor")
}

/// Makes [`create`] ready to be called.
///
/// # Safety
///
/// `gzip` describes `program` and is verified; `create` is the address of a [`Create`].
pub(super) unsafe fn prepare(program: &Program, gzip: &Gzip, create: usize) {
    let _ = KNOWN.set(Known {
        create,
        data_errors: gzip.data_errors as usize,
        increment: gzip.increment as usize,
        feature_enabled: program.at(gzip.feature_enabled),
        bomb_protection: program.at(gzip.bomb_protection),
    });
    FUNCTIONS.type_info.store(program.at(gzip.decompressor), Relaxed);
}

/// # Safety
///
/// As for `createDecompressor`: `factory` is a factory of decompressors, `place` has room for a pointer, and `prefix` is a
/// string.
pub(super) unsafe extern "C" fn create(
    place: *mut *mut Object,
    factory: NonNull<DecompressorFactory>,
    prefix: *const c_void,
) -> *mut *mut Object {
    hasten_telemetry::start();
    // SAFETY: the caller's promise; `prepare` came first.
    unsafe {
        let original: Create = transmute(known().create);
        original(place, factory, prefix);
        let Some(decompressor) = NonNull::new(place.read()) else { return place };
        match Decompressor::new(&factory.read(), decompressor) {
            Some(ours) => place.write(ours.cast()),
            None => slot().bypass(Reason::UnsupportedParameters),
        }
    }
    place
}

/// The virtual functions of [`Decompressor`], as the C++ ABI arranges them.
#[repr(C)]
struct Functions {
    /// From the part with these functions to the whole object.
    to_top: isize,
    type_info: AtomicUsize,
    /// An object points here.
    destroy: unsafe extern "C" fn(*mut Decompressor),
    delete: unsafe extern "C" fn(*mut Decompressor),
    decompress: unsafe extern "C" fn(*mut Decompressor, NonNull<Object>, NonNull<Object>),
}

static FUNCTIONS: Functions =
    Functions { to_top: 0, type_info: AtomicUsize::new(0), destroy, delete, decompress };

/// An `Envoy::Compression::Decompressor::Decompressor`.
#[repr(C)]
struct Decompressor {
    functions: *const unsafe extern "C" fn(*mut Decompressor),
    /// Envoy's own, which inflates nothing.
    original: NonNull<Object>,
    /// In its own memory, because its state points back to it.
    stream: Box<ZStream>,
    /// In how large pieces the original outputs, in bytes.
    chunk_size: u64,
    max_ratio: u64,
}

/// The window's bits that every stream of gzip can be inflated with, plus 16, which asks for gzip's header.
const GZIP_WINDOW: i32 = 15 + 16;

/// The CPU time in nanoseconds that a kibibyte of JSON costs Envoy's zlib-ng, in pieces of 4 KiB, more than it costs us.
const SAVED_NS: u64 = 1300;

impl Decompressor {
    /// Takes over from the original, unless it cannot do the same.
    ///
    /// # Safety
    ///
    /// `original` is a decompressor of Envoy's, and becomes this one's.
    unsafe fn new(factory: &DecompressorFactory, original: NonNull<Object>) -> Option<*mut Self> {
        if factory.window_bits != GZIP_WINDOW || factory.chunk_size == 0 {
            return None;
        }
        let mut stream = Box::new(ZStream { zalloc: Some(allocate), zfree: Some(free), ..ZStream::new() });
        // SAFETY: a stream without state.
        if unsafe { inflate::init(&raw mut *stream, GZIP_WINDOW, inflate::STATE_SIZE) } != Z_OK {
            return None;
        }
        slot().event(Event::InflateStreams);
        Some(Box::into_raw(Box::new(Self {
            functions: &raw const FUNCTIONS.destroy,
            original,
            stream,
            chunk_size: factory.chunk_size.into(),
            max_ratio: factory.max_inflate_ratio,
        })))
    }

    /// Appends to `output` what is in `input`, which stays as it is.
    fn decompress(&mut self, input: &Buffer, output: &mut Buffer) {
        let length = input.length();
        let mut call = Call {
            stop: Stop::new(
                self.max_ratio.wrapping_mul(length as u64),
                output.length() as u64,
                self.chunk_size,
            ),
            room: Room::new(length),
            output,
        };
        let before = self.stream.total_out;
        self.inflate_all(input, length, &mut call);
        call.flush();
        let slot = slot();
        let written = self.stream.total_out.wrapping_sub(before);
        slot.event_n(Event::InflateBytesIn, length as u64);
        slot.event_n(Event::InflateBytesOut, written);
        slot.event_n(Event::InflateHasten, written);
        slot.event_n(Event::InflateSavedNs, written * SAVED_NS / 1024);
    }

    fn inflate_all(&mut self, input: &Buffer, length: usize, call: &mut Call) {
        let mut done = 0;
        for piece in input.slices().iter() {
            done += piece.len();
            if self.inflate(piece, call) == Outcome::Bomb {
                return;
            }
        }
        if done < length {
            self.inflate(&input.copy_from(done), call);
        }
    }

    fn inflate(&mut self, piece: &[u8], call: &mut Call) -> Outcome {
        (self.stream.next_in, self.stream.avail_in) = (piece.as_ptr(), piece.len() as c_uint);
        loop {
            let room = call.room();
            (self.stream.next_out, self.stream.avail_out) = (room.0, room.1 as c_uint);
            // SAFETY: a stream that was opened, with input and room for output.
            let result = unsafe { inflate::inflate(&raw mut *self.stream, Z_NO_FLUSH) };
            call.advance(room.1 - self.stream.avail_out as usize);
            match result {
                Z_STREAM_END => return Outcome::Done,
                Z_BUF_ERROR if self.stream.avail_in == 0 => return Outcome::Done,
                error if error < Z_OK => {
                    // The original tries each piece anew, and counts each failure.
                    self.count_error();
                    return Outcome::Done;
                }
                _ if call.stop.is_due() => {
                    self.count_error();
                    return Outcome::Bomb;
                }
                _ => {}
            }
        }
    }

    /// Counts damage, as the original would.
    fn count_error(&self) {
        let known = known();
        // SAFETY: the code of the original's `decompress`, which is verified, does this.
        unsafe {
            let counter = self.original.byte_add(known.data_errors).cast::<NonNull<Object>>().read();
            let increment: unsafe extern "C" fn(NonNull<Object>) =
                transmute(counter.as_ref().function(known.increment / size_of::<usize>()));
            increment(counter);
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: both are this decompressor's alone.
        unsafe {
            inflate::end(&raw mut *self.stream);
            Object::delete(self.original);
        }
    }
}

/// What became of a piece of input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is used up, or the stream has ended or is damaged.
    Done,
    /// The output has become too long for the input.
    Bomb,
}

/// A call of `decompress`.
struct Call<'a, 'b> {
    stop: Stop,
    room: Room,
    output: &'a mut Buffer<'b>,
}

impl Call<'_, '_> {
    /// Where to inflate to, and how many bytes at most.
    fn room(&mut self) -> (*mut u8, usize) {
        if self.room.length == self.room.memory.capacity() {
            self.flush();
        }
        let (start, length) = self.room.rest();
        (start, length.min(usize::try_from(self.stop.left()).unwrap_or(usize::MAX)))
    }

    /// As many bytes have been written there.
    fn advance(&mut self, bytes: usize) {
        self.room.length += bytes;
        self.stop.written += bytes as u64;
    }

    fn flush(&mut self) {
        // SAFETY: `advance` was told that as much has been written.
        let bytes = unsafe { core::slice::from_raw_parts(self.room.memory.as_ptr(), self.room.length) };
        if !bytes.is_empty() {
            self.output.add(bytes);
        }
        self.room.length = 0;
    }
}

/// Where bodies are inflated to, before they go to a buffer.
struct Room {
    memory: Vec<u8>,
    length: usize,
}

impl Room {
    /// For the output of `input` bytes.
    fn new(input: usize) -> Self {
        const LEAST: usize = 4 << 10;
        const MOST: usize = 64 << 10;
        /// A body is rarely longer than so many times its compressed form.
        const RATIO: usize = 8;
        let size = input.saturating_mul(RATIO).clamp(LEAST, MOST);
        Self { memory: Vec::with_capacity(size), length: 0 }
    }

    fn rest(&mut self) -> (*mut u8, usize) {
        let rest = &mut self.memory.spare_capacity_mut()[self.length..];
        (rest.as_mut_ptr().cast(), rest.len())
    }
}

/// Where a call stops because its output is too long. The original looks at the length whenever it has output a chunk.
struct Stop {
    /// The number of bytes written by this call.
    written: u64,
    /// That number at which it stops, unless the stream has ended.
    at: u64,
}

impl Stop {
    /// `before` bytes were in the buffer, which is not to have more than `limit`.
    fn new(limit: u64, before: u64, chunk_size: u64) -> Self {
        let chunks = limit.saturating_sub(before) / chunk_size + 1;
        Self { written: 0, at: chunks.saturating_mul(chunk_size) }
    }

    fn left(&self) -> u64 {
        self.at - self.written
    }

    fn is_due(&mut self) -> bool {
        if self.written < self.at {
            return false;
        }
        let is_due = is_protected();
        if !is_due {
            self.at = u64::MAX;
        }
        is_due
    }
}

/// Whether long outputs are to be stopped: a setting of the runtime's.
fn is_protected() -> bool {
    let known = known();
    // SAFETY: the function and the name that the code of the original's `decompress` uses. A `string_view` is passed in two
    // registers.
    unsafe {
        let is_enabled: unsafe extern "C" fn(usize, usize) -> bool = transmute(known.feature_enabled);
        is_enabled(known.bomb_protection, BOMB_PROTECTION.len())
    }
}

/// `~Decompressor()`
///
/// # Safety
///
/// `this` is a decompressor of ours that nobody uses any more.
unsafe extern "C" fn destroy(this: *mut Decompressor) {
    // SAFETY: the caller's promise.
    unsafe { ptr::drop_in_place(this) }
}

/// The same, and frees the memory of the object.
///
/// # Safety
///
/// As [`destroy`].
unsafe extern "C" fn delete(this: *mut Decompressor) {
    // SAFETY: it was made by `Decompressor::new`.
    drop(unsafe { Box::from_raw(this) });
}

/// `void decompress(const Buffer::Instance& input, Buffer::Instance& output)`
///
/// # Safety
///
/// `this` is a decompressor of ours, and `input` and `output` are two buffers; all are used by nobody else meanwhile.
unsafe extern "C" fn decompress(this: *mut Decompressor, input: NonNull<Object>, output: NonNull<Object>) {
    // SAFETY: the caller's promise.
    unsafe { (*this).decompress(&Buffer::new(input), &mut Buffer::new(output)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_behind_the_chunk_that_exceeds_the_limit() {
        assert_eq!(Stop::new(0, 0, 4096).at, 4096);
        assert_eq!(Stop::new(4095, 0, 4096).at, 4096);
        assert_eq!(Stop::new(4096, 0, 4096).at, 8192);
        assert_eq!(Stop::new(10_000, 3000, 4096).at, 8192);
        assert_eq!(Stop::new(10, 11, 4096).at, 4096);
        assert_eq!(Stop::new(u64::MAX, 0, 4096).at, u64::MAX);
    }

    #[test]
    fn room_fits_the_input() {
        assert_eq!(Room::new(0).rest().1, 4 << 10);
        assert!((8000..64 << 10).contains(&Room::new(1000).rest().1));
        assert_eq!(Room::new(usize::MAX).rest().1, 64 << 10);
    }
}
