//! Every function this library hooks, and why.
//!
//! Each is put into the slots through which the objects of the process call jemalloc, and calls the named function
//! of this crate with the original as first argument. `hasten check --hooks` shows this table.
//!
//! The functions that a program calls for nearly every object are below it, in assembler: an object that stays near
//! costs a few instructions and a jump to the original. The operators `new` may throw, too, so no frame of ours may be on
//! the stack when it runs.

use core::ffi::{c_char, c_int, c_void};

use hasten_hook::{By, Hook, Library, exec, slots};
use libc::size_t;

use crate::{allocate, far, share, thread};

/// The functions' types.
#[allow(non_camel_case_types)]
pub(crate) mod table {
    use super::*;

    pub(crate) type calloc = unsafe extern "C" fn(size_t, size_t) -> *mut c_void;
    pub(crate) type realloc = unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void;
    pub(crate) type posix_memalign = unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int;
    pub(crate) type aligned_alloc = unsafe extern "C" fn(size_t, size_t) -> *mut c_void;
    pub(crate) type mallocx = unsafe extern "C" fn(size_t, c_int) -> *mut c_void;
    pub(crate) type rallocx = unsafe extern "C" fn(*mut c_void, size_t, c_int) -> *mut c_void;
    pub(crate) type dallocx = unsafe extern "C" fn(*mut c_void, c_int);
    pub(crate) type sdallocx = unsafe extern "C" fn(*mut c_void, size_t, c_int);
}

slots! {
    table HOOKS;

    /// Gives large objects far memory.
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
    required Jemalloc by Program fn dallocx(object: *mut c_void, flags: c_int) -> () = allocate::dallocx;
    /// The same.
    required Jemalloc by Program fn sdallocx(object: *mut c_void, size: size_t, flags: c_int) -> () = allocate::sdallocx;

    /// Keeps the library loaded in a program that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}

/// Declares functions in assembler. Those of the first list count the size and jump to the original, with the caller's
/// arguments and return address; if the size may be far or a look at the share is due, they return what `$far` does, unless
/// that is null. Those of the second jump to `$far` for a far object, and else to the original.
macro_rules! direct {
    (
        table $table:ident;
        allocate { $( #[doc = $why:literal] $need:ident fn $name:ident = $far:path; )* }
        free { $( #[doc = $free_why:literal] $free_need:ident fn $free:ident = $free_far:path; )* }
    ) => {
        #[allow(non_upper_case_globals)]
        mod originals {
            use core::ptr::null_mut;
            use core::sync::atomic::AtomicPtr;
            $(pub(super) static $name: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());)*
            $(pub(super) static $free: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());)*
        }

        /// The functions that stand in for them.
        #[allow(non_snake_case)]
        mod direct {
            use super::*;
            $(
                /// # Safety
                ///
                /// As for the original, which has been found.
                #[unsafe(naked)]
                pub(super) unsafe extern "C" fn $name() {
                    ::core::arch::naked_asm!(
                        "cmp rdi, qword ptr [rip + {near}]",
                        "ja 2f",
                        // The bytes before this thread's next look; fewer than none borrow.
                        thread::left_in!("rax"),
                        "sub qword ptr fs:[rax], rdi",
                        "jb 2f",
                        "jmp qword ptr [rip + {original}]",
                        "2:",
                        // Three words and the return address keep the stack aligned.
                        "push rdi",
                        "push rsi",
                        "push rdx",
                        "call {far}",
                        "pop rdx",
                        "pop rsi",
                        "pop rdi",
                        "test rax, rax",
                        "jz 3f",
                        "ret",
                        "3:",
                        "jmp qword ptr [rip + {original}]",
                        near = sym share::NEAR,
                        far = sym $far,
                        original = sym originals::$name,
                    )
                }
            )*
            $(
                /// # Safety
                ///
                /// As for the original, which has been found.
                #[unsafe(naked)]
                pub(super) unsafe extern "C" fn $free() {
                    ::core::arch::naked_asm!(
                        "mov rax, rdi",
                        "sub rax, qword ptr [rip + {base}]",
                        "cmp rax, qword ptr [rip + {reserved}]",
                        "jb {far}",
                        "jmp qword ptr [rip + {original}]",
                        base = sym far::BASE,
                        reserved = sym far::RESERVED,
                        far = sym $free_far,
                        original = sym originals::$free,
                    )
                }
            )*
        }

        pub(crate) static $table: &[Hook] = &[
            $(direct_hook!($need $name),)*
            $(direct_hook!($free_need $free),)*
        ];

        hasten_hook::hook_table!(
            DIRECT_LINES, $($name Jemalloc $need $why)* $($free Jemalloc $free_need $free_why)*
        );
    };
}

macro_rules! direct_hook {
    ($need:ident $name:ident) => {
        Hook {
            name: hasten_hook::c_name!($name),
            library: Library::Jemalloc,
            by: By::Program,
            required: hasten_hook::is_required!($need),
            function: direct::$name as *const c_void,
            original: &originals::$name,
        }
    };
}

direct! {
    table DIRECT;

    allocate {
        /// Gives large objects far memory.
        required fn malloc = allocate::new;
        /// The same: C++'s `operator new`.
        optional fn _Znwm = allocate::new;
        /// The same: C++'s `operator new[]`.
        optional fn _Znam = allocate::new;
        /// The same, without exceptions.
        optional fn _ZnwmRKSt9nothrow_t = allocate::new;
        /// The same, without exceptions.
        optional fn _ZnamRKSt9nothrow_t = allocate::new;
        /// The same, with an alignment.
        optional fn _ZnwmSt11align_val_t = allocate::new_aligned;
        /// The same, with an alignment.
        optional fn _ZnamSt11align_val_t = allocate::new_aligned;
        /// The same, with an alignment and without exceptions.
        optional fn _ZnwmSt11align_val_tRKSt9nothrow_t = allocate::new_aligned;
        /// The same, with an alignment and without exceptions.
        optional fn _ZnamSt11align_val_tRKSt9nothrow_t = allocate::new_aligned;
    }

    free {
        /// Puts a far object into the cache for far ones.
        required fn free = allocate::free_far;
        /// The same: C++'s `operator delete`.
        optional fn _ZdlPv = allocate::free_far;
        /// The same: C++'s `operator delete[]`.
        optional fn _ZdaPv = allocate::free_far;
        /// The same, with a size.
        optional fn _ZdlPvm = allocate::free_far;
        /// The same, with a size.
        optional fn _ZdaPvm = allocate::free_far;
        /// The same, without exceptions.
        optional fn _ZdlPvRKSt9nothrow_t = allocate::free_far;
        /// The same, without exceptions.
        optional fn _ZdaPvRKSt9nothrow_t = allocate::free_far;
        /// The same, with an alignment.
        optional fn _ZdlPvSt11align_val_t = allocate::free_far;
        /// The same, with an alignment.
        optional fn _ZdaPvSt11align_val_t = allocate::free_far;
        /// The same, with both.
        optional fn _ZdlPvmSt11align_val_t = allocate::free_far;
        /// The same, with both.
        optional fn _ZdaPvmSt11align_val_t = allocate::free_far;
    }
}
