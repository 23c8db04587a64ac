//! What hooks need of glibc's dynamic linker: objects that stay loaded, and their symbols.
//!
//! Another C library needs a file beside this one with the same names.

use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::ptr::null;

use crate::slots::Found;
use crate::symbols::Symbols;

/// Objects with no calls that concern us: the C library and its parts.
const LEFT_ALONE: [&[u8]; 8] = [
    b"libc.so.6",
    b"ld-linux-x86-64.so.2",
    b"libpthread.so.0",
    b"libdl.so.2",
    b"librt.so.1",
    b"libm.so.6",
    b"libgcc_s.so.1",
    b"libresolv.so.2",
];

/// Whether this is the name of an object whose own calls are left alone.
pub(crate) fn is_left_alone(_: &CStr, soname: &[u8]) -> bool {
    LEFT_ALONE.contains(&soname)
}

/// Whether this is the path of the C library.
#[must_use]
pub fn is_c_library(path: &CStr) -> bool {
    path.to_bytes().ends_with(b"/libc.so.6")
}

/// A reference to an object, which stays loaded as long as this value exists.
pub(crate) struct Hold {
    handle: *mut c_void,
    /// Stays loaded after this value is dropped.
    is_pinned: Cell<bool>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.is_pinned.get() {
            // SAFETY: the reference that `take` took.
            unsafe { libc::dlclose(self.handle) };
        }
    }
}

impl Hold {
    /// `None` if the object is gone.
    pub(crate) fn take(found: &Found) -> Option<Hold> {
        let name = if found.name.is_empty() { null() } else { found.name.as_ptr() };
        // SAFETY: a C string or null; this loads nothing. The call waits for a thread that is still loading the object,
        // so the result is relocated.
        let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then(|| Hold { handle, is_pinned: Cell::new(false) })
    }

    /// The object's definition of a name, or that of a library it is linked with.
    pub(crate) fn find(&self, _: &Symbols, name: &CStr) -> *mut c_void {
        // SAFETY: the handle of a loaded object, and a C string.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }

    /// Keeps the object loaded for the life of the process; returns it as [`find`] takes it.
    pub(crate) fn pin(&self, _: &Symbols) -> *mut c_void {
        self.is_pinned.set(true);
        self.handle
    }
}

/// The definition of a name in a pinned object.
///
/// # Safety
///
/// `pinned` comes from [`Hold::pin`].
pub(crate) unsafe fn find(pinned: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle that stays open, and a C string.
    unsafe { libc::dlsym(pinned, name.as_ptr()) }
}
