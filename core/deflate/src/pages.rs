//! Memory for engines, straight from the kernel.
//!
//! Sets of tables come and go with the load. malloc keeps what is freed for whoever asks next, each of its arenas for
//! itself, and where a process locks its memory in RAM, all of that stays there. What is given back here is gone.

use core::ffi::{c_uint, c_void};
use core::ptr::{NonNull, null_mut};

/// In front of each piece, as long as a line of the cache: how long the mapping is.
const HEAD: usize = 64;

/// That many bytes, all zero, aligned to 64; `None` where the kernel gives no more.
pub(crate) fn take(length: usize) -> Option<NonNull<u8>> {
    let length = length.checked_add(HEAD)?;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: fresh memory at an address that the kernel chooses.
    let start = unsafe { libc::mmap(null_mut(), length, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping begins with a page of ours, so it has room for the head, and alignment for its number.
    unsafe {
        start.cast::<usize>().write(length);
        NonNull::new(start.cast::<u8>().add(HEAD))
    }
}

/// Gives a piece back.
///
/// # Safety
///
/// It came from [`take`], and nobody uses it any more.
pub(crate) unsafe fn give_back(piece: NonNull<u8>) {
    // SAFETY: the head is in front of the piece, and the mapping is as long as it says.
    unsafe {
        let start = piece.as_ptr().sub(HEAD);
        libc::munmap(start.cast(), start.cast::<usize>().read());
    }
}

/// What `malloc` is to C.
pub(crate) unsafe extern "C" fn malloc(length: usize) -> *mut c_void {
    take(length).map_or(null_mut(), |piece| piece.as_ptr().cast())
}

/// What `free` is.
pub(crate) unsafe extern "C" fn free(piece: *mut c_void) {
    if let Some(piece) = NonNull::new(piece.cast()) {
        // SAFETY: whoever was given these functions frees with this one what he got from the other.
        unsafe { give_back(piece) };
    }
}

/// The same as zlib's streams want it.
pub(crate) unsafe extern "C" fn zalloc(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: no precondition.
    unsafe { malloc(items as usize * size as usize) }
}

/// See [`zalloc`].
pub(crate) unsafe extern "C" fn zfree(_: *mut c_void, piece: *mut c_void) {
    // SAFETY: a stream gives back what it has got.
    unsafe { free(piece) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_zero_and_aligned() {
        for length in [1, 64, 4032, 4033, 1 << 20] {
            let piece = take(length).expect("memory");
            assert!(piece.as_ptr().addr().is_multiple_of(64));
            // SAFETY: as many bytes were asked for, and nobody else has them.
            unsafe {
                let bytes = core::slice::from_raw_parts_mut(piece.as_ptr(), length);
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes.fill(1);
                give_back(piece);
            }
        }
        assert!(take(usize::MAX - 10).is_none() && take(1 << 60).is_none());
    }
}
