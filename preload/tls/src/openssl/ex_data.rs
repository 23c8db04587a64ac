//! Slots of our own in OpenSSL's objects.

use core::ffi::{c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use super::abi::*;

/// The index of a slot in all objects of a class.
pub(crate) struct ExIndex {
    class: c_int,
    index: AtomicI32,
}

impl ExIndex {
    pub(crate) const fn of(class: c_int) -> Self {
        Self { class, index: AtomicI32::new(-1) }
    }

    /// Negative until it is reserved.
    #[inline]
    pub(crate) fn get(&self) -> c_int {
        self.index.load(Relaxed)
    }

    /// Reserves the index unless it is reserved already; `free` is called when an object is freed. False if libcrypto
    /// has no room.
    pub(crate) fn reserve(&self, free: Option<ExFree>) -> bool {
        if self.get() >= 0 {
            return true;
        }
        // SAFETY: both callbacks have the prototypes of libcrypto, which serialises this call.
        let index = unsafe {
            CRYPTO_get_ex_new_index.get()(self.class, 0, null_mut(), null(), Some(not_copied), free)
        };
        // Two threads may both get here: one index is then unused.
        let _ = self.index.compare_exchange(-1, index, Relaxed, Relaxed);
        self.get() >= 0
    }
}

/// A copy of an object does not share what is attached to it: without this
/// libcrypto would copy the pointer, and free it twice.
///
/// # Safety
///
/// As for a `CRYPTO_EX_dup`: `attached` points to libcrypto's variable with the value for the copy.
unsafe extern "C" fn not_copied(
    _: *mut ExData,
    _: *const ExData,
    attached: *mut *mut c_void,
    _: c_int,
    _: c_long,
    _: *mut c_void,
) -> c_int {
    // SAFETY: libcrypto's variable, which it will attach to the copy.
    unsafe { attached.write(null_mut()) };
    1
}
