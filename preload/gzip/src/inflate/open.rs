//! Opening streams of our own.

use core::ffi::{c_char, c_int};

use hasten_deflate::abi::{Z_OK, ZStream};
use hasten_deflate::inflate as ours;
use hasten_telemetry::{Event, slot};

use crate::hooks::original;
use crate::{allocation, start};

type Init = unsafe extern "C" fn(*mut ZStream, *const c_char, c_int) -> c_int;
type Init2 = unsafe extern "C" fn(*mut ZStream, c_int, *const c_char, c_int) -> c_int;

/// zlib checks no more of the version.
const MAJOR: c_char = b'1' as c_char;

/// # Safety
///
/// As for `inflateInit_`, with the conditions of [`init2`].
pub(crate) unsafe fn init(_: Init, strm: *mut ZStream, version: *const c_char, size: c_int) -> c_int {
    // SAFETY: zlib defines it so.
    unsafe { init2(original::inflateInit2_.get(), strm, 15, version, size) }
}

/// # Safety
///
/// As for `inflateInit2_`: `strm` is null or valid for `size` bytes, its allocator is null or one as zlib.h defines it,
/// and `version` is null or a C string.
pub(crate) unsafe fn init2(
    original: Init2,
    strm: *mut ZStream,
    window_bits: c_int,
    version: *const c_char,
    size: c_int,
) -> c_int {
    // SAFETY: the program's call; a version that is there has at least one byte.
    unsafe {
        let is_plain = !strm.is_null()
            && !version.is_null()
            && *version == MAJOR
            && size == size_of::<ZStream>() as c_int;
        let state = if is_plain && start::is_sound() { allocation::inflate_state() } else { 0 };
        if state < ours::STATE_SIZE {
            return original(strm, window_bits, version, size);
        }
        let stream = &mut *strm;
        if stream.zalloc.is_none() {
            stream.zalloc = Some(allocation::default_alloc);
            stream.opaque = core::ptr::null_mut();
        }
        if stream.zfree.is_none() {
            stream.zfree = Some(allocation::default_free);
        }
        let result = ours::init(strm, window_bits, state);
        if result == Z_OK {
            hasten_telemetry::start();
            slot().event(Event::InflateStreams);
        }
        result
    }
}
