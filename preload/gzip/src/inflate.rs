//! zlib's inflate functions.
//!
//! A stream opened here is served by `hasten_deflate::inflate`, which does everything as zlib does; any other stream,
//! and invalid arguments, go to the original.

mod open;

use core::ffi::{c_int, c_long, c_uint, c_ulong};

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_deflate::inflate as ours;
use hasten_telemetry::{Event, slot};

pub(crate) use self::open::{init, init2};

type WithInt = unsafe extern "C" fn(*mut ZStream, c_int) -> c_int;

/// The CPU time in nanoseconds that a kibibyte of text costs zlib 1.2.13 more than it costs us.
const SAVED_NS: u64 = 800;

/// # Safety
///
/// As for `inflate` of zlib: `strm` is null or valid, nothing else uses it meanwhile, and its `state` is null or a
/// stream's. Its buffers are null or valid for the lengths in it, and do not overlap.
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
        slot.event_n(Event::InflateHasten, written);
        slot.event_n(Event::InflateSavedNs, written * SAVED_NS / 1024);
        result
    }
}

/// Calls the original, and counts its work.
///
/// # Safety
///
/// The program's call.
unsafe fn foreign(original: WithInt, strm: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: the program's call. An invalid stream is not looked at.
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

/// Functions that only determine whether the stream is ours.
macro_rules! by_owner {
    ($($(#[$contract:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $ours:path;)*) => {
        $(
        /// # Safety
        ///
        $(#[$contract])*
        pub(crate) unsafe fn $name(
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
    /// As for `inflateEnd`: `strm` is as [`inflate`] takes it, but for its buffers.
    end() -> c_int = ours::end;
    /// As for `inflateReset`: `strm` is as [`inflate`] takes it, but for its buffers.
    reset() -> c_int = again;
    /// As for `inflateReset2`: `strm` is as [`inflate`] takes it, but for its buffers.
    reset2(window_bits: c_int) -> c_int = again_with;
    /// As for `inflateResetKeep`: `strm` is as [`inflate`] takes it, but for its buffers.
    reset_keep() -> c_int = ours::reset_keep;
    /// As for `inflateSetDictionary`: `strm` is as [`inflate`] takes it, but for its buffers.
    /// `dictionary` is null or valid for reads of `len` bytes.
    set_dictionary(dictionary: *const u8, len: c_uint) -> c_int = ours::set_dictionary;
    /// As for `inflateGetDictionary`: `strm` is as [`inflate`] takes it, but for its buffers.
    /// `dictionary` is null or valid for writes of the dictionary's length, at most 32 KiB, and `len` is null or valid for
    /// a write.
    get_dictionary(dictionary: *mut u8, len: *mut c_uint) -> c_int = ours::get_dictionary;
    /// As for `inflateGetHeader`: `strm` is as [`inflate`] takes it, but for its buffers.
    /// `head` is null, or valid with the buffers that it names until the header is complete or the stream ends.
    get_header(head: *mut GzHeader) -> c_int = ours::get_header;
    /// As for `inflateSync`: `strm` is as [`inflate`] takes it.
    sync() -> c_int = ours::sync;
    /// As for `inflateSyncPoint`: `strm` is as [`inflate`] takes it, but for its buffers.
    sync_point() -> c_int = ours::sync_point;
    /// As for `inflatePrime`: `strm` is as [`inflate`] takes it, but for its buffers.
    prime(bits: c_int, value: c_int) -> c_int = ours::prime;
    /// As for `inflateMark`: `strm` is as [`inflate`] takes it, but for its buffers.
    mark() -> c_long = ours::mark;
    /// As for `inflateUndermine`: `strm` is as [`inflate`] takes it, but for its buffers.
    undermine(subvert: c_int) -> c_int = ours::undermine;
    /// As for `inflateValidate`: `strm` is as [`inflate`] takes it, but for its buffers.
    validate(check: c_int) -> c_int = ours::validate;
    /// As for `inflateCodesUsed`: `strm` is as [`inflate`] takes it, but for its buffers.
    codes_used() -> c_ulong = ours::codes_used;
}

/// Starts another stream.
///
/// # Safety
///
/// As for `inflateReset`: `strm` is a stream that was opened here, and nothing else uses it meanwhile.
unsafe fn again(strm: *mut ZStream) -> c_int {
    slot().event(Event::InflateStreams);
    // SAFETY: the program's call.
    unsafe { ours::reset(strm) }
}

/// Starts another stream, with another wrapper and window.
///
/// # Safety
///
/// As for `inflateReset2`, with the conditions of [`again`].
unsafe fn again_with(strm: *mut ZStream, window_bits: c_int) -> c_int {
    slot().event(Event::InflateStreams);
    // SAFETY: the program's call.
    unsafe { ours::reset_to(strm, window_bits) }
}

/// # Safety
///
/// As for `inflateCopy`: `source` is as [`inflate`] takes a stream, and `dest` is null or valid, and a different stream
/// from `source`.
pub(crate) unsafe fn copy(
    original: unsafe extern "C" fn(*mut ZStream, *mut ZStream) -> c_int,
    dest: *mut ZStream,
    source: *mut ZStream,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { if ours::is_ours(source) { ours::copy(dest, source) } else { original(dest, source) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::original;
    use core::ffi::{CStr, c_char};
    use core::ptr::null_mut;
    use hasten_deflate::abi::{Z_FINISH, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, Z_VERSION_ERROR};

    const SIZE: c_int = size_of::<ZStream>() as c_int;
    /// `compress` of "hasten hasten hasten".
    const PACKED: [u8; 17] = [
        0x78, 0x9c, 0xcb, 0x48, 0x2c, 0x2e, 0x49, 0xcd, 0x53, 0xc8, 0x40, 0xa6, 0x00, 0x51, 0x92, 0x07, 0xca,
    ];
    const PLAIN: &[u8] = b"hasten hasten hasten";

    fn open(strm: *mut ZStream, version: *const c_char, size: c_int) -> c_int {
        // SAFETY: arguments that `inflateInit_` accepts or refuses.
        unsafe { init(original::inflateInit_.get(), strm, version, size) }
    }

    fn unpack(strm: &mut ZStream) -> Vec<u8> {
        let mut out = vec![0; 100];
        (strm.next_in, strm.avail_in) = (PACKED.as_ptr(), PACKED.len() as c_uint);
        (strm.next_out, strm.avail_out) = (out.as_mut_ptr(), out.len() as c_uint);
        // SAFETY: an open stream with buffers.
        let result = unsafe { inflate(original::inflate.get(), strm, Z_FINISH) };
        assert_eq!(result, Z_STREAM_END);
        out.truncate(strm.total_out as usize);
        out
    }

    #[test]
    fn our_streams_have_an_allocator_as_zlibs_have() {
        let mut strm = ZStream::new();
        assert_eq!(open(&mut strm, c"1.2.13".as_ptr(), SIZE), Z_OK);
        assert!(strm.zalloc.is_some() && strm.zfree.is_some());
        // SAFETY: open streams.
        unsafe {
            assert!(ours::is_ours(&strm));
            assert_eq!(unpack(&mut strm), PLAIN);
            assert_eq!(end(original::inflateEnd.get(), &mut strm), Z_OK);
            assert!(strm.state.is_null());
            assert_eq!(end(original::inflateEnd.get(), &mut strm), Z_STREAM_ERROR);
        }
    }

    #[test]
    fn streams_of_the_original_stay_its_own() {
        let mut strm = ZStream::new();
        // SAFETY: zlib's documented calls.
        unsafe {
            // From `inflateInit_`, libz calls its own `inflateInit2_`, through a slot that leads to us.
            assert_eq!(original::inflateInit2_.get()(&mut strm, 15, c"1.2.13".as_ptr(), SIZE), Z_OK);
            assert!(!ours::is_ours(&strm));
            assert_eq!(unpack(&mut strm), PLAIN);
            let mut copied = ZStream::new();
            assert_eq!(copy(original::inflateCopy.get(), &mut copied, &mut strm), Z_OK);
            assert!(!ours::is_ours(&copied));
            assert_eq!(reset2(original::inflateReset2.get(), &mut strm, 15), Z_OK);
            assert_eq!(unpack(&mut strm), PLAIN);
            for strm in [&mut copied, &mut strm] {
                assert_eq!(end(original::inflateEnd.get(), strm), Z_OK);
            }
        }
    }

    #[test]
    fn what_is_no_stream_is_refused_as_zlib_refuses_it() {
        let mut strm = ZStream::new();
        let version: &CStr = c"1.2.13";
        assert_eq!(open(&mut strm, core::ptr::null(), SIZE), Z_VERSION_ERROR);
        assert_eq!(open(&mut strm, c"2.0".as_ptr(), SIZE), Z_VERSION_ERROR);
        assert_eq!(open(&mut strm, version.as_ptr(), SIZE - 8), Z_VERSION_ERROR);
        assert_eq!(open(null_mut(), version.as_ptr(), SIZE), Z_STREAM_ERROR);
        // SAFETY: null and a stream without a state, which zlib refuses.
        unsafe {
            for strm in [null_mut(), &raw mut strm] {
                assert_eq!(inflate(original::inflate.get(), strm, 0), Z_STREAM_ERROR);
                assert_eq!(reset(original::inflateReset.get(), strm), Z_STREAM_ERROR);
                assert_eq!(mark(original::inflateMark.get(), strm), -65536);
                assert_eq!(codes_used(original::inflateCodesUsed.get(), strm), c_ulong::MAX);
            }
        }
    }
}
