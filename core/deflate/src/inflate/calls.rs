//! The calls around `inflate`: dictionaries, headers, marks, and resuming after damage.

use core::ffi::{c_int, c_long, c_uint, c_ulong};
use core::ptr::copy_nonoverlapping;

use super::lifetime::{restart, set_checked};
use super::table::{Alphabet, zlib_used};
use super::{CHECKED, GZIP, Mode, State, Used, keep, parts};
use crate::abi::{GzHeader, Z_BUF_ERROR, Z_DATA_ERROR, Z_MEM_ERROR, Z_OK, Z_STREAM_ERROR, ZStream};
use crate::checksum::adler32;

/// `inflatePrime`: puts bits before the input.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn prime(strm: *mut ZStream, bits: c_int, value: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if bits < 0 {
        (state.hold, state.bits) = (0, 0);
        return Z_OK;
    }
    let bits = bits as u32;
    if bits > 16 || state.bits + bits > 32 {
        return Z_STREAM_ERROR;
    }
    let value = value as u32 & ((1 << bits) - 1);
    state.hold += u64::from(value) << state.bits;
    state.bits += bits;
    Z_OK
}

/// `inflateSetDictionary`.
///
/// # Safety
///
/// As [`super::inflate`]; `dictionary` must be null or valid for reads of `len` bytes.
pub unsafe fn set_dictionary(strm: *mut ZStream, dictionary: *const u8, len: c_uint) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if state.wrap != 0 && state.mode != Mode::Dict {
        return Z_STREAM_ERROR;
    }
    let dictionary = if dictionary.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { core::slice::from_raw_parts(dictionary, len as usize) }
    };
    if state.mode == Mode::Dict && adler32(1, dictionary) != state.check {
        return Z_DATA_ERROR;
    }
    if !keep(strm, state, dictionary) {
        state.mode = Mode::Mem;
        return Z_MEM_ERROR;
    }
    state.have_dictionary = true;
    Z_OK
}

/// `inflateGetDictionary`: what matches may refer to now.
///
/// # Safety
///
/// As [`super::inflate`]; `dictionary` must be null or have room for 32 KiB, `len` null or valid.
pub unsafe fn get_dictionary(strm: *mut ZStream, dictionary: *mut u8, len: *mut c_uint) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !dictionary.is_null() {
            let (older, newer) = state.window.contents();
            copy_nonoverlapping(older.as_ptr(), dictionary, older.len());
            copy_nonoverlapping(newer.as_ptr(), dictionary.add(older.len()), newer.len());
        }
        if let Some(len) = len.as_mut() {
            *len = state.window.have as c_uint;
        }
    }
    Z_OK
}

/// `inflateGetHeader`: where the program wants the gzip header described.
///
/// # Safety
///
/// As [`super::inflate`]; `head` must be null or stay valid, with its buffers, until the header is
/// complete.
pub unsafe fn get_header(strm: *mut ZStream, head: *mut GzHeader) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if state.wrap & GZIP == 0 {
        return Z_STREAM_ERROR;
    }
    state.head = head;
    // SAFETY: guaranteed by the caller.
    if let Some(head) = unsafe { head.as_mut() } {
        head.done = 0;
    }
    Z_OK
}

/// `inflateSync`: looks for a flush marker to resume after.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn sync(strm: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if strm.avail_in == 0 && state.bits < 8 {
        return Z_BUF_ERROR;
    }
    if state.mode != Mode::Sync {
        state.mode = Mode::Sync;
        search_held(state);
    }
    if strm.avail_in != 0 {
        // SAFETY: guaranteed by the caller.
        let input = unsafe { core::slice::from_raw_parts(strm.next_in, strm.avail_in as usize) };
        let passed = search(&mut state.have, input);
        strm.next_in = input[passed..].as_ptr();
        strm.avail_in -= passed as c_uint;
        strm.total_in += passed as c_ulong;
    }
    if state.have != 4 {
        return Z_DATA_ERROR;
    }
    if state.flags == -1 {
        state.wrap = 0;
    } else {
        state.wrap &= !CHECKED;
    }
    let (flags, total_in, total_out) = (state.flags, strm.total_in, strm.total_out);
    restart(strm, state);
    (state.flags, strm.total_in, strm.total_out) = (flags, total_in, total_out);
    state.mode = Mode::Type;
    Z_OK
}

/// Begins the search in the bytes that have been taken but not used.
fn search_held(state: &mut State) {
    // zlib 1.2.13 shifts the wrong way; doing the same yields the same from a damaged stream.
    state.hold <<= state.bits & 7;
    state.bits -= state.bits & 7;
    let held = state.hold.to_le_bytes();
    let count = (state.bits / 8) as usize;
    state.hold = state.hold.checked_shr(state.bits).unwrap_or(0);
    state.bits = 0;
    state.have = 0;
    search(&mut state.have, &held[..count]);
}

/// Looks for 00 00 FF FF, of which `have` bytes have been found; returns how many bytes it has passed.
fn search(have: &mut usize, bytes: &[u8]) -> usize {
    let mut passed = 0;
    for byte in bytes {
        if *have == 4 {
            break;
        }
        let wanted = if *have < 2 { 0 } else { 0xff };
        *have = match *byte {
            byte if byte == wanted => *have + 1,
            0 => 4 - *have,
            _ => 0,
        };
        passed += 1;
    }
    passed
}

/// `inflateSyncPoint`: whether the stream is just before the length of a stored block.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn sync_point(strm: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    c_int::from(state.mode == Mode::Stored && state.bits == 0)
}

/// `inflateUndermine`: zlib is not built to allow distances that reach too far back.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn undermine(strm: *mut ZStream, _subvert: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    if unsafe { parts(strm) }.is_none() { Z_STREAM_ERROR } else { Z_DATA_ERROR }
}

/// `inflateValidate`: whether checksums are computed and compared.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn validate(strm: *mut ZStream, check: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    set_checked(state, check != 0);
    Z_OK
}

/// `inflateMark`: the bits of the last symbol in the upper half, and what is left of it in the lower.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn mark(strm: *mut ZStream) -> c_long {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return -(1 << 16) };
    let rest = match state.mode {
        Mode::Copy => state.length,
        Mode::Match => state.was - state.length,
        _ => 0,
    };
    (c_long::from(state.back) << 16) + rest as c_long
}

/// `inflateCodesUsed`: how large zlib's tables for this block are.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn codes_used(strm: *mut ZStream) -> c_ulong {
    // SAFETY: guaranteed by the caller.
    let Some((_, state)) = (unsafe { parts(strm) }) else { return c_ulong::MAX };
    let used = match state.used {
        Used::Entries(count) => count,
        Used::Codes { litlen, dist } => {
            let (litlen_lens, rest) = state.lens.split_at(litlen);
            let of_dist = if dist == 0 { 0 } else { zlib_used(Alphabet::Dist, &rest[..dist]) };
            zlib_used(Alphabet::LitLen, litlen_lens) + of_dist
        }
    };
    used as c_ulong
}
