//! The allocator of zlib's streams.

use core::ffi::{c_uint, c_void};

/// # Safety
///
/// None: it is what a stream calls.
pub(super) unsafe extern "C" fn allocate(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: no precondition.
    unsafe { libc::malloc(items as usize * size as usize) }
}

/// # Safety
///
/// `address` comes from [`allocate`].
pub(super) unsafe extern "C" fn free(_: *mut c_void, address: *mut c_void) {
    // SAFETY: as the contract says.
    unsafe { libc::free(address) }
}
