//! The compressors of Envoy's gzip filter: ours where an engine may do better, and the original's otherwise.
//!
//! A compressor of ours takes the place of the original: it has the same interface. A body that begins with a long enough
//! piece is compressed by an engine, each piece flushed as Envoy asks, and nothing of the original is made. Once its pieces
//! are short, zlib-rs goes on (`steady.rs`): an engine would have to learn the window anew for each. For a body that begins
//! with a short piece the original is made, and does all of the work.

use core::ffi::c_int;
use core::mem::transmute;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use hasten_compress::config;
use hasten_compress::engines::{self, ENGINES};
use hasten_deflate::engine::{Settings, Strategy};
use hasten_deflate::header::Wrapper;
use hasten_deflate::store::Store;
use hasten_deflate::stream::{Deflate, Flush, Io, Outcome, Tally};
use hasten_envoy_builds::CompressorFactory;
use hasten_telemetry::{Event, Reason, slot};

use super::buffer::Buffer;
use super::output::Output;
use super::steady::Steady;
use crate::object::Object;

/// `CompressorPtr createCompressor()`: the result is written to `place`, whose address is returned.
pub(super) type Create =
    unsafe extern "C" fn(place: *mut *mut Object, factory: NonNull<CompressorFactory>) -> *mut *mut Object;

/// The original of [`create`].
static ORIGINAL: AtomicUsize = AtomicUsize::new(0);

/// Makes [`create`] ready to be called.
///
/// # Safety
///
/// `original` is the address of a [`Create`], and `type_info` that of the type information of
/// [`hasten_envoy_builds::COMPRESSOR`].
pub(super) unsafe fn prepare(original: usize, type_info: usize) {
    ORIGINAL.store(original, Ordering::Relaxed);
    FUNCTIONS.type_info.store(type_info, Ordering::Relaxed);
}

/// # Safety
///
/// As for `createCompressor`: `factory` is a gzip factory, and `place` has room for a pointer.
pub(super) unsafe extern "C" fn create(
    place: *mut *mut Object,
    factory: NonNull<CompressorFactory>,
) -> *mut *mut Object {
    hasten_telemetry::start();
    // SAFETY: the caller's promise; `prepare` came first.
    unsafe {
        let copy = factory.read();
        match asked(&copy).ok_or(Reason::UnsupportedParameters).and_then(suits) {
            Ok(settings) => {
                place.write(Compressor::new(settings, copy).cast());
                place
            }
            Err(reason) => {
                slot().bypass(reason);
                create_original(place, factory)
            }
        }
    }
}

/// # Safety
///
/// As [`create`]; `factory` may be a copy, of which no more than the fields is read.
unsafe fn create_original(place: *mut *mut Object, factory: NonNull<CompressorFactory>) -> *mut *mut Object {
    // SAFETY: the caller's promise; `prepare` has stored a `Create`.
    unsafe {
        let original: Create = transmute(ORIGINAL.load(Ordering::Relaxed));
        original(place, factory)
    }
}

/// What a factory asks zlib for.
fn asked(factory: &CompressorFactory) -> Option<Settings> {
    /// Added to the window's bits, it asks for gzip's header.
    const GZIP: i32 = 16;
    /// What -1 stands for.
    const DEFAULT: u8 = 6;
    let among = |number: i64, least: u8, most: u8| {
        u8::try_from(number).ok().filter(|number| (least..=most).contains(number))
    };
    Some(Settings {
        level: if factory.level == -1 { DEFAULT } else { among(factory.level, 0, 9)? },
        window_bits: among(factory.window_bits.checked_sub(GZIP)?.into(), 9, 15)?,
        mem_level: among(factory.mem_level.into(), 1, 9)?,
        strategy: Strategy::from_number(i32::try_from(factory.strategy).ok()?)?,
        tuning: None,
        narrow: None,
    })
}

/// With less memory than this, or a smaller window, the original's output is so different that its size says nothing
/// about an engine's.
const LEAST_MEM_LEVEL: u8 = 4;
const LEAST_WINDOW_BITS: u8 = 12;

/// For each level of zlib-ng, the one of zlib at which the engines' output is not larger. From level 7 on, zlib-ng searches
/// so long that it would be; in a window of 32 KiB also at level 6.
const LEVELS: [u8; 7] = [0, 1, 2, 4, 5, 5, 6];
const LAST: u8 = 6;
const SMALL_WINDOW_BITS: u8 = 12;
const LARGEST_WINDOW_BITS: u8 = 15;

/// How long a body must be, if it comes whole, or else its first piece. The engines take as long for some shorter ones, or
/// longer: each piece begins with learning the window.
fn least(settings: &Settings, is_whole: bool) -> usize {
    match settings.narrow.unwrap_or(settings.window_bits) {
        ..=SMALL_WINDOW_BITS => 8 << 10,
        _ if is_whole => 32 << 10,
        _ => 64 << 10,
    }
}

/// The settings for the engines, if they may do better than the original.
fn suits(settings: Settings) -> Result<Settings, Reason> {
    match settings {
        Settings { level: 0, .. } => Err(Reason::StoredLevel),
        Settings { strategy, .. } if strategy != Strategy::Default => Err(Reason::UnusualStrategy),
        Settings { mem_level: ..LEAST_MEM_LEVEL, .. } => Err(Reason::UnusualStrategy),
        Settings { window_bits: ..LEAST_WINDOW_BITS, .. } => Err(Reason::UnusualStrategy),
        Settings { level: LAST, window_bits: LARGEST_WINDOW_BITS, .. } => Err(Reason::UnusualStrategy),
        _ if !ENGINES.has_any() && !ENGINES.devices.is_asked_for() => {
            engines::report(slot());
            Err(Reason::EngineDisabled)
        }
        _ if !ENGINES.reserve() => Err(Reason::UnknownAllocation),
        _ => match LEVELS.get(usize::from(settings.level)) {
            Some(&level) => Ok(in_full_window(Settings { level, ..settings })),
            None => Err(Reason::UnusualStrategy),
        },
    }
}

/// The same in the largest window, if the operator allows it. Every decoder of gzip must be able to follow (RFC 1952), but
/// one that was configured for a smaller window may not.
fn in_full_window(settings: Settings) -> Settings {
    match settings.window_bits {
        LARGEST_WINDOW_BITS => settings,
        narrow if config::get().full_window => {
            Settings { window_bits: LARGEST_WINDOW_BITS, narrow: Some(narrow), ..settings }
        }
        _ => settings,
    }
}

/// The virtual functions of [`Compressor`], as the C++ ABI arranges them.
#[repr(C)]
struct Functions {
    /// From the part with these functions to the whole object.
    to_top: isize,
    type_info: AtomicUsize,
    /// An object points here.
    destroy: unsafe extern "C" fn(*mut Compressor),
    delete: unsafe extern "C" fn(*mut Compressor),
    compress: unsafe extern "C" fn(*mut Compressor, NonNull<Object>, c_int),
}

static FUNCTIONS: Functions =
    Functions { to_top: 0, type_info: AtomicUsize::new(0), destroy, delete, compress };

/// An `Envoy::Compression::Compressor::Compressor`.
#[repr(C)]
struct Compressor {
    functions: *const unsafe extern "C" fn(*mut Compressor),
    settings: Settings,
    /// A copy, because a configuration may be replaced while its compressors are in use.
    factory: CompressorFactory,
    by: By,
}

/// What compresses a body.
enum By {
    /// That is decided with its first piece.
    Nobody,
    Engines(Box<Body>),
    /// Its pieces have become short.
    Steady(Steady),
    /// A compressor of Envoy's, made for this one.
    Original(NonNull<Object>),
}

/// The place of `compress` in the table of a compressor's functions, of ours as of Envoy's.
const COMPRESS: usize = 2;

impl Compressor {
    fn new(settings: Settings, factory: CompressorFactory) -> *mut Self {
        Box::into_raw(Box::new(Self {
            functions: &raw const FUNCTIONS.destroy,
            settings,
            factory,
            by: By::Nobody,
        }))
    }

    /// Replaces the contents of the buffer by their compressed form.
    ///
    /// # Safety
    ///
    /// `buffer` is a buffer that nobody else uses meanwhile, and `state` is a `State`.
    unsafe fn compress(&mut self, buffer: NonNull<Object>, state: c_int) {
        // SAFETY: the caller's promise.
        let mut buffer = unsafe { Buffer::new(buffer) };
        let is_last = state == FINISH;
        if matches!(self.by, By::Nobody) {
            self.by = self.decide(buffer.length(), is_last);
        }
        match &mut self.by {
            By::Engines(body) => {
                body.compress(&mut buffer, is_last);
                if let Some(steady) = body.successor(is_last) {
                    self.by = By::Steady(steady);
                }
            }
            By::Steady(steady) => steady.compress(&mut buffer, is_last),
            // SAFETY: it was made by `create_original`, for this compressor alone.
            By::Original(original) => unsafe {
                let compress: unsafe extern "C" fn(NonNull<Object>, NonNull<Object>, c_int) =
                    transmute(original.as_ref().function(COMPRESS));
                compress(*original, buffer.object(), state);
            },
            By::Nobody => {}
        }
    }

    /// What compresses a body whose first piece has this length, and is the last or not.
    fn decide(&mut self, length: usize, is_last: bool) -> By {
        if length >= least(&self.settings, is_last) {
            return By::Engines(Box::new(Body::new(self.settings)));
        }
        slot().bypass(Reason::SmallFlushes);
        let mut place = ptr::null_mut();
        // SAFETY: a copy of a factory, and a place for the result.
        unsafe { create_original(&raw mut place, NonNull::from(&mut self.factory)) };
        By::Original(NonNull::new(place).expect("C++ has no null from `new`"))
    }
}

impl Drop for By {
    fn drop(&mut self) {
        if let Self::Original(original) = self {
            // SAFETY: it was made by `create_original`, for one compressor, which ends with this.
            unsafe { Object::delete(*original) }
        }
    }
}

/// `State::Finish`; the other is `State::Flush`.
const FINISH: c_int = 1;

/// A body on its way.
struct Body {
    stream: Deflate,
    /// The stream's memory.
    #[allow(dead_code, reason = "the stream has pointers into it")]
    memory: Vec<u8>,
    /// How many of the last pieces were short.
    short: u8,
}

/// Behind a window, a piece shorter than this is compressed at lower cost by what has learned the window already.
const SHORT: usize = 4 << 10;
/// So many of them in a row are a habit.
const HABIT: u8 = 2;

impl Body {
    fn new(settings: Settings) -> Self {
        /// Pieces up to this size are compressed at once.
        const PIECE: usize = 96 << 10;
        let length = Deflate::least_memory(&settings) + PIECE;
        let mut memory = Vec::with_capacity(length);
        let start = NonNull::new(memory.as_mut_ptr()).map(|start| (start, length));
        // SAFETY: the memory lives as long as the stream, and nobody else uses it.
        let store = unsafe { Store::new(start) };
        let stream = Deflate::new(settings, Wrapper::Gzip, store, config::get().verify, &ENGINES);
        slot().event(Event::DeflateStreams);
        Self { stream, memory, short: 0 }
    }

    /// Replaces the contents of the buffer by their compressed form.
    fn compress(&mut self, buffer: &mut Buffer, is_last: bool) {
        let mut tally = Tally::default();
        let length = buffer.length();
        let (mut left, mut written) = (length, 0);
        loop {
            // The output follows the input in the same buffer, so the rest of the input is counted.
            let piece = left.min(LARGEST);
            left -= piece;
            let flush = if left > 0 || !is_last { Flush::Sync } else { Flush::Finish };
            written += self.piece(buffer, piece, flush, &mut tally);
            if left == 0 {
                break;
            }
        }
        self.short = if length < SHORT { self.short.saturating_add(1) } else { 0 };
        engines::count(&tally, length as u64, written);
    }

    /// What compresses the rest of the body, if that is better.
    fn successor(&self, is_over: bool) -> Option<Steady> {
        (self.short == HABIT && !is_over).then(|| Steady::take_over(&self.stream)).flatten()
    }

    /// Moves the first `length` bytes of the buffer, compressed, to its end; how many they are then.
    fn piece(&mut self, buffer: &mut Buffer, length: usize, flush: Flush, tally: &mut Tally) -> u64 {
        let mut output = Output::new(length);
        buffer.take(length, |input| self.deflate(input, flush, &mut output, tally));
        output.add_to(buffer)
    }

    fn deflate(&mut self, input: &[u8], flush: Flush, output: &mut Output, tally: &mut Tally) {
        let mut input = input;
        loop {
            let room = output.room();
            let before = room.len();
            let mut io = Io { input, output: room, header: None, complaint: None };
            let outcome = self.stream.deflate(&mut io, flush, tally);
            let (left, made, is_full) = (io.input.len(), before - io.output.len(), io.output.is_empty());
            input = &input[input.len() - left..];
            output.advance(made);
            let is_done = match flush {
                Flush::Finish => outcome == Outcome::StreamEnd,
                _ => input.is_empty() && !is_full,
            };
            // No other outcome is an error here, but a stream that stands still must not hold the worker.
            if is_done || (made == 0 && !is_full) {
                return;
            }
        }
    }
}

/// Compressed at a time: the largest piece for which the engines have buffers.
const LARGEST: usize = 1 << 20;

/// `~Compressor()`
///
/// # Safety
///
/// `this` is a compressor of ours that nobody uses any more.
unsafe extern "C" fn destroy(this: *mut Compressor) {
    // SAFETY: the caller's promise.
    unsafe { ptr::drop_in_place(this) }
}

/// The same, and frees the memory of the object.
///
/// # Safety
///
/// As [`destroy`].
unsafe extern "C" fn delete(this: *mut Compressor) {
    // SAFETY: it was made by `Compressor::new`.
    drop(unsafe { Box::from_raw(this) });
}

/// `void compress(Buffer::Instance& buffer, State state)`
///
/// # Safety
///
/// `this` is a compressor of ours, `buffer` is a buffer, and both are used by nobody else meanwhile.
unsafe extern "C" fn compress(this: *mut Compressor, buffer: NonNull<Object>, state: c_int) {
    // SAFETY: the caller's promise.
    unsafe { (*this).compress(buffer, state) }
}
