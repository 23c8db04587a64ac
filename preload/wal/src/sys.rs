//! System calls on paths, and `errno`.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

use hasten_logs::place;

/// Does something and leaves `errno` as it was.
pub(crate) fn errno_neutral<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno is always readable and writable.
    unsafe {
        let errno = *libc::__errno_location();
        let result = work();
        *libc::__errno_location() = errno;
        result
    }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: errno is always writable.
    unsafe { *libc::__errno_location() = errno };
}

pub(crate) fn errno() -> c_int {
    // SAFETY: errno is always readable.
    unsafe { *libc::__errno_location() }
}

/// Where the link of this name leads, if it is one of ours.
///
/// # Safety
///
/// As for readlinkat(2): `path` is a C string, or the kernel says that it is none.
pub(crate) unsafe fn place_of(directory: c_int, path: *const c_char) -> Option<CString> {
    if path.is_null() {
        return None;
    }
    let mut target = [0u8; libc::PATH_MAX as usize];
    let len = errno_neutral(|| {
        // SAFETY: a buffer of that size.
        unsafe { libc::readlinkat(directory, path, target.as_mut_ptr().cast(), target.len()) }
    });
    let target = target.get(..usize::try_from(len).ok()?)?;
    place::is_ours(target).then(|| CString::new(target).ok()).flatten()
}

/// What the kernel says of a file, followed; by number, because the C library got the function with glibc 2.33.
pub(crate) fn facts_of(directory: c_int, path: &CStr) -> Option<libc::stat> {
    let mut facts = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let got = errno_neutral(|| {
        // SAFETY: a C string, and a structure of the kernel's layout that the call fills.
        unsafe { libc::syscall(libc::SYS_newfstatat, directory, path.as_ptr(), facts.as_mut_ptr(), 0) }
    });
    // SAFETY: zeroed, which is a valid value, and filled on success.
    (got == 0).then(|| unsafe { facts.assume_init() })
}

/// Syncs the directory that a path is in; whether that worked.
///
/// # Safety
///
/// `path` is a C string.
pub(crate) unsafe fn sync_parent(directory: c_int, path: *const c_char) -> bool {
    // SAFETY: as the contract.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let Ok(parent) = CString::new(parent(path)) else { return false };
    sync_directory(directory, &parent)
}

/// The directory in a path, for the kernel.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(slash) => &path[..slash],
    }
}

pub(crate) fn sync_directory(directory: c_int, path: &CStr) -> bool {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: a C string, and a descriptor of our own that is closed again.
    unsafe {
        let fd = libc::openat(directory, path.as_ptr(), flags);
        fd >= 0 && {
            let is_synced = libc::fsync(fd) == 0;
            libc::close(fd);
            is_synced
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_directory_of_a_path() {
        for (path, expected) in [("a", "."), ("/a", "/"), ("/a/b", "/a"), ("a/b/c", "a/b")] {
            assert_eq!(parent(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
