//! The function that would have run without us.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The shared object in which an original is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The C library.
    C,
    /// libssl.so.3
    Ssl,
    /// libcrypto.so.3
    Crypto,
    /// libz.so.1
    Z,
}

impl Library {
    /// Where to ask when the global scope does not have the symbol: a
    /// program may have loaded the library with `RTLD_LOCAL`.
    fn soname(self) -> &'static CStr {
        match self {
            Library::C => c"libc.so.6",
            Library::Ssl => c"libssl.so.3",
            Library::Crypto => c"libcrypto.so.3",
            Library::Z => c"libz.so.1",
        }
    }

    /// The next definition after this library's own, or the named library's.
    fn find(self, name: &CStr) -> *mut c_void {
        // SAFETY: `name` is a C string.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        if !next.is_null() {
            return next;
        }
        let handle = self.open();
        if handle.is_null() {
            return null_mut();
        }
        // SAFETY: the handle is open, and `name` is a C string.
        unsafe { libc::dlsym(handle, name.as_ptr()) }
    }

    /// The library as it is loaded. Its reference is kept on purpose: it stays while we call it.
    fn open(self) -> *mut c_void {
        // SAFETY: the soname is a C string; RTLD_NOLOAD never loads anything.
        let loaded = unsafe { libc::dlopen(self.soname().as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !loaded.is_null() || self != Library::Z {
            return loaded;
        }
        // A program that looks zlib's functions up by name, in order to do without
        // them where there are none, finds ours before any libz is loaded.
        // SAFETY: as above; libz's constructors have no effect outside of it.
        unsafe { libc::dlopen(self.soname().as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) }
    }
}

/// A function of another library, looked up at its first use.
///
/// `F` is a function pointer type. Looking up twice from two threads is
/// harmless: both find the same address.
#[derive(Debug)]
pub struct Original<F> {
    library: Library,
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Original<F> {
    /// # Safety
    ///
    /// `F` must be a function pointer type with the C prototype of `name`.
    pub const unsafe fn new(library: Library, name: &'static CStr) -> Self {
        assert!(size_of::<F>() == size_of::<*mut c_void>());
        Self { library, name, address: AtomicPtr::new(null_mut()), signature: PhantomData }
    }

    /// The function, for a caller that reached us through it.
    ///
    /// A program that calls a symbol has a definition of it, so there is one
    /// to find; where there is none the process cannot go on, just as the
    /// dynamic linker could not have.
    #[inline]
    pub fn get(&self) -> F {
        match self.find() {
            Some(function) => function,
            None => missing(self.name),
        }
    }

    /// The function, if any loaded library has it.
    #[inline]
    pub fn find(&self) -> Option<F> {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.library.find(self.name);
            if address.is_null() {
                return None;
            }
            self.address.store(address, Ordering::Relaxed);
        }
        // SAFETY: `new` vouches that F is the function pointer type of this symbol,
        // and the address is that symbol's definition.
        Some(unsafe { transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// Ends the process as the dynamic linker does for a missing symbol.
#[cold]
fn missing(name: &CStr) -> ! {
    const WHY: &[u8] = b"hasten: no definition of a hooked function was found: ";
    // SAFETY: writes from valid buffers; nothing else can be done here than end the process.
    unsafe {
        libc::write(2, WHY.as_ptr().cast(), WHY.len());
        libc::write(2, name.as_ptr().cast(), name.count_bytes());
        libc::write(2, b"\n".as_ptr().cast(), 1);
        libc::_exit(127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_libc_function_and_calls_it() {
        // SAFETY: the prototype of getpid(2).
        let getpid: Original<unsafe extern "C" fn() -> libc::pid_t> =
            unsafe { Original::new(Library::C, c"getpid") };
        // SAFETY: getpid has no preconditions.
        assert_eq!(unsafe { (getpid.get())() } as u32, std::process::id());
    }

    /// Nothing in this test program is linked to zlib, so the last resort is what finds it.
    #[test]
    fn finds_a_zlib_that_is_not_loaded_yet() {
        // SAFETY: the prototype of zlibVersion.
        let version: Original<unsafe extern "C" fn() -> *const core::ffi::c_char> =
            unsafe { Original::new(Library::Z, c"zlibVersion") };
        // SAFETY: zlibVersion has no preconditions, and returns a static string.
        let version = unsafe { CStr::from_ptr((version.get())()) };
        assert!(version.to_bytes().starts_with(b"1."), "{version:?}");
    }

    #[test]
    fn a_symbol_nobody_has_is_none() {
        // SAFETY: never called; there is no such function.
        let absent: Original<unsafe extern "C" fn()> =
            unsafe { Original::new(Library::Crypto, c"hasten_no_such_symbol") };
        assert!(absent.find().is_none());
    }
}
