//! The beginning and the end of a stream, and the resets in between.

use core::ffi::c_int;
use core::ptr::{addr_of, addr_of_mut, null, null_mut};

use super::window::Window;
use super::{CHECKED, MARK, Mode, State, Tables, Used, allocate, free, parts};
use crate::abi::{Z_MEM_ERROR, Z_OK, Z_STREAM_ERROR, ZStream};

/// The smallest size of a stream's state.
pub const STATE_SIZE: usize = size_of::<State>();

/// Initializes a stream whose allocator is set. The allocator is asked for `size` bytes, at least [`STATE_SIZE`]: as
/// many as zlib would have asked for.
///
/// # Safety
///
/// `strm` must point to a stream without state, whose functions are an allocator of the kind zlib uses.
pub unsafe fn init(strm: *mut ZStream, window_bits: c_int, size: usize) -> c_int {
    assert!(size >= STATE_SIZE, "too little memory for a stream");
    // SAFETY: guaranteed by the caller; the borrow ends before the state points back to the stream.
    let stream = unsafe { &mut *strm };
    stream.msg = null();
    let state = allocate(stream, 1, size).cast::<State>();
    if state.is_null() {
        return Z_MEM_ERROR;
    }
    // SAFETY: fresh memory of at least that size. Zeros are valid for all fields but `used`: the first mode, numbers,
    // flags, and pointers that may be null.
    unsafe {
        state.write_bytes(0, 1);
        addr_of_mut!((*state).used).write(Used::Entries(0));
        addr_of_mut!((*state).mark).write(addr_of!(MARK));
        addr_of_mut!((*state).strm).write(strm);
        addr_of_mut!((*state).allocated).write(size);
    }
    stream.state = state.cast();
    // SAFETY: the stream has a state of ours now.
    let result = unsafe { reset_to(strm, window_bits) };
    if result != Z_OK {
        // SAFETY: as above.
        unsafe { end(strm) };
    }
    result
}

/// `inflateReset2`: as new, with another wrapper and window.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn reset_to(strm: *mut ZStream, window_bits: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    let (wrap, bits) = if window_bits < 0 {
        if window_bits < -15 {
            return Z_STREAM_ERROR;
        }
        (0, -window_bits)
    } else {
        ((window_bits >> 4) + 5, if window_bits < 48 { window_bits & 15 } else { window_bits })
    };
    if bits != 0 && !(8..=15).contains(&bits) {
        return Z_STREAM_ERROR;
    }
    if !state.window.base.is_null() && state.window_bits != bits as u32 {
        free(strm, state.window.base.cast());
        state.window.base = null_mut();
    }
    state.wrap = wrap as u32;
    state.window_bits = bits as u32;
    restart(strm, state);
    Z_OK
}

/// `inflateReset`: as new.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn reset(strm: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    restart(strm, state);
    Z_OK
}

/// `inflateResetKeep`: as new, except for the window.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn reset_keep(strm: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    restart_keep(strm, state);
    Z_OK
}

pub(super) fn restart(strm: &mut ZStream, state: &mut State) {
    state.window.clear();
    restart_keep(strm, state);
}

fn restart_keep(strm: &mut ZStream, state: &mut State) {
    (strm.total_in, strm.total_out, state.total) = (0, 0, 0);
    strm.msg = null();
    if state.wrap != 0 {
        strm.adler = (state.wrap & 1).into();
    }
    state.mode = Mode::Head;
    state.last = false;
    state.have_dictionary = false;
    state.flags = -1;
    state.head = null_mut();
    (state.hold, state.bits) = (0, 0);
    state.used = Used::Entries(0);
    state.tables = Tables::FIXED;
    state.back = -1;
}

/// `inflateEnd`: releases all memory.
///
/// # Safety
///
/// As [`super::inflate`].
pub unsafe fn end(strm: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if !state.window.base.is_null() {
        free(strm, state.window.base.cast());
    }
    state.mark = null();
    free(strm, strm.state);
    strm.state = null_mut();
    Z_OK
}

/// `inflateCopy`: a second stream that continues from the same point.
///
/// # Safety
///
/// As [`super::inflate`] for the source; `dest` must be null or valid for a write.
pub unsafe fn copy(dest: *mut ZStream, source: *mut ZStream) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((source, state)) = (unsafe { parts(source) }) else { return Z_STREAM_ERROR };
    if dest.is_null() {
        return Z_STREAM_ERROR;
    }
    let copy = allocate(source, 1, state.allocated).cast::<State>();
    if copy.is_null() {
        return Z_MEM_ERROR;
    }
    let mut window = Window { base: null_mut(), ..state.window };
    if !state.window.base.is_null() {
        let size = 1 << state.window_bits;
        window.base = allocate(source, size, 1).cast();
        if window.base.is_null() {
            free(source, copy.cast());
            return Z_MEM_ERROR;
        }
        // SAFETY: both are of this size; bytes not written yet are copied, but never looked at.
        unsafe { core::ptr::copy_nonoverlapping(state.window.base, window.base, size) };
    }
    // SAFETY: `copy` is fresh memory of the state's size, and `dest` may be written; both then hold
    // what the originals hold, and the fields that differ are set.
    unsafe {
        core::ptr::copy_nonoverlapping(state, copy, 1);
        addr_of_mut!((*copy).strm).write(dest);
        addr_of_mut!((*copy).window).write(window);
        core::ptr::copy_nonoverlapping(source, dest, 1);
        addr_of_mut!((*dest).state).write(copy.cast());
    }
    Z_OK
}

/// `inflateValidate`: whether checksums are computed and compared.
pub(super) fn set_checked(state: &mut State, check: bool) {
    if check && state.wrap != 0 {
        state.wrap |= CHECKED;
    } else {
        state.wrap &= !CHECKED;
    }
}
