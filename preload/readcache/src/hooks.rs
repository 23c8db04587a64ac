//! Every function this library hooks, and why.
//!
//! Each is put into the slots through which the objects of the process call the C library, and calls the named function
//! of this crate with the original as first argument. `hasten check --hooks` shows this table.

use core::ffi::{c_char, c_int, c_uint};

use hasten_hook::{exec, slots};
use libc::{iovec, off_t, size_t, ssize_t};

use crate::{open, read};

slots! {
    table HOOKS;

    /// Learns which descriptors are worth a look: files opened to be read, by their names.
    required C by Program fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = open::open;
    /// The same.
    required C by Program fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = open::open;
    /// The same.
    required C by Program fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int = open::openat;
    /// The same.
    required C by Program fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int = open::openat;
    /// The same, in programs built with checks.
    optional C by Program fn __open_2(path: *const c_char, flags: c_int) -> c_int = open::open_2;
    /// The same, in programs built with checks.
    optional C by Program fn __open64_2(path: *const c_char, flags: c_int) -> c_int = open::open_2;
    /// The same, in programs built with checks.
    optional C by Program fn __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = open::openat_2;
    /// The same, in programs built with checks.
    optional C by Program fn __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = open::openat_2;
    /// Forgets a descriptor, and keeps the store's own from programs that close all they might have.
    required C by Program fn close(fd: c_int) -> c_int = open::close;

    /// Reads at an offset: the usual way into a table of a database.
    required C by Program fn pread(fd: c_int, buffer: *mut u8, count: size_t, offset: off_t) -> ssize_t = read::pread;
    /// The same.
    required C by Program fn pread64(fd: c_int, buffer: *mut u8, count: size_t, offset: off_t) -> ssize_t = read::pread;
    /// The same, in programs built with checks.
    optional C by Program fn __pread_chk(fd: c_int, buffer: *mut u8, count: size_t, offset: off_t, size: size_t) -> ssize_t = read::pread_chk;
    /// The same, in programs built with checks.
    optional C by Program fn __pread64_chk(fd: c_int, buffer: *mut u8, count: size_t, offset: off_t, size: size_t) -> ssize_t = read::pread_chk;
    /// Reads at an offset into several buffers; one is answered.
    optional C by Program fn preadv(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t) -> ssize_t = read::preadv;
    /// The same.
    optional C by Program fn preadv64(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t) -> ssize_t = read::preadv;
    /// The same, with flags; none are answered.
    optional C by Program fn preadv2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = read::preadv2;
    /// The same.
    optional C by Program fn preadv64v2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = read::preadv2;
    /// Reads at the descriptor's own position.
    required C by Program fn read(fd: c_int, buffer: *mut u8, count: size_t) -> ssize_t = read::read;
    /// The same, in programs built with checks.
    optional C by Program fn __read_chk(fd: c_int, buffer: *mut u8, count: size_t, size: size_t) -> ssize_t = read::read_chk;

    /// Keeps the library loaded in a program that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}
