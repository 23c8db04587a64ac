//! What the hooked functions do: an object that belongs there comes from far memory, if there is any, and everything
//! else from the original function.
//!
//! Which cache of a thread a freed object goes to decides what the object serves next, so a far one goes to the far
//! cache. In the other one it would be right, too, but near objects would then be far.

use core::ffi::{c_int, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

use libc::size_t;

use crate::hooks::{original, table};
use crate::share::Place;
use crate::{far, jemalloc, share, thread};

type Pointer = *mut c_void;

/// An object of far memory, or null.
#[inline]
fn far_object(size: usize, form: c_int) -> Pointer {
    // SAFETY: the size is not 0, and the arena and the cache exist.
    let object = unsafe { (original::mallocx.get())(size, form | far::flags()) };
    // A request that no memory can hold says nothing about this one.
    if object.is_null() && size <= far::LENGTH {
        share::far_is_full();
    }
    object
}

/// A far object, if this one belongs there; null leaves it to the original.
#[inline]
fn far_if_large(size: usize, form: c_int) -> Pointer {
    if size > 0 && share::is_far(size) { far_object(size, form) } else { null_mut() }
}

/// The same, with an alignment that jemalloc can have; any other is the original's to judge.
#[inline]
fn far_if_large_aligned(size: usize, alignment: usize) -> Pointer {
    const MOST: usize = 1 << 30;
    if alignment.is_power_of_two() && alignment <= MOST {
        far_if_large(size, jemalloc::of_alignment(alignment))
    } else {
        null_mut()
    }
}

/// For C++'s operators: as `far_if_large`.
pub(crate) extern "C" fn new(size: usize) -> Pointer {
    far_if_large(size, 0)
}

/// For C++'s operators, with an alignment.
pub(crate) extern "C" fn new_aligned(size: usize, alignment: usize) -> Pointer {
    far_if_large_aligned(size, alignment)
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
#[inline]
pub(crate) unsafe fn malloc(original: table::malloc, size: size_t) -> Pointer {
    let object = far_if_large(size, 0);
    // SAFETY: the caller's size.
    if object.is_null() { unsafe { original(size) } } else { object }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
#[inline]
pub(crate) unsafe fn calloc(original: table::calloc, count: size_t, size: size_t) -> Pointer {
    let all = count.checked_mul(size).unwrap_or(0);
    let object = far_if_large(all, jemalloc::ZERO);
    // SAFETY: the caller's sizes.
    if object.is_null() { unsafe { original(count, size) } } else { object }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn posix_memalign(
    original: table::posix_memalign,
    place: *mut Pointer,
    alignment: size_t,
    size: size_t,
) -> c_int {
    let is_valid = alignment >= size_of::<Pointer>();
    let object = if is_valid { far_if_large_aligned(size, alignment) } else { null_mut() };
    // SAFETY: the caller's arguments, of which the first is where the object goes.
    unsafe {
        if object.is_null() {
            return original(place, alignment, size);
        }
        *place = object;
    }
    0
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn aligned_alloc(
    original: table::aligned_alloc,
    alignment: size_t,
    size: size_t,
) -> Pointer {
    let object = far_if_large_aligned(size, alignment);
    // SAFETY: the caller's arguments.
    if object.is_null() { unsafe { original(alignment, size) } } else { object }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn mallocx(original: table::mallocx, size: size_t, flags: c_int) -> Pointer {
    // A program that chooses an arena or a cache knows why.
    let object = if flags & jemalloc::PLACE == 0 { far_if_large(size, flags) } else { null_mut() };
    // SAFETY: the caller's arguments.
    if object.is_null() { unsafe { original(size, flags) } } else { object }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn realloc(original: table::realloc, object: Pointer, size: size_t) -> Pointer {
    if size == 0 || object.is_null() {
        let new = far_if_large(if object.is_null() { size } else { 0 }, 0);
        // SAFETY: the caller's arguments.
        return if new.is_null() { unsafe { original(object, size) } } else { new };
    }
    let was_far = far::has(object);
    let is_far = match share::place(size) {
        Place::Near => false,
        Place::Far => true,
        Place::Either => was_far,
    };
    // SAFETY: the caller's object is a live one, and the size is not 0.
    unsafe {
        let moved = if is_far == was_far { null_mut() } else { moved(object, size, is_far) };
        if !moved.is_null() {
            return moved;
        }
        let new = if was_far { resized(object, size, 0) } else { null_mut() };
        if new.is_null() { original(object, size) } else { new }
    }
}

/// The object in the other memory, or null if it stays where it is: a copy must pay, which it does if there is a new
/// object anyway.
///
/// # Safety
///
/// A live object, and a size that is not 0.
unsafe fn moved(object: Pointer, size: usize, is_far: bool) -> Pointer {
    // SAFETY: the contract; both objects are live, distinct, and at least as large as what is copied. The old one is
    // given up only when there is a new one.
    unsafe {
        let (old, new) = (jemalloc::size_of_object(object), jemalloc::size_for(size, 0));
        if new == 0 || new <= old && new > old / 2 {
            return null_mut();
        }
        let place = if is_far { far_object(size, 0) } else { (original::malloc.get())(size) };
        if !place.is_null() {
            copy_nonoverlapping::<u8>(object.cast(), place.cast(), old.min(size));
            let flags = if is_far { 0 } else { thread::cache() };
            (original::dallocx.get())(object, flags);
        }
        place
    }
}

/// A far object in another size, or null, and it is as it was.
///
/// # Safety
///
/// A live object of far memory, and a size that is not 0.
unsafe fn resized(object: Pointer, size: usize, form: c_int) -> Pointer {
    // SAFETY: the contract.
    unsafe { (original::rallocx.get())(object, size, form | far::flags()) }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn rallocx(
    original: table::rallocx,
    object: Pointer,
    size: size_t,
    flags: c_int,
) -> Pointer {
    let is_plain = flags & jemalloc::PLACE == 0 && size > 0;
    // SAFETY: the caller's arguments.
    unsafe {
        let new = if is_plain && far::has(object) { resized(object, size, flags) } else { null_mut() };
        if new.is_null() { original(object, size, flags) } else { new }
    }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
#[inline]
pub(crate) unsafe fn free(original: table::free, object: Pointer) {
    // SAFETY: the caller's object; a far one is jemalloc's.
    unsafe { if far::has(object) { free_far(object) } else { original(object) } }
}

/// # Safety
///
/// A live object of far memory.
unsafe fn free_far(object: Pointer) {
    // SAFETY: the contract. Of an object that was freed before, jemalloc thinks as after `free`.
    unsafe { (original::dallocx.get())(object, thread::cache()) }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn dallocx(original: table::dallocx, object: Pointer, flags: c_int) {
    let is_far = flags & jemalloc::PLACE == 0 && far::has(object);
    // SAFETY: the caller's arguments; a far object may go to the far cache.
    unsafe { original(object, if is_far { flags | thread::cache() } else { flags }) }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn sdallocx(original: table::sdallocx, object: Pointer, size: size_t, flags: c_int) {
    let is_far = flags & jemalloc::PLACE == 0 && far::has(object);
    // SAFETY: the caller's arguments; a far object may go to the far cache.
    unsafe { original(object, size, if is_far { flags | thread::cache() } else { flags }) }
}

/// C++'s `operator delete` in its forms, of which the object is always the first argument.
///
/// # Safety
///
/// The contract of the function, which the original has.
#[inline]
pub(crate) unsafe fn delete(original: table::delete, object: Pointer) {
    // SAFETY: the caller's object; a far one is jemalloc's.
    unsafe { if far::has(object) { free_far(object) } else { original(object) } }
}

/// # Safety
///
/// As `delete`; the second argument is a size, an alignment, or a reference to `std::nothrow`.
#[inline]
pub(crate) unsafe fn delete_2(original: table::delete_2, object: Pointer, second: usize) {
    // SAFETY: the caller's object; a far one is jemalloc's.
    unsafe { if far::has(object) { free_far(object) } else { original(object, second) } }
}

/// # Safety
///
/// As `delete`, with two more arguments.
#[inline]
pub(crate) unsafe fn delete_3(original: table::delete_3, object: Pointer, second: usize, third: usize) {
    // SAFETY: the caller's object; a far one is jemalloc's.
    unsafe { if far::has(object) { free_far(object) } else { original(object, second, third) } }
}
