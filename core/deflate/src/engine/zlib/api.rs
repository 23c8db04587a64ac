//! A zlib as a table of functions, so that zlib-rs and the program's zlib are driven by the same code.

use core::ffi::{c_char, c_int, c_uint};
use std::mem::offset_of;
use std::sync::OnceLock;

use crate::abi::ZStream;

pub type Stream = *mut ZStream;
pub type DeflateInit2 = unsafe extern "C" fn(
    stream: Stream,
    level: c_int,
    method: c_int,
    window_bits: c_int,
    mem_level: c_int,
    strategy: c_int,
    version: *const c_char,
    size: c_int,
) -> c_int;
pub type Deflate = unsafe extern "C" fn(stream: Stream, flush: c_int) -> c_int;
pub type DeflateReset = unsafe extern "C" fn(stream: Stream) -> c_int;
pub type DeflateParams = unsafe extern "C" fn(stream: Stream, level: c_int, strategy: c_int) -> c_int;
pub type DeflateTune =
    unsafe extern "C" fn(stream: Stream, good: c_int, lazy: c_int, nice: c_int, chain: c_int) -> c_int;
pub type DeflatePrime = unsafe extern "C" fn(stream: Stream, bits: c_int, value: c_int) -> c_int;
pub type DeflatePending =
    unsafe extern "C" fn(stream: Stream, pending: *mut c_uint, bits: *mut c_int) -> c_int;
pub type DeflateSetDictionary =
    unsafe extern "C" fn(stream: Stream, dictionary: *const u8, length: c_uint) -> c_int;
pub type DeflateEnd = unsafe extern "C" fn(stream: Stream) -> c_int;

/// The functions of zlib that an engine calls.
#[derive(Clone, Copy, Debug)]
pub struct ZlibApi {
    pub init2: DeflateInit2,
    pub deflate: Deflate,
    pub reset: DeflateReset,
    pub params: DeflateParams,
    pub tune: DeflateTune,
    pub prime: DeflatePrime,
    pub pending: DeflatePending,
    pub set_dictionary: DeflateSetDictionary,
    pub end: DeflateEnd,
}

static ORIGINAL: OnceLock<ZlibApi> = OnceLock::new();

impl ZlibApi {
    /// zlib-rs, which is part of this library.
    pub const ZLIB_RS: Self = Self {
        init2: zlib_rs::init2,
        deflate: zlib_rs::deflate,
        reset: zlib_rs::reset,
        params: zlib_rs::params,
        tune: zlib_rs::tune,
        prime: zlib_rs::prime,
        pending: zlib_rs::pending,
        set_dictionary: zlib_rs::set_dictionary,
        end: zlib_rs::end,
    };

    /// Makes the program's zlib known to [`EngineKind::Original`](crate::engine::EngineKind::Original). Only the first
    /// call takes effect.
    ///
    /// # Safety
    /// The functions must be those of zlib 1.2.5.1 or newer, or behave like them, and stay loaded.
    pub unsafe fn set_original(self) {
        let _ = ORIGINAL.set(self);
    }

    /// What [`set_original`](Self::set_original) was given.
    pub fn original() -> Option<&'static Self> {
        ORIGINAL.get()
    }
}

/// zlib-rs declares its own stream type with the same layout; these functions take ours.
mod zlib_rs {
    use libz_rs_sys::z_stream;

    use super::*;

    const _: () = {
        assert!(size_of::<z_stream>() == size_of::<ZStream>());
        assert!(offset_of!(z_stream, next_out) == offset_of!(ZStream, next_out));
        assert!(offset_of!(z_stream, total_out) == offset_of!(ZStream, total_out));
        assert!(offset_of!(z_stream, state) == offset_of!(ZStream, state));
        assert!(offset_of!(z_stream, opaque) == offset_of!(ZStream, opaque));
        assert!(offset_of!(z_stream, adler) == offset_of!(ZStream, adler));
    };

    macro_rules! forward {
        ($($name:ident => $function:ident($($argument:ident: $Type:ty),*);)+) => {$(
            /// # Safety
            ///
            /// As for zlib's function of this name.
            pub(super) unsafe extern "C" fn $name(stream: Stream $(, $argument: $Type)*) -> c_int {
                // SAFETY: the caller keeps zlib's contract, and the two stream types have the same layout.
                unsafe { libz_rs_sys::$function(stream.cast::<z_stream>() $(, $argument)*) }
            }
        )+};
    }

    forward! {
        init2 => deflateInit2_(level: c_int, method: c_int, window_bits: c_int, mem_level: c_int, strategy: c_int,
            version: *const c_char, size: c_int);
        deflate => deflate(flush: c_int);
        reset => deflateReset();
        params => deflateParams(level: c_int, strategy: c_int);
        tune => deflateTune(good: c_int, lazy: c_int, nice: c_int, chain: c_int);
        prime => deflatePrime(bits: c_int, value: c_int);
        pending => deflatePending(pending: *mut c_uint, bits: *mut c_int);
        set_dictionary => deflateSetDictionary(dictionary: *const u8, length: c_uint);
        end => deflateEnd();
    }
}
