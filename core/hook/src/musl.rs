//! What hooks need of musl's dynamic linker: objects that stay loaded, and their symbols.
//!
//! musl never unloads an object, so there is nothing to hold. A handle is not asked for either: `dlopen` would open the
//! object's file anew to recognise it, which fails for the program itself, after an upgrade or a chroot, and in a sandbox.
//! Symbols are looked up in the object's own tables, as musl does.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;

use crate::slots::Found;
use crate::symbols::Symbols;

/// Whether this is the name of an object whose own calls are left alone: the C library, and the unwinder.
pub(crate) fn is_left_alone(path: &CStr, soname: &[u8]) -> bool {
    is_c_library(path) || soname.starts_with(b"libc.musl-") || soname == b"libgcc_s.so.1"
}

/// Whether this is the path of the C library, which is the loader as well.
#[must_use]
pub fn is_c_library(path: &CStr) -> bool {
    let path = path.to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    file.starts_with(b"ld-musl-") || file == b"libc.so"
}

pub(crate) struct Hold;

impl Hold {
    /// A list of objects shows none that is still being relocated.
    pub(crate) fn take(_: &Found) -> Option<Hold> {
        Some(Hold)
    }

    /// The object's definition of a name.
    pub(crate) fn find(&self, symbols: &Symbols, name: &CStr) -> *mut c_void {
        symbols.find(name).unwrap_or(null_mut())
    }

    /// Returns the object as [`find`] takes it.
    pub(crate) fn pin(&self, symbols: &Symbols) -> *mut c_void {
        Box::into_raw(Box::new(*symbols)).cast()
    }
}

/// The definition of a name in a pinned object.
///
/// # Safety
///
/// `pinned` comes from [`Hold::pin`].
pub(crate) unsafe fn find(pinned: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the copy of its tables that `pin` made, which is never freed.
    unsafe { (*pinned.cast::<Symbols>()).find(name) }.unwrap_or(null_mut())
}
