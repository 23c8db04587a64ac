//! Every function this library hooks, and why.
//!
//! Each is put into the slots through which the objects of the process call jemalloc, and calls the named function
//! of this crate with the original as first argument. `hasten check --hooks` shows this table.
//!
//! The operators `new` are below it: they may throw, so no frame of ours is on the stack when the original runs.

use core::ffi::{c_char, c_int, c_void};

use hasten_hook::{By, Hook, Library, exec, slots};
use libc::size_t;

use crate::{allocate, limits};

/// The functions' types.
#[allow(non_camel_case_types)]
pub(crate) mod table {
    use super::*;

    pub(crate) type malloc = unsafe extern "C" fn(size_t) -> *mut c_void;
    pub(crate) type calloc = unsafe extern "C" fn(size_t, size_t) -> *mut c_void;
    pub(crate) type realloc = unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void;
    pub(crate) type posix_memalign = unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int;
    pub(crate) type aligned_alloc = unsafe extern "C" fn(size_t, size_t) -> *mut c_void;
    pub(crate) type mallocx = unsafe extern "C" fn(size_t, c_int) -> *mut c_void;
    pub(crate) type rallocx = unsafe extern "C" fn(*mut c_void, size_t, c_int) -> *mut c_void;
    pub(crate) type free = unsafe extern "C" fn(*mut c_void);
    pub(crate) type dallocx = unsafe extern "C" fn(*mut c_void, c_int);
    pub(crate) type sdallocx = unsafe extern "C" fn(*mut c_void, size_t, c_int);
    pub(crate) type setrlimit = unsafe extern "C" fn(c_int, *const c_void) -> c_int;
    pub(crate) type prlimit = unsafe extern "C" fn(c_int, c_int, *const c_void, *mut c_void) -> c_int;
    pub(crate) type delete = unsafe extern "C" fn(*mut c_void);
    pub(crate) type delete_2 = unsafe extern "C" fn(*mut c_void, usize);
    pub(crate) type delete_3 = unsafe extern "C" fn(*mut c_void, usize, usize);
}

slots! {
    table HOOKS;

    /// Gives large objects far memory.
    required Jemalloc by Program fn malloc(size: size_t) -> *mut c_void = allocate::malloc;
    /// The same.
    required Jemalloc by Program fn calloc(count: size_t, size: size_t) -> *mut c_void = allocate::calloc;
    /// The same, or moves an object that gets another size to where it then belongs.
    required Jemalloc by Program fn realloc(object: *mut c_void, size: size_t) -> *mut c_void = allocate::realloc;
    /// Gives large objects far memory.
    required Jemalloc by Program fn posix_memalign(place: *mut *mut c_void, alignment: size_t, size: size_t) -> c_int = allocate::posix_memalign;
    /// The same.
    required Jemalloc by Program fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void = allocate::aligned_alloc;
    /// The same.
    optional Jemalloc by Program fn memalign(alignment: size_t, size: size_t) -> *mut c_void = allocate::aligned_alloc;
    /// The same, unless the program chooses an arena or a cache.
    required Jemalloc by Program fn mallocx(size: size_t, flags: c_int) -> *mut c_void = allocate::mallocx;
    /// Keeps a far object far.
    required Jemalloc by Program fn rallocx(object: *mut c_void, size: size_t, flags: c_int) -> *mut c_void = allocate::rallocx;
    /// Puts a far object into the cache for far ones.
    required Jemalloc by Program fn free(object: *mut c_void) -> () = allocate::free;
    /// The same.
    required Jemalloc by Program fn dallocx(object: *mut c_void, flags: c_int) -> () = allocate::dallocx;
    /// The same.
    required Jemalloc by Program fn sdallocx(object: *mut c_void, size: size_t, flags: c_int) -> () = allocate::sdallocx;

    /// The same: C++'s `operator delete`.
    optional Jemalloc by Program fn _ZdlPv(object: *mut c_void) -> () = allocate::delete;
    /// The same: C++'s `operator delete[]`.
    optional Jemalloc by Program fn _ZdaPv(object: *mut c_void) -> () = allocate::delete;
    /// The same, with a size.
    optional Jemalloc by Program fn _ZdlPvm(object: *mut c_void, size: usize) -> () = allocate::delete_2;
    /// The same, with a size.
    optional Jemalloc by Program fn _ZdaPvm(object: *mut c_void, size: usize) -> () = allocate::delete_2;
    /// The same, without exceptions.
    optional Jemalloc by Program fn _ZdlPvRKSt9nothrow_t(object: *mut c_void, tag: usize) -> () = allocate::delete_2;
    /// The same, without exceptions.
    optional Jemalloc by Program fn _ZdaPvRKSt9nothrow_t(object: *mut c_void, tag: usize) -> () = allocate::delete_2;
    /// The same, with an alignment.
    optional Jemalloc by Program fn _ZdlPvSt11align_val_t(object: *mut c_void, alignment: usize) -> () = allocate::delete_2;
    /// The same, with an alignment.
    optional Jemalloc by Program fn _ZdaPvSt11align_val_t(object: *mut c_void, alignment: usize) -> () = allocate::delete_2;
    /// The same, with both.
    optional Jemalloc by Program fn _ZdlPvmSt11align_val_t(object: *mut c_void, size: usize, alignment: usize) -> () = allocate::delete_3;
    /// The same, with both.
    optional Jemalloc by Program fn _ZdaPvmSt11align_val_t(object: *mut c_void, size: usize, alignment: usize) -> () = allocate::delete_3;

    /// Gives back the addresses that are reserved and not used, if it limits addresses: they would count.
    optional C by Program fn setrlimit(resource: c_int, limit: *const c_void) -> c_int = limits::setrlimit;
    /// The same.
    optional C by Program fn setrlimit64(resource: c_int, limit: *const c_void) -> c_int = limits::setrlimit;
    /// The same, if it limits this process.
    optional C by Program fn prlimit(process: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int = limits::prlimit;
    /// The same.
    optional C by Program fn prlimit64(process: c_int, resource: c_int, new: *const c_void, old: *mut c_void) -> c_int = limits::prlimit;
    /// Keeps the library loaded in a program that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}

/// Declares operators `new`: they return what `$far` does, or else jump to the original with the caller's arguments and
/// return address, so that an exception passes no frame of ours.
macro_rules! operators {
    (table $table:ident; $(
        #[doc = $why:literal]
        fn $name:ident = $far:path;
    )*) => {
        mod originals {
            use core::ptr::null_mut;
            use core::sync::atomic::AtomicPtr;
            $(
                #[allow(non_upper_case_globals)]
                pub(super) static $name: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());
            )*
        }

        $(
            /// # Safety
            ///
            /// As for the operator, whose original has been found.
            #[allow(non_snake_case)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                ::core::arch::naked_asm!(
                    // Three words and the return address keep the stack aligned.
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "call {far}",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "test rax, rax",
                    "jz 2f",
                    "ret",
                    "2:",
                    "jmp qword ptr [rip + {original}]",
                    far = sym $far,
                    original = sym originals::$name,
                )
            }
        )*

        pub(crate) static $table: &[Hook] = &[$(Hook {
            name: hasten_hook::c_name!($name),
            library: Library::Jemalloc,
            by: By::Program,
            required: false,
            function: $name as *const c_void,
            original: &originals::$name,
        }),*];

        hasten_hook::hook_table!(OPERATOR_LINES, $($name Jemalloc optional $why)*);
    };
}

operators! {
    table OPERATORS;

    /// Gives large objects far memory: C++'s `operator new`.
    fn _Znwm = allocate::new;
    /// The same: C++'s `operator new[]`.
    fn _Znam = allocate::new;
    /// The same, without exceptions.
    fn _ZnwmRKSt9nothrow_t = allocate::new;
    /// The same, without exceptions.
    fn _ZnamRKSt9nothrow_t = allocate::new;
    /// The same, with an alignment.
    fn _ZnwmSt11align_val_t = allocate::new_aligned;
    /// The same, with an alignment.
    fn _ZnamSt11align_val_t = allocate::new_aligned;
    /// The same, with an alignment and without exceptions.
    fn _ZnwmSt11align_val_tRKSt9nothrow_t = allocate::new_aligned;
    /// The same, with an alignment and without exceptions.
    fn _ZnamSt11align_val_tRKSt9nothrow_t = allocate::new_aligned;
}
