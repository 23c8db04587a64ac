//! The function that would have run without us.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::linker;
use crate::object::Object;

/// The shared object in which an original is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The C library.
    C,
    /// OpenSSL's libssl
    Ssl,
    /// OpenSSL's libcrypto
    Crypto,
    /// libz.so.1
    Z,
    /// jemalloc, as a library of its own.
    Jemalloc,
}

/// The one verified object of each library.
static ADOPTED: [Adopted; Library::COUNT] = [const { Adopted::none() }; Library::COUNT];

#[derive(Debug)]
struct Adopted {
    /// As `linker::find` takes it.
    object: AtomicPtr<c_void>,
    code: AtomicUsize,
}

impl Adopted {
    const fn none() -> Self {
        Self { object: AtomicPtr::new(null_mut()), code: AtomicUsize::new(0) }
    }
}

impl Library {
    const COUNT: usize = 5;

    /// The names under which programs link it, one for each version of its ABI. Libraries of one project have them in the
    /// same order.
    #[must_use]
    pub fn sonames(self) -> &'static [&'static CStr] {
        match self {
            Library::C => &[c"libc.so.6"],
            Library::Ssl => &[c"libssl.so.3", c"libssl.so.4"],
            Library::Crypto => &[c"libcrypto.so.3", c"libcrypto.so.4"],
            Library::Z => &[c"libz.so.1"],
            Library::Jemalloc => &[c"libjemalloc.so.2"],
        }
    }

    /// The version of which this is the name.
    pub(crate) fn version(self, soname: &[u8]) -> Option<usize> {
        self.sonames().iter().position(|name| name.to_bytes() == soname)
    }

    fn adopted(self) -> &'static Adopted {
        &ADOPTED[self as usize]
    }

    /// Makes this object the library from now on; it stays loaded.
    pub(crate) fn adopt(self, object: &Object) {
        let (true, Some(code)) = (!self.is_adopted(), object.code().first()) else { return };
        self.adopted().code.store(code.start, Ordering::Relaxed);
        self.adopted().object.store(object.pin(), Ordering::Release);
    }

    /// For tests: loads the library as a program linked with it would; returns whether it is there.
    pub fn load(self) -> bool {
        // SAFETY: C strings; the libraries are fit to be loaded at any time.
        let open = |soname: &&CStr| unsafe { libc::dlopen(soname.as_ptr(), libc::RTLD_NOW) };
        let handle = self.sonames().iter().map(open).find(|handle| !handle.is_null()).unwrap_or(null_mut());
        if !self.is_adopted() {
            self.adopted().object.store(handle, Ordering::Release);
        }
        self.is_adopted()
    }

    pub(crate) fn is_adopted(self) -> bool {
        !self.adopted().object.load(Ordering::Acquire).is_null()
    }

    /// Whether this object is the one that was adopted.
    pub(crate) fn is(self, object: &Object) -> bool {
        self.is_adopted() && object.has_code_at(self.adopted().code.load(Ordering::Relaxed))
    }

    /// The library's definition: for the C library the one the program itself would find, otherwise that of the adopted
    /// object.
    pub(crate) fn find(self, name: &CStr) -> *mut c_void {
        if self == Library::C {
            // SAFETY: `name` is a C string.
            return unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        }
        let object = self.adopted().object.load(Ordering::Acquire);
        if object.is_null() {
            return null_mut();
        }
        // SAFETY: a pinned object.
        unsafe { linker::find(object, name) }
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

    /// The function. Hooks run only after it has been found, and imports are looked up before anything relies on them.
    #[inline]
    pub fn get(&self) -> F {
        self.find().unwrap_or_else(|| {
            let absent: extern "C" fn() -> usize = absent;
            // SAFETY: in the C calling convention of x86-64 the caller cleans up arguments, so a function may be called
            // with more than it takes; it returns null, or 0.
            unsafe { transmute_copy::<extern "C" fn() -> usize, F>(&absent) }
        })
    }

    /// The cell that holds the address, for the hook table.
    pub const fn cell(&self) -> &AtomicPtr<c_void> {
        &self.address
    }

    /// The function, if a loaded library has it.
    #[inline]
    pub fn find(&self) -> Option<F> {
        if self.address.load(Ordering::Relaxed).is_null() {
            self.address.store(self.library.find(self.name), Ordering::Relaxed);
        }
        self.found()
    }

    /// The function, if `find` has found it before: for places where no lookup is allowed.
    #[inline]
    pub fn found(&self) -> Option<F> {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `new` vouches that F is the function pointer type of this symbol,
        // and the address is that symbol's definition.
        (!address.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// Stands in for a function that no library has.
extern "C" fn absent() -> usize {
    0
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

    #[test]
    fn the_place_of_a_missing_function_answers_nothing() {
        // SAFETY: `absent` accepts any arguments.
        let missing: Original<unsafe extern "C" fn(usize, *mut u8) -> *mut u8> =
            unsafe { Original::new(Library::Ssl, c"SSL_of_the_future") };
        // SAFETY: as above.
        assert!(unsafe { (missing.get())(7, null_mut()) }.is_null());
    }

    #[test]
    fn a_symbol_nobody_has_is_none() {
        // SAFETY: never called; there is no such function.
        let absent: Original<unsafe extern "C" fn()> =
            unsafe { Original::new(Library::Crypto, c"hasten_no_such_symbol") };
        assert!(absent.find().is_none());
    }
}
