//! The functions of any library with zlib's interface: the only unsafe code of the benches.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::mem::offset_of;

use hasten_deflate::abi::{Z_DEFLATED, Z_FINISH, Z_NO_FLUSH, Z_OK, Z_STREAM_END, ZStream};
use libz_ng_sys as ng;

/// gzip, not zlib's own wrapper, with the largest window.
const GZIP_WINDOW: c_int = 15 + 16;
const DEFAULT_MEMORY: c_int = 8;
const DEFAULT_STRATEGY: c_int = 0;

/// What the headers of zlib 1.2.13 pass on behalf of the program built with them.
const VERSION: &CStr = c"1.2.13";
const STREAM_SIZE: c_int = size_of::<ZStream>() as c_int;

type DeflateInit =
    unsafe extern "C" fn(*mut ZStream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int;
type InflateInit = unsafe extern "C" fn(*mut ZStream, c_int, *const c_char, c_int) -> c_int;
type Run = unsafe extern "C" fn(*mut ZStream, c_int) -> c_int;
type End = unsafe extern "C" fn(*mut ZStream) -> c_int;

/// The system's zlib. Linked, because functions obtained from `dlsym` are never accelerated.
mod linked {
    use super::{ZStream, c_char, c_int};

    #[link(name = "libz.so.1", kind = "dylib", modifiers = "+verbatim")]
    unsafe extern "C" {
        pub(super) fn deflateInit2_(
            stream: *mut ZStream,
            level: c_int,
            method: c_int,
            window: c_int,
            memory: c_int,
            strategy: c_int,
            version: *const c_char,
            size: c_int,
        ) -> c_int;
        pub(super) fn deflate(stream: *mut ZStream, flush: c_int) -> c_int;
        pub(super) fn deflateEnd(stream: *mut ZStream) -> c_int;
        pub(super) fn inflateInit2_(
            stream: *mut ZStream,
            window: c_int,
            version: *const c_char,
            size: c_int,
        ) -> c_int;
        pub(super) fn inflate(stream: *mut ZStream, flush: c_int) -> c_int;
        pub(super) fn inflateEnd(stream: *mut ZStream) -> c_int;
    }
}

/// A library with zlib's interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zlib {
    deflate_init: DeflateInit,
    deflate: Run,
    deflate_end: End,
    inflate_init: InflateInit,
    inflate: Run,
    inflate_end: End,
}

/// zlib's error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} returned {code}")]
pub(super) struct ZlibError {
    call: &'static str,
    code: c_int,
}

impl Zlib {
    /// What a program linked with libz calls, as this one is: the accelerated functions, if the library is preloaded.
    pub(super) fn of_this_process() -> Self {
        Self {
            deflate_init: linked::deflateInit2_,
            deflate: linked::deflate,
            deflate_end: linked::deflateEnd,
            inflate_init: linked::inflateInit2_,
            inflate: linked::inflate,
            inflate_end: linked::inflateEnd,
        }
    }

    /// The zlib-ng that is part of this program.
    pub(super) fn ng() -> Self {
        Self {
            deflate_init: ng_deflate_init,
            deflate: ng_deflate,
            deflate_end: ng_deflate_end,
            inflate_init: ng_inflate_init,
            inflate: ng_inflate,
            inflate_end: ng_inflate_end,
        }
    }

    /// A gzip stream of `input`, passed in pieces of at most `piece` bytes; returns its length.
    pub(super) fn compress(
        &self,
        level: u8,
        input: &[u8],
        piece: usize,
        output: &mut [u8],
    ) -> Result<usize, ZlibError> {
        let mut stream = ZStream::new();
        let (level, method) = (c_int::from(level), Z_DEFLATED);
        // SAFETY: the stream is in the state that zlib.h requires before this call, and lives until `deflate_end`.
        let code = unsafe {
            (self.deflate_init)(
                &mut stream,
                level,
                method,
                GZIP_WINDOW,
                DEFAULT_MEMORY,
                DEFAULT_STRATEGY,
                VERSION.as_ptr(),
                STREAM_SIZE,
            )
        };
        expect("deflateInit2_", code, Z_OK)?;
        // SAFETY: this library has just initialised the stream.
        let result = unsafe { run(self.deflate, &mut stream, input, piece, output) };
        // SAFETY: the stream is initialised, and not used any more.
        unsafe { (self.deflate_end)(&mut stream) };
        expect("deflate", result?, Z_STREAM_END)?;
        Ok(stream.total_out as usize)
    }

    /// The content of a gzip stream, in one call; returns its length.
    pub(super) fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<usize, ZlibError> {
        let mut stream = ZStream::new();
        // SAFETY: as in `compress`.
        let code = unsafe { (self.inflate_init)(&mut stream, GZIP_WINDOW, VERSION.as_ptr(), STREAM_SIZE) };
        expect("inflateInit2_", code, Z_OK)?;
        // SAFETY: this library has just initialised the stream.
        let result = unsafe { run(self.inflate, &mut stream, input, input.len(), output) };
        // SAFETY: the stream is initialised, and not used any more.
        unsafe { (self.inflate_end)(&mut stream) };
        expect("inflate", result?, Z_STREAM_END)?;
        Ok(stream.total_out as usize)
    }
}

/// Calls `function` until the stream ends; returns its last code.
///
/// # Safety
///
/// `function` must be `deflate` or `inflate` of the library that initialised `stream` for it.
unsafe fn run(
    function: Run,
    stream: &mut ZStream,
    input: &[u8],
    piece: usize,
    output: &mut [u8],
) -> Result<c_int, ZlibError> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("files are at most 1 MiB");
    stream.next_out = output.as_mut_ptr();
    stream.avail_out = length(output);
    let mut pieces = input.chunks(piece.max(1)).peekable();
    while let Some(piece) = pieces.next() {
        stream.next_in = piece.as_ptr();
        stream.avail_in = length(piece);
        let flush = if pieces.peek().is_some() { Z_NO_FLUSH } else { Z_FINISH };
        // SAFETY: the caller vouches for function and stream; both buffers are as long as the stream says, and are
        // borrowed until the stream ends.
        let code = unsafe { function(stream, flush) };
        if flush == Z_FINISH {
            return Ok(code);
        }
        expect("deflate", code, Z_OK)?;
    }
    Ok(Z_OK)
}

fn expect(call: &'static str, code: c_int, wanted: c_int) -> Result<(), ZlibError> {
    if code == wanted { Ok(()) } else { Err(ZlibError { call, code }) }
}

// zlib-ng's own stream begins with the same fields and is no larger, so one initialised for zlib serves it.
const _: () = {
    assert!(size_of::<ng::z_stream>() <= size_of::<ZStream>());
    assert!(offset_of!(ng::z_stream, avail_in) == offset_of!(ZStream, avail_in));
    assert!(offset_of!(ng::z_stream, next_out) == offset_of!(ZStream, next_out));
    assert!(offset_of!(ng::z_stream, avail_out) == offset_of!(ZStream, avail_out));
    assert!(offset_of!(ng::z_stream, total_out) == offset_of!(ZStream, total_out));
    assert!(offset_of!(ng::z_stream, state) == offset_of!(ZStream, state));
    assert!(offset_of!(ng::z_stream, zalloc) == offset_of!(ZStream, zalloc));
    assert!(offset_of!(ng::z_stream, opaque) == offset_of!(ZStream, opaque));
};

/// # Safety
///
/// As for `deflateInit2_`: `stream` is valid, and its allocator is null or one as zlib.h defines it.
unsafe extern "C" fn ng_deflate_init(
    stream: *mut ZStream,
    level: c_int,
    method: c_int,
    window: c_int,
    memory: c_int,
    strategy: c_int,
    _version: *const c_char,
    _size: c_int,
) -> c_int {
    // SAFETY: the caller's contract; the streams agree, see above.
    unsafe { ng::zng_deflateInit2(stream.cast(), level, method, window, memory, strategy) }
}

/// # Safety
///
/// As for `deflate`: [`ng_deflate_init`] has initialised `stream`, whose buffers are valid for the lengths in it.
unsafe extern "C" fn ng_deflate(stream: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { ng::deflate(stream.cast(), flush) }
}

/// # Safety
///
/// As for `deflateEnd`: [`ng_deflate_init`] has initialised `stream`, which is not used any more.
unsafe extern "C" fn ng_deflate_end(stream: *mut ZStream) -> c_int {
    // SAFETY: as above.
    unsafe { ng::deflateEnd(stream.cast()) }
}

/// # Safety
///
/// As for `inflateInit2_`: `stream` is valid, and its allocator is null or one as zlib.h defines it.
unsafe extern "C" fn ng_inflate_init(
    stream: *mut ZStream,
    window: c_int,
    _version: *const c_char,
    _size: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { ng::zng_inflateInit2(stream.cast(), window) }
}

/// # Safety
///
/// As for `inflate`: [`ng_inflate_init`] has initialised `stream`, whose buffers are valid for the lengths in it.
unsafe extern "C" fn ng_inflate(stream: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { ng::inflate(stream.cast(), flush) }
}

/// # Safety
///
/// As for `inflateEnd`: [`ng_inflate_init`] has initialised `stream`, which is not used any more.
unsafe extern "C" fn ng_inflate_end(stream: *mut ZStream) -> c_int {
    // SAFETY: as above.
    unsafe { ng::inflateEnd(stream.cast()) }
}
