//! Allocation in the tier that a size belongs to. A pointer goes back to where its address says that it is from: the
//! near cache of a thread never gets far memory.

use core::ffi::{c_int, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

use tikv_jemalloc_sys as je;

use crate::{far, share};

/// The bits of jemalloc's flags that are an alignment, and MALLOCX_ZERO.
const FORM: c_int = 0x7f;

/// The bits that choose an arena or a cache.
const PLACE: c_int = !FORM;

/// `flags` that choose no arena and no cache leave the choice to the tiers.
pub(crate) fn allocate(size: usize, flags: c_int) -> *mut c_void {
    let size = size.max(1);
    if flags & PLACE == 0 && share::is_far(size) {
        // SAFETY: the size is not 0, the arena and the cache exist.
        let pointer = unsafe { je::mallocx(size, flags & FORM | far::flags()) };
        if !pointer.is_null() {
            return counted(pointer);
        }
    }
    // SAFETY: the size is not 0.
    let pointer = unsafe { if flags == 0 { je::malloc(size) } else { je::mallocx(size, flags) } };
    if pointer.is_null() { pointer } else { counted(pointer) }
}

fn counted(pointer: *mut c_void) -> *mut c_void {
    share::add(far::contains(pointer), usable(pointer));
    pointer
}

pub(crate) fn usable(pointer: *const c_void) -> usize {
    // SAFETY: the callers' pointers are live ones of this allocator, or null, of which the size is 0.
    unsafe { je::malloc_usable_size(pointer) }
}

/// # Safety
///
/// The pointer is a live one of this allocator, or null.
pub(crate) unsafe fn free(pointer: *mut c_void, flags: c_int) {
    if pointer.is_null() {
        return;
    }
    let is_far = far::contains(pointer);
    share::remove(is_far, usable(pointer));
    // SAFETY: the caller's promise; the cache holds far memory if this is far.
    unsafe {
        match is_far {
            true => je::dallocx(pointer, far_place(flags)),
            false if flags == 0 => je::free(pointer),
            false => je::dallocx(pointer, flags),
        }
    }
}

fn far_place(flags: c_int) -> c_int {
    if flags & PLACE == 0 { far::cache() } else { flags & PLACE }
}

/// # Safety
///
/// The pointer is a live one of this allocator, and not null; the size is not 0.
pub(crate) unsafe fn reallocate(pointer: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    let (old, was_far) = (usable(pointer), far::contains(pointer));
    let is_other_tier = share::is_far(size) != was_far;
    if flags & PLACE == 0 && is_other_tier && (size > old || size < old / 2) {
        let new = allocate(size, flags);
        if new.is_null() {
            return null_mut();
        }
        // SAFETY: both are live, distinct, and have at least as many bytes.
        unsafe {
            copy_nonoverlapping::<u8>(pointer.cast(), new.cast(), old.min(size));
            free(pointer, 0);
        }
        return new;
    }
    let place = if flags & PLACE == 0 && was_far { far::flags() } else { flags & PLACE };
    // SAFETY: the caller's promise.
    let new = unsafe { je::rallocx(pointer, size, flags & FORM | place) };
    if !new.is_null() {
        share::remove(was_far, old);
        counted(new);
    }
    new
}
