//! Descriptors that come and go.

use core::ffi::{CStr, c_char, c_int, c_uint};

use crate::fds::{self, Mark};
use crate::{cache, config};

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;
type Open2 = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type OpenAt2 = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;

/// # Safety
///
/// As for open(2). A caller may leave the mode out, which is then whatever the register holds; it is passed on.
pub(crate) unsafe fn open(original: Open, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the program's call; the original has read the path if it succeeded.
    unsafe { note(original(path, flags, mode), path, flags) }
}

/// # Safety
///
/// As for openat(2); for the mode see [`open`].
pub(crate) unsafe fn openat(
    original: OpenAt,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: as for `open`.
    unsafe { note(original(directory, path, flags, mode), path, flags) }
}

/// # Safety
///
/// As for open(2) without a mode.
pub(crate) unsafe fn open_2(original: Open2, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe { note(original(path, flags), path, flags) }
}

/// # Safety
///
/// As for openat(2) without a mode.
pub(crate) unsafe fn openat_2(
    original: OpenAt2,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: as for `open`.
    unsafe { note(original(directory, path, flags), path, flags) }
}

/// # Safety
///
/// As for close(2).
pub(crate) unsafe fn close(original: unsafe extern "C" fn(c_int) -> c_int, fd: c_int) -> c_int {
    if cache::owns(fd) {
        // The program never opened it: without us it would not be open.
        // SAFETY: errno is always writable.
        unsafe { *libc::__errno_location() = libc::EBADF };
        return -1;
    }
    // Before the number can be another thread's.
    fds::set(fd, None);
    // SAFETY: the program's call.
    unsafe { original(fd) }
}

/// # Safety
///
/// `path` is a C string if `fd` is a descriptor.
unsafe fn note(fd: c_int, path: *const c_char, flags: c_int) -> c_int {
    if fd < 0 {
        return fd;
    }
    // SAFETY: the kernel has just opened the file of this name.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    fds::set(fd, mark(path, flags));
    fd
}

fn mark(path: &[u8], flags: c_int) -> Option<Mark> {
    if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_PATH | libc::O_DIRECTORY) != 0 {
        return None;
    }
    let config = config::get()?;
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let is_named = config.names(name);
    (is_named || config.stable.is_some()).then(|| Mark::new(is_named))
}
