//! zlib's inflate functions.
//!
//! A stream that was opened here is served by `hasten_deflate::inflate`, which does everything as
//! zlib does; any other stream, and whatever makes no sense, goes to the original.

mod open;

use core::ffi::{c_int, c_long, c_uint, c_ulong};

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_deflate::inflate as ours;
use hasten_telemetry::{Event, slot};

pub(crate) use self::open::{init, init2};

type WithInt = unsafe extern "C" fn(*mut ZStream, c_int) -> c_int;

/// What a kibibyte of text costs zlib 1.2.13 above what it costs us, in nanoseconds of CPU time.
const SAVED_NS: u64 = 800;

pub(crate) unsafe fn inflate(original: WithInt, strm: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: the program's call; a stream of ours is a valid stream.
    unsafe {
        if !ours::is_ours(strm) {
            return foreign(original, strm, flush);
        }
        let before = ((*strm).total_in, (*strm).total_out);
        let result = ours::inflate(strm, flush);
        let read = (*strm).total_in.wrapping_sub(before.0);
        let written = (*strm).total_out.wrapping_sub(before.1);
        let slot = slot();
        slot.event_n(Event::InflateBytesIn, read);
        slot.event_n(Event::InflateBytesOut, written);
        slot.event_n(Event::InflateSavedNs, written * SAVED_NS / 1024);
        result
    }
}

/// Counts what the original does.
///
/// # Safety
///
/// The program's call.
unsafe fn foreign(original: WithInt, strm: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: the program's call. What is no stream is not looked at.
    unsafe {
        if strm.is_null() || (*strm).state.is_null() {
            return original(strm, flush);
        }
        let before = ((*strm).total_in, (*strm).total_out);
        let result = original(strm, flush);
        let written = (*strm).total_out.wrapping_sub(before.1);
        let slot = slot();
        slot.event_n(Event::InflateBytesIn, (*strm).total_in.wrapping_sub(before.0));
        slot.event_n(Event::InflateBytesOut, written);
        slot.event_n(Event::InflateOriginal, written);
        result
    }
}

/// Functions that do nothing but find out whose the stream is.
macro_rules! by_owner {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $ours:path;)*) => {
        $(pub(crate) unsafe fn $name(
            original: unsafe extern "C" fn(*mut ZStream $(, $ty)*) -> $ret,
            strm: *mut ZStream
            $(, $arg: $ty)*
        ) -> $ret {
            // SAFETY: the program's call.
            unsafe { if ours::is_ours(strm) { $ours(strm $(, $arg)*) } else { original(strm $(, $arg)*) } }
        })*
    };
}

by_owner! {
    end() -> c_int = ours::end;
    reset() -> c_int = again;
    reset2(window_bits: c_int) -> c_int = again_with;
    reset_keep() -> c_int = ours::reset_keep;
    set_dictionary(dictionary: *const u8, len: c_uint) -> c_int = ours::set_dictionary;
    get_dictionary(dictionary: *mut u8, len: *mut c_uint) -> c_int = ours::get_dictionary;
    get_header(head: *mut GzHeader) -> c_int = ours::get_header;
    sync() -> c_int = ours::sync;
    sync_point() -> c_int = ours::sync_point;
    prime(bits: c_int, value: c_int) -> c_int = ours::prime;
    mark() -> c_long = ours::mark;
    undermine(subvert: c_int) -> c_int = ours::undermine;
    validate(check: c_int) -> c_int = ours::validate;
    codes_used() -> c_ulong = ours::codes_used;
}

/// Begins another stream.
unsafe fn again(strm: *mut ZStream) -> c_int {
    slot().event(Event::InflateStreams);
    // SAFETY: the program's call.
    unsafe { ours::reset(strm) }
}

/// Begins another stream, with another wrapper and window.
unsafe fn again_with(strm: *mut ZStream, window_bits: c_int) -> c_int {
    slot().event(Event::InflateStreams);
    // SAFETY: the program's call.
    unsafe { ours::reset_to(strm, window_bits) }
}

pub(crate) unsafe fn copy(
    original: unsafe extern "C" fn(*mut ZStream, *mut ZStream) -> c_int,
    dest: *mut ZStream,
    source: *mut ZStream,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { if ours::is_ours(source) { ours::copy(dest, source) } else { original(dest, source) } }
}
