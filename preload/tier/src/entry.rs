//! The functions that programs call: the C library's, and jemalloc's for programs that were linked with it.
//!
//! A program that defines `malloc` and `free` itself may lack a function of this table; it must not get memory here that
//! it will free there (`is_ours`).

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use tikv_jemalloc_sys as je;

use crate::{allocate, jemalloc, share};

fn set_errno(error: c_int) {
    // SAFETY: every thread has its own.
    unsafe { *libc::__errno_location() = error };
}

fn or_no_memory(pointer: *mut c_void) -> *mut c_void {
    if pointer.is_null() {
        set_errno(libc::ENOMEM);
    }
    pointer
}

/// Whether the process' `free` is the one below.
fn is_ours() -> bool {
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    if ANSWER.load(Relaxed) == 0 {
        // SAFETY: the name is a C string.
        let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"free".as_ptr()) };
        ANSWER.store(if first.addr() == free as *const () as usize { 1 } else { 2 }, Relaxed);
    }
    ANSWER.load(Relaxed) == 1
}

/// What this name would be without this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

fn aligned(alignment: usize, size: usize) -> *mut c_void {
    or_no_memory(allocate::allocate(size, alignment.trailing_zeros().cast_signed()))
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    or_no_memory(allocate::allocate(size, 0))
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return or_no_memory(null_mut()) };
    or_no_memory(allocate::allocate(size, je::MALLOCX_ZERO))
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(pointer: *mut c_void) {
    // SAFETY: the C library's contract, and errno is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        allocate::free(pointer, 0);
        set_errno(errno);
    }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn cfree(pointer: *mut c_void) {
    // SAFETY: free's contract.
    unsafe { free(pointer) };
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    if pointer.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // SAFETY: the C library's contract; it frees, too.
        unsafe { free(pointer) };
        return null_mut();
    }
    // SAFETY: the C library's contract.
    or_no_memory(unsafe { allocate::reallocate(pointer, size, 0) })
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return or_no_memory(null_mut()) };
    if !is_ours() {
        // SAFETY: the program's own realloc, which the dynamic linker finds first.
        return unsafe { libc::realloc(pointer, size) };
    }
    // SAFETY: realloc's contract.
    unsafe { realloc(pointer, size) }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !is_ours() {
        let original = next(c"posix_memalign");
        // SAFETY: the C library's function of this name has this type.
        let original: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int =
            unsafe { transmute(original) };
        // SAFETY: the caller's arguments.
        return unsafe { original(place, alignment, size) };
    }
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let pointer = allocate::allocate(size, alignment.trailing_zeros().cast_signed());
    if pointer.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the C library's contract.
    unsafe { *place = pointer };
    0
}

/// Calls the function of this name that would be called without this library.
fn aligned_elsewhere(name: &CStr, alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: both of the names that this is called with have this type in the C library.
    let original: extern "C" fn(usize, usize) -> *mut c_void = unsafe { transmute(next(name)) };
    original(alignment, size)
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if !is_ours() {
        return aligned_elsewhere(c"aligned_alloc", alignment, size);
    }
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    aligned(alignment, size)
}

#[unsafe(no_mangle)]
extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    if !is_ours() {
        return aligned_elsewhere(c"memalign", alignment, size);
    }
    // The C library rounds an alignment up.
    match alignment.max(1).checked_next_power_of_two() {
        Some(alignment) => aligned(alignment, size),
        None => or_no_memory(null_mut()),
    }
}

const PAGE: usize = 4096;

#[unsafe(no_mangle)]
extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(PAGE) {
        Some(size) => memalign(PAGE, size),
        None => or_no_memory(null_mut()),
    }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> usize {
    if !is_ours() {
        let original = next(c"malloc_usable_size");
        // SAFETY: the C library's function of this name has this type.
        let original: unsafe extern "C" fn(*mut c_void) -> usize = unsafe { transmute(original) };
        // SAFETY: the caller's pointer.
        return unsafe { original(pointer) };
    }
    allocate::usable(pointer)
}

#[unsafe(no_mangle)]
extern "C" fn malloc_trim(_: usize) -> c_int {
    // 4096 is all arenas.
    jemalloc::act(c"arena.4096.purge").into()
}

#[unsafe(no_mangle)]
extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let (near, far) = share::bytes();
    // SAFETY: all fields are numbers.
    let mut info: libc::mallinfo2 = unsafe { core::mem::zeroed() };
    info.uordblks = usize::try_from(near + far).unwrap_or(0);
    info.arena = info.uordblks;
    info
}

#[unsafe(no_mangle)]
extern "C" fn mallocx(size: usize, flags: c_int) -> *mut c_void {
    allocate::allocate(size, flags)
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn rallocx(pointer: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    // SAFETY: jemalloc's contract, which is the same.
    unsafe { allocate::reallocate(pointer, size, flags) }
}

/// Resizes in place: never, which is an answer that the contract allows.
#[unsafe(no_mangle)]
extern "C" fn xallocx(pointer: *mut c_void, _: usize, _: usize, _: c_int) -> usize {
    allocate::usable(pointer)
}

#[unsafe(no_mangle)]
extern "C" fn sallocx(pointer: *const c_void, _: c_int) -> usize {
    allocate::usable(pointer)
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn dallocx(pointer: *mut c_void, flags: c_int) {
    // SAFETY: jemalloc's contract, which is the same.
    unsafe { allocate::free(pointer, flags) };
}

/// The size that comes with it is only a hint.
///
/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn sdallocx(pointer: *mut c_void, _: usize, flags: c_int) {
    // The alignment in the flags is of no use without the size.
    // SAFETY: jemalloc's contract, which is the same.
    unsafe { allocate::free(pointer, flags & !0x7f) };
}

#[unsafe(no_mangle)]
extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    // SAFETY: it computes; a size of 0 is rounded up as `mallocx` does.
    unsafe { je::nallocx(size.max(1), flags) }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_size: *mut usize,
    new: *mut c_void,
    new_size: usize,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { je::mallctl(name, old, old_size, new, new_size) }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctlnametomib(name: *const c_char, mib: *mut usize, length: *mut usize) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { je::mallctlnametomib(name, mib, length) }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctlbymib(
    mib: *const usize,
    length: usize,
    old: *mut c_void,
    old_size: *mut usize,
    new: *mut c_void,
    new_size: usize,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { je::mallctlbymib(mib, length, old, old_size, new, new_size) }
}

/// # Safety
///
/// The contract of the C library's, or jemalloc's, function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_stats_print(
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    argument: *mut c_void,
    options: *const c_char,
) {
    // SAFETY: the caller's arguments.
    unsafe { je::malloc_stats_print(write, argument, options) };
}
