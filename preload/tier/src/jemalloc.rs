//! Typed calls of jemalloc's control interface.

use core::ffi::{CStr, c_void};
use core::mem::size_of;
use core::ptr::{from_mut, from_ref, null, null_mut};

use tikv_jemalloc_sys::mallctl;

/// The value of `name`, or what creating it returns.
pub(crate) fn get<T: Copy + Default>(name: &CStr) -> Option<T> {
    let mut value = T::default();
    let mut size = size_of::<T>();
    // SAFETY: jemalloc writes no more than `size` bytes, and refuses a size that is not the value's.
    let error = unsafe { mallctl(name.as_ptr(), from_mut(&mut value).cast(), &raw mut size, null_mut(), 0) };
    (error == 0).then_some(value)
}

/// Creates something by `name` from `input`.
pub(crate) fn create<T: Copy>(name: &CStr, input: T) -> Option<u32> {
    let mut index = 0_u32;
    let mut size = size_of::<u32>();
    let input: *const c_void = from_ref(&input).cast();
    // SAFETY: as for `get`; jemalloc only reads the input, and refuses a size that is not the value's.
    let error = unsafe {
        mallctl(name.as_ptr(), from_mut(&mut index).cast(), &raw mut size, input.cast_mut(), size_of::<T>())
    };
    (error == 0).then_some(index)
}

/// Sets `name`.
pub(crate) fn set<T: Copy>(name: &CStr, input: T) -> bool {
    let input: *const c_void = from_ref(&input).cast();
    // SAFETY: jemalloc only reads the input, and refuses a size that is not the value's.
    unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), input.cast_mut(), size_of::<T>()) == 0 }
}

/// Does `name`, which takes and returns nothing.
pub(crate) fn act(name: &CStr) -> bool {
    // SAFETY: nothing is read or written.
    unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), null::<c_void>().cast_mut(), 0) == 0 }
}
