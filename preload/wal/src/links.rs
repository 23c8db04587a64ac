//! What a link would do differently from the file that the program made.

use core::ffi::{c_char, c_int, c_uint};
use std::ffi::CString;

use libc::{
    AT_FDCWD, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, DIR, dirent, gid_t, size_t, ssize_t, stat, statx,
    timespec, uid_t,
};

use crate::sys::{self, errno_neutral, place_of};
use crate::{make, start};

type OfPath = unsafe extern "C" fn(*const c_char) -> c_int;
type UnlinkAt = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
type OfTwo = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type RenameAt = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char) -> c_int;
type RenameAt2 = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_uint) -> c_int;
type LinkAt = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int;
type Lstat = unsafe extern "C" fn(*const c_char, *mut stat) -> c_int;
type Lxstat = unsafe extern "C" fn(c_int, *const c_char, *mut stat) -> c_int;
type FstatAt = unsafe extern "C" fn(c_int, *const c_char, *mut stat, c_int) -> c_int;
type Statx = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut statx) -> c_int;
type Readlink = unsafe extern "C" fn(*const c_char, *mut c_char, size_t) -> ssize_t;
type ReadlinkAt = unsafe extern "C" fn(c_int, *const c_char, *mut c_char, size_t) -> ssize_t;
type Lchown = unsafe extern "C" fn(*const c_char, uid_t, gid_t) -> c_int;
type FchownAt = unsafe extern "C" fn(c_int, *const c_char, uid_t, gid_t, c_int) -> c_int;
type UtimensAt = unsafe extern "C" fn(c_int, *const c_char, *const timespec, c_int) -> c_int;
type Readdir = unsafe extern "C" fn(*mut DIR) -> *mut dirent;

/// # Safety
///
/// As for unlink(2), or remove(3).
pub(crate) unsafe fn unlink(original: OfPath, path: *const c_char) -> c_int {
    // SAFETY: the program's call.
    unsafe { removing(AT_FDCWD, path, || original(path)) }
}

/// # Safety
///
/// As for unlinkat(2).
pub(crate) unsafe fn unlinkat(
    original: UnlinkAt,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { removing(directory, path, || original(directory, path, flags)) }
}

/// # Safety
///
/// As for rename(2).
pub(crate) unsafe fn rename(original: OfTwo, from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the program's call.
    unsafe { removing(AT_FDCWD, to, || original(from, to)) }
}

/// # Safety
///
/// As for renameat(2).
pub(crate) unsafe fn renameat(
    original: RenameAt,
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { removing(to_directory, to, || original(from_directory, from, to_directory, to)) }
}

/// # Safety
///
/// As for renameat2(2).
pub(crate) unsafe fn renameat2(
    original: RenameAt2,
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the program's call. With any flag nothing is replaced.
    unsafe {
        let call = || original(from_directory, from, to_directory, to, flags);
        if flags == 0 { removing(to_directory, to, call) } else { call() }
    }
}

/// A call after which a name no longer leads to its log, which then goes, too.
///
/// # Safety
///
/// As for readlinkat(2), with `path`.
unsafe fn removing(directory: c_int, path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    if start::is_sandboxed() {
        return call();
    }
    // SAFETY: the program's path.
    let before = unsafe { place_of(directory, path) };
    let result = call();
    if let Some(place) = before.filter(|_| result == 0) {
        errno_neutral(|| {
            // SAFETY: the call has read the path.
            unsafe { give_up(directory, path, &place) }
        });
    }
    result
}

/// Removes a log, once its name cannot come back: a name that leads to nothing would be worse than a log too many.
///
/// # Safety
///
/// `path` is a C string.
unsafe fn give_up(directory: c_int, path: *const c_char, place: &CString) {
    // SAFETY: C strings.
    unsafe {
        // A file that was renamed to itself is still there.
        let is_gone = place_of(directory, path).as_ref() != Some(place);
        if is_gone && sys::sync_parent(directory, path) {
            libc::unlink(place.as_ptr());
        }
    }
}

/// # Safety
///
/// As for link(2).
pub(crate) unsafe fn link(original: OfTwo, from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the program's call.
    unsafe { linking((AT_FDCWD, from), (AT_FDCWD, to), || original(from, to)) }
}

/// # Safety
///
/// As for linkat(2).
pub(crate) unsafe fn linkat(
    original: LinkAt,
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call. Followed, the link would lead to another device, and the call would fail.
    unsafe {
        let call = || original(from_directory, from, to_directory, to, flags);
        if flags & !AT_SYMLINK_FOLLOW != 0 {
            return call();
        }
        linking((from_directory, from), (to_directory, to), call)
    }
}

/// Two names for one log are two links, to two names of one file on its device. A second link to the same name would lose
/// the log with the first removal. The name on the device is durable before the link is there, as for a new log.
///
/// # Safety
///
/// As for linkat(2), with C strings or what the kernel rejects.
unsafe fn linking(
    from: (c_int, *const c_char),
    to: (c_int, *const c_char),
    call: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the program's paths; C strings of our own.
    unsafe {
        if start::is_sandboxed() {
            return call();
        }
        let Some(place) = place_of(from.0, from.1) else { return call() };
        let Some((directory, second)) = make::beside(&place) else { return call() };
        if libc::link(place.as_ptr(), second.as_ptr()) != 0 {
            return -1;
        }
        if sys::sync_directory(AT_FDCWD, &directory) && libc::symlinkat(second.as_ptr(), to.0, to.1) == 0 {
            return 0;
        }
        let errno = sys::errno();
        libc::unlink(second.as_ptr());
        sys::set_errno(errno);
        -1
    }
}

/// # Safety
///
/// As for lstat(2).
pub(crate) unsafe fn lstat(original: Lstat, path: *const c_char, facts: *mut stat) -> c_int {
    // SAFETY: the program's call.
    unsafe { seen_through(original(path, facts), AT_FDCWD, path, facts) }
}

/// # Safety
///
/// As for lstat(2), in its older form.
pub(crate) unsafe fn lxstat(
    original: Lxstat,
    version: c_int,
    path: *const c_char,
    facts: *mut stat,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { seen_through(original(version, path, facts), AT_FDCWD, path, facts) }
}

/// # Safety
///
/// As for fstatat(2).
pub(crate) unsafe fn fstatat(
    original: FstatAt,
    directory: c_int,
    path: *const c_char,
    facts: *mut stat,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { seen_through(original(directory, path, facts, flags), directory, path, facts) }
}

/// # Safety
///
/// `path` and `facts` are what a successful fstatat(2) got.
unsafe fn seen_through(result: c_int, directory: c_int, path: *const c_char, facts: *mut stat) -> c_int {
    // SAFETY: as the contract; the call fills the program's structure again.
    unsafe {
        if result == 0
            && (*facts).st_mode & libc::S_IFMT == libc::S_IFLNK
            && place_of(directory, path).is_some()
        {
            return libc::syscall(libc::SYS_newfstatat, directory, path, facts, 0) as c_int;
        }
    }
    result
}

/// # Safety
///
/// As for statx(2).
pub(crate) unsafe fn statx_of(
    original: Statx,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    facts: *mut statx,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        let result = original(directory, path, flags, mask, facts);
        let is_link = result == 0 && u32::from((*facts).stx_mode) & libc::S_IFMT == libc::S_IFLNK;
        if is_link && place_of(directory, path).is_some() {
            return original(directory, path, flags & !AT_SYMLINK_NOFOLLOW, mask, facts);
        }
        result
    }
}

/// # Safety
///
/// As for readdir(3).
pub(crate) unsafe fn readdir(original: Readdir, directory: *mut DIR) -> *mut dirent {
    // SAFETY: the program's call; the entry is valid until the next one.
    unsafe {
        let entry = original(directory);
        if !entry.is_null()
            && (*entry).d_type == libc::DT_LNK
            && let Some(place) = place_of(libc::dirfd(directory), (*entry).d_name.as_ptr())
        {
            (*entry).d_type = libc::DT_REG;
            if let Some(facts) = sys::facts_of(AT_FDCWD, &place) {
                (*entry).d_ino = facts.st_ino;
            }
        }
        entry
    }
}

/// # Safety
///
/// As for readlink(2).
pub(crate) unsafe fn readlink(
    original: Readlink,
    path: *const c_char,
    target: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's call.
    unsafe { read_as_link(AT_FDCWD, path, || original(path, target, size)) }
}

/// # Safety
///
/// As for readlinkat(2).
pub(crate) unsafe fn readlinkat(
    original: ReadlinkAt,
    directory: c_int,
    path: *const c_char,
    target: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's call.
    unsafe { read_as_link(directory, path, || original(directory, path, target, size)) }
}

/// # Safety
///
/// As for readlinkat(2), with `path`.
unsafe fn read_as_link(directory: c_int, path: *const c_char, call: impl FnOnce() -> ssize_t) -> ssize_t {
    // SAFETY: the program's path.
    if start::is_sandboxed() || unsafe { place_of(directory, path) }.is_none() {
        return call();
    }
    sys::set_errno(libc::EINVAL);
    -1
}

/// # Safety
///
/// As for lchown(2).
pub(crate) unsafe fn lchown(original: Lchown, path: *const c_char, user: uid_t, group: gid_t) -> c_int {
    // SAFETY: the program's call, or the same one of the log.
    unsafe {
        match place_unless_sandboxed(AT_FDCWD, path) {
            Some(place) => original(place.as_ptr(), user, group),
            None => original(path, user, group),
        }
    }
}

/// # Safety
///
/// As for fchownat(2).
pub(crate) unsafe fn fchownat(
    original: FchownAt,
    directory: c_int,
    path: *const c_char,
    user: uid_t,
    group: gid_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { original(directory, path, user, group, followed(directory, path, flags)) }
}

/// # Safety
///
/// As for utimensat(2).
pub(crate) unsafe fn utimensat(
    original: UtimensAt,
    directory: c_int,
    path: *const c_char,
    times: *const timespec,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { original(directory, path, times, followed(directory, path, flags)) }
}

/// The flags of a call that would treat a link and not what it leads to, unless the link is one of ours.
///
/// # Safety
///
/// As for readlinkat(2).
unsafe fn followed(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    let is_of_links = flags & AT_SYMLINK_NOFOLLOW != 0;
    // SAFETY: the program's path.
    let is_ours = is_of_links && unsafe { place_unless_sandboxed(directory, path) }.is_some();
    if is_ours { flags & !AT_SYMLINK_NOFOLLOW } else { flags }
}

/// # Safety
///
/// As for readlinkat(2).
unsafe fn place_unless_sandboxed(directory: c_int, path: *const c_char) -> Option<CString> {
    // SAFETY: as the contract.
    if start::is_sandboxed() { None } else { unsafe { place_of(directory, path) } }
}
