//! Every function this library hooks, and why.
//!
//! Each is put into the slots through which the objects of the process call the C library, and calls the named function
//! of this crate with the original as first argument. `hasten check --hooks` shows this table.

use core::ffi::{c_char, c_int, c_uint};

use hasten_hook::{exec, slots};
use libc::{DIR, dirent, gid_t, size_t, ssize_t, stat, statx, timespec, uid_t};

use crate::{links, make};

slots! {
    table HOOKS;

    /// Makes a log on the fast device.
    required C by Program fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = make::open;
    /// The same.
    required C by Program fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = make::open;
    /// The same.
    required C by Program fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int = make::openat;
    /// The same.
    required C by Program fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int = make::openat;
    /// The same.
    optional C by Program fn creat(path: *const c_char, mode: c_uint) -> c_int = make::creat;
    /// The same.
    optional C by Program fn creat64(path: *const c_char, mode: c_uint) -> c_int = make::creat;
    /// Opens a log as the file that it is, in programs built with checks.
    optional C by Program fn __open_2(path: *const c_char, flags: c_int) -> c_int = make::open_2;
    /// The same.
    optional C by Program fn __open64_2(path: *const c_char, flags: c_int) -> c_int = make::open_2;
    /// The same.
    optional C by Program fn __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = make::openat_2;
    /// The same.
    optional C by Program fn __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = make::openat_2;

    /// Removes a log where it is, and not only the link to it.
    required C by Program fn unlink(path: *const c_char) -> c_int = links::unlink;
    /// The same.
    required C by Program fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int = links::unlinkat;
    /// The same.
    required C by Program fn remove(path: *const c_char) -> c_int = links::unlink;
    /// Removes a log that another file replaces.
    required C by Program fn rename(from: *const c_char, to: *const c_char) -> c_int = links::rename;
    /// The same.
    required C by Program fn renameat(from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char) -> c_int = links::renameat;
    /// The same.
    optional C by Program fn renameat2(from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char, flags: c_uint) -> c_int = links::renameat2;
    /// Gives a log a second name: a link of its own, to the same file.
    required C by Program fn link(from: *const c_char, to: *const c_char) -> c_int = links::link;
    /// The same.
    required C by Program fn linkat(from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char, flags: c_int) -> c_int = links::linkat;

    /// Shows a log as the file that it is, and not as a link.
    optional C by Program fn lstat(path: *const c_char, facts: *mut stat) -> c_int = links::lstat;
    /// The same.
    optional C by Program fn lstat64(path: *const c_char, facts: *mut stat) -> c_int = links::lstat;
    /// The same, in programs built before glibc 2.33.
    optional C by Program fn __lxstat(version: c_int, path: *const c_char, facts: *mut stat) -> c_int = links::lxstat;
    /// The same, in programs built before glibc 2.33.
    optional C by Program fn __lxstat64(version: c_int, path: *const c_char, facts: *mut stat) -> c_int = links::lxstat;
    /// The same.
    optional C by Program fn fstatat(directory: c_int, path: *const c_char, facts: *mut stat, flags: c_int) -> c_int = links::fstatat;
    /// The same.
    optional C by Program fn fstatat64(directory: c_int, path: *const c_char, facts: *mut stat, flags: c_int) -> c_int = links::fstatat;
    /// The same.
    optional C by Program fn statx(directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, facts: *mut statx) -> c_int = links::statx_of;
    /// A log is no link to be read.
    optional C by Program fn readlink(path: *const c_char, target: *mut c_char, size: size_t) -> ssize_t = links::readlink;
    /// The same.
    optional C by Program fn readlinkat(directory: c_int, path: *const c_char, target: *mut c_char, size: size_t) -> ssize_t = links::readlinkat;
    /// Gives the log another owner, and not the link.
    optional C by Program fn lchown(path: *const c_char, user: uid_t, group: gid_t) -> c_int = links::lchown;
    /// The same.
    optional C by Program fn fchownat(directory: c_int, path: *const c_char, user: uid_t, group: gid_t, flags: c_int) -> c_int = links::fchownat;
    /// Sets the times of the log, and not of the link.
    optional C by Program fn utimensat(directory: c_int, path: *const c_char, times: *const timespec, flags: c_int) -> c_int = links::utimensat;
    /// Lists a log as the file that it is.
    required C by Program fn readdir(directory: *mut DIR) -> *mut dirent = links::readdir;
    /// The same.
    required C by Program fn readdir64(directory: *mut DIR) -> *mut dirent = links::readdir;

    /// Keeps the library loaded in a program that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}
