//! What is asked of jemalloc besides memory: `mallctl`, by name and by number.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use libc::size_t;

hasten_hook::imports! {
    Jemalloc fn mallctl(*const c_char, *mut c_void, *mut size_t, *mut c_void, size_t) -> c_int;
    Jemalloc fn mallctlnametomib(*const c_char, *mut size_t, *mut size_t) -> c_int;
    Jemalloc fn mallctlbymib(*const size_t, size_t, *mut c_void, *mut size_t, *mut c_void, size_t) -> c_int;
    Jemalloc fn sallocx(*const c_void, c_int) -> size_t;
    Jemalloc fn nallocx(size_t, c_int) -> size_t;
}

/// The index that stands for all arenas in statistics.
pub(crate) const ALL: usize = 4096;

/// Zeroed memory (`MALLOCX_ZERO`).
pub(crate) const ZERO: c_int = 0x40;
/// The bits of the flags that are an alignment.
const ALIGNMENT: c_int = 0x3f;
/// The bits of the flags that choose an arena or a cache.
pub(crate) const PLACE: c_int = !(ALIGNMENT | ZERO);

/// `MALLOCX_TCACHE_NONE`
pub(crate) const NO_CACHE: c_int = 1 << 8;

/// `MALLOCX_TCACHE(cache)`
pub(crate) fn of_cache(cache: u32) -> c_int {
    (cache.cast_signed() + 2) << 8
}

/// `MALLOCX_ARENA(arena)`
pub(crate) fn of_arena(arena: u32) -> c_int {
    (arena.cast_signed() + 1) << 20
}

/// `MALLOCX_ALIGN`, for a power of two.
pub(crate) fn of_alignment(alignment: usize) -> c_int {
    alignment.trailing_zeros().cast_signed() & ALIGNMENT
}

/// Values that `mallctl` reads and writes as they are.
///
/// # Safety
///
/// The type is as in C, and every pattern of bits is a value of it.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: a number.
unsafe impl Plain for c_uint {}
// SAFETY: a number.
unsafe impl Plain for u64 {}
// SAFETY: a number.
unsafe impl Plain for usize {}
// SAFETY: a C `bool` is one byte, here read as a number.
unsafe impl Plain for u8 {}

/// Reads a value.
pub(crate) fn get<T: Plain>(name: &CStr) -> Option<T> {
    let (mut value, mut size) = (MaybeUninit::<T>::uninit(), size_of::<T>());
    // SAFETY: jemalloc writes at most `size` bytes, and says how many.
    unsafe {
        let error = (mallctl.get())(name.as_ptr(), value.as_mut_ptr().cast(), &raw mut size, null_mut(), 0);
        (error == 0 && size == size_of::<T>()).then(|| value.assume_init())
    }
}

/// Writes a value; returns whether it was taken.
pub(crate) fn set<T: Plain>(name: &CStr, mut value: T) -> bool {
    // SAFETY: jemalloc reads this value, of this size.
    unsafe {
        (mallctl.get())(name.as_ptr(), null_mut(), null_mut(), (&raw mut value).cast(), size_of::<T>()) == 0
    }
}

/// Makes an arena with these hooks.
///
/// # Safety
///
/// `hooks` points to a table of extent hooks that stays valid.
pub(crate) unsafe fn create_arena(hooks: *const c_void) -> Option<c_uint> {
    let (mut arena, mut size, mut hooks) = (c_uint::MAX, size_of::<c_uint>(), hooks);
    // SAFETY: jemalloc reads a pointer, writes a number, and keeps the table.
    let error = unsafe {
        (mallctl.get())(
            c"arenas.create".as_ptr(),
            (&raw mut arena).cast(),
            &raw mut size,
            (&raw mut hooks).cast(),
            size_of::<*const c_void>(),
        )
    };
    (error == 0).then_some(arena)
}

/// The most parts that a name used here has.
const PARTS: usize = 7;

/// A name in numbers, some of which are indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mib {
    parts: [usize; PARTS],
    length: usize,
}

impl Mib {
    pub(crate) const NONE: Self = Self { parts: [0; PARTS], length: 0 };

    pub(crate) fn of(name: &CStr) -> Option<Self> {
        let mut mib = Self { parts: [0; PARTS], length: PARTS };
        // SAFETY: jemalloc writes at most as many numbers as there is room for, and says how many.
        let error =
            unsafe { (mallctlnametomib.get())(name.as_ptr(), mib.parts.as_mut_ptr(), &raw mut mib.length) };
        (error == 0 && mib.length <= PARTS).then_some(mib)
    }

    pub(crate) fn with(mut self, part: usize, index: usize) -> Self {
        self.parts[part] = index;
        self
    }

    /// Reads a size; 0 if there is none.
    pub(crate) fn size(&self) -> usize {
        let (mut value, mut size) = (0_usize, size_of::<usize>());
        // SAFETY: jemalloc writes at most `size` bytes.
        let error = unsafe {
            (mallctlbymib.get())(
                self.parts.as_ptr(),
                self.length,
                (&raw mut value).cast(),
                &raw mut size,
                null_mut(),
                0,
            )
        };
        if error == 0 { value } else { 0 }
    }
}

/// The size that an object really has.
///
/// # Safety
///
/// A live object of jemalloc's.
pub(crate) unsafe fn size_of_object(object: *const c_void) -> usize {
    // SAFETY: the contract.
    unsafe { (sallocx.get())(object, 0) }
}

/// The size that an object would really have; 0 if there can be none.
pub(crate) fn size_for(size: usize, flags: c_int) -> usize {
    // SAFETY: jemalloc only computes; the caller's size is not 0.
    unsafe { (nallocx.get())(size, flags) }
}
