//! Memory for engines, straight from the kernel.
//!
//! Sets of tables come and go with the load. malloc keeps freed memory for later requests, in each of its arenas
//! separately, and where a process locks its memory in RAM, all of that stays there. Memory given back here is gone.

use core::ffi::{c_uint, c_void};
use core::ops::{Deref, DerefMut};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Whether the program has denied itself system calls that it does not know of.
static IS_SEALED: AtomicBool = AtomicBool::new(false);

/// Stops all system calls from here: nothing more is taken from the kernel or given back to it.
pub(crate) fn seal() {
    IS_SEALED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_sealed() -> bool {
    IS_SEALED.load(Ordering::Relaxed)
}

/// The header in front of each piece, as long as a cache line: it holds the length of the mapping.
const HEAD: usize = 64;

/// `length` bytes, all zero, aligned to 64; `None` if the kernel gives no more.
pub(crate) fn take(length: usize) -> Option<NonNull<u8>> {
    if is_sealed() {
        return None;
    }
    let length = length.checked_add(HEAD)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: fresh memory at an address that the kernel chooses.
    let start = unsafe { mmap_anonymous(null_mut(), length, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the mapping begins with a page of ours, which has room for the header and is aligned for its number.
    unsafe {
        start.cast::<usize>().write(length);
        NonNull::new(start.cast::<u8>().add(HEAD))
    }
}

/// Unmaps a piece.
///
/// # Safety
///
/// It came from [`take`], and nobody uses it any more.
pub(crate) unsafe fn give_back(piece: NonNull<u8>) {
    if is_sealed() {
        return;
    }
    // SAFETY: the header precedes the piece, and the mapping is as long as it says.
    unsafe {
        let start = piece.as_ptr().sub(HEAD);
        let _ = munmap(start.cast(), start.cast::<usize>().read());
    }
}

/// C's `malloc`.
pub(crate) extern "C" fn malloc(length: usize) -> *mut c_void {
    take(length).map_or(null_mut(), |piece| piece.as_ptr().cast())
}

/// C's `free`.
///
/// # Safety
///
/// The piece is null, or it came from [`malloc`] and nobody uses it any more.
pub(crate) unsafe extern "C" fn free(piece: *mut c_void) {
    if let Some(piece) = NonNull::new(piece.cast()) {
        // SAFETY: `malloc` took it, and the caller has given it up.
        unsafe { give_back(piece) };
    }
}

/// The same with the signature that zlib's streams want.
pub(crate) extern "C" fn zalloc(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    malloc(items as usize * size as usize)
}

/// See [`zalloc`].
///
/// # Safety
///
/// As for [`free`].
pub(crate) unsafe extern "C" fn zfree(_: *mut c_void, piece: *mut c_void) {
    // SAFETY: the caller keeps the contract of `free`.
    unsafe { free(piece) }
}

/// A value in its own memory, like a box. `deflate` may be called where `malloc` must not be: zlib's own does not
/// allocate.
#[derive(Debug)]
pub(crate) struct Page<T>(NonNull<T>);

// SAFETY: it owns its value.
unsafe impl<T: Send> Send for Page<T> {}

impl<T> Page<T> {
    /// `None` if memory runs out.
    pub(crate) fn new(value: T) -> Option<Self> {
        const { assert!(align_of::<T>() <= HEAD) }
        let place = take(size_of::<T>())?.cast::<T>();
        // SAFETY: fresh memory of that size, aligned to a cache line.
        unsafe { place.write(value) };
        Some(Self(place))
    }

    pub(crate) fn into_raw(self) -> *mut T {
        let place = self.0.as_ptr();
        core::mem::forget(self);
        place
    }

    /// # Safety
    ///
    /// The address came from [`Page::into_raw`], and is used by nobody else.
    pub(crate) unsafe fn from_raw(place: NonNull<T>) -> Self {
        Self(place)
    }
}

impl<T> Deref for Page<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written by `new`, and dropped with `self`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Page<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Page<T> {
    fn drop(&mut self) {
        // SAFETY: nobody uses the value or its memory afterwards.
        unsafe {
            self.0.drop_in_place();
            give_back(self.0.cast());
        }
    }
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
