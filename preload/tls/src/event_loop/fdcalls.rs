//! Calls that create, use and close descriptors.

use core::ffi::{c_int, c_void};

use hasten_telemetry::Doubt;
use libc::{sockaddr, socklen_t};

use std::sync::atomic::Ordering::Relaxed;

use super::{blocking, fds, loans};
use crate::handshake::suspension;
use crate::runtime::{Runtime, SUSPENDED};

type Accept4 = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
type Accept = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
type OnInt = unsafe extern "C" fn(c_int) -> c_int;
type Recv = unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> isize;

/// # Safety
///
/// As for accept4(2): `address` is null, or `len` is valid for reads and writes and `address` for writes of `*len`
/// bytes.
pub(crate) unsafe fn accept4(
    original: Accept4,
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    before_accepting(fd);
    // SAFETY: the program's call.
    let connection = unsafe { original(fd, address, len, flags) };
    fds::accepted(connection, flags & libc::SOCK_NONBLOCK != 0);
    connection
}

/// # Safety
///
/// As for accept(2), with the conditions of [`accept4`].
pub(crate) unsafe fn accept(
    original: Accept,
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    before_accepting(fd);
    // SAFETY: the program's call.
    let connection = unsafe { original(fd, address, len) };
    fds::accepted(connection, false);
    connection
}

/// Before a thread with suspended handshakes accepts on a listener that may block.
#[inline]
fn before_accepting(fd: c_int) {
    if SUSPENDED.load(Relaxed) > 0 {
        blocking::before_connecting(fd);
    }
}

/// # Safety
///
/// As for close(2): the caller owns `fd`, and gives it up.
pub(crate) unsafe fn close(original: OnInt, fd: c_int) -> c_int {
    loans::release_descriptor(fd);
    if SUSPENDED.load(Relaxed) > 0 {
        blocking::before_lingering(fd);
    }
    // Before the call: another thread may get the number as soon as it is free.
    fds::closed(fd);
    // SAFETY: the program's call.
    unsafe { original(fd) }
}

/// # Safety
///
/// `original` is epoll_create1(2), which asks nothing of its caller.
pub(crate) unsafe fn epoll_create1(original: OnInt, flags: c_int) -> c_int {
    // SAFETY: the program's call.
    let epfd = unsafe { original(flags) };
    fds::closed(epfd);
    epfd
}

/// # Safety
///
/// `original` is epoll_create(2), which asks nothing of its caller.
pub(crate) unsafe fn epoll_create(original: OnInt, size: c_int) -> c_int {
    // SAFETY: the program's call.
    let epfd = unsafe { original(size) };
    fds::closed(epfd);
    epfd
}

/// # Safety
///
/// As for dup2(2): if `new` is open, the caller owns it and gives it up.
pub(crate) unsafe fn dup2(
    original: unsafe extern "C" fn(c_int, c_int) -> c_int,
    old: c_int,
    new: c_int,
) -> c_int {
    loans::release_descriptor(new);
    // SAFETY: the program's call.
    let result = unsafe { original(old, new) };
    replaced(old, result)
}

/// # Safety
///
/// As for dup3(2): if `new` is open, the caller owns it and gives it up.
pub(crate) unsafe fn dup3(
    original: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int,
    old: c_int,
    new: c_int,
    flags: c_int,
) -> c_int {
    loans::release_descriptor(new);
    // SAFETY: the program's call.
    let result = unsafe { original(old, new, flags) };
    replaced(old, result)
}

/// Notes that `new` was closed, if it was open, and is now a copy of `old`.
fn replaced(old: c_int, new: c_int) -> c_int {
    if old != new {
        fds::closed(new);
    }
    new
}

type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;

/// # Safety
///
/// As for read(2): `data` is valid for writes of `len` bytes.
pub(crate) unsafe fn read(original: Read, fd: c_int, data: *mut c_void, len: usize) -> isize {
    if SUSPENDED.load(Relaxed) > 0 && is_held_back(fd) {
        return nothing_to_read();
    }
    // SAFETY: the program's call, or libcrypto's.
    unsafe { original(fd, data, len) }
}

/// Notes a server that checks whether there is something to read: if a connection is reported but has no data, such a
/// server takes its peer for gone.
pub(crate) fn looks_at(fd: c_int) {
    if suspension::is_watching()
        && fds::is_shaking(fd)
        && !Runtime::existing().is_some_and(Runtime::is_inside)
    {
        suspension::end(Doubt::LooksAtSocket);
    }
}

/// Whether a read must find nothing, because it belongs to a handshake being called in.
#[cold]
fn is_held_back(fd: c_int) -> bool {
    let Some(runtime) = Runtime::existing() else { return false };
    if runtime.is_calling_in.get() {
        return runtime.running().is_some_and(|handshake| handshake.fd.get() == fd);
    }
    if !runtime.is_inside() {
        // A server that itself reads what libssl should read waits for the client to go on.
        loans::release_descriptor(fd);
        blocking::before_reading(fd);
    }
    false
}

fn nothing_to_read() -> isize {
    // SAFETY: this thread's.
    unsafe { *libc::__errno_location() = libc::EAGAIN };
    -1
}

/// # Safety
///
/// As for recv(2): `data` is valid for writes of `len` bytes.
pub(crate) unsafe fn recv(original: Recv, fd: c_int, data: *mut c_void, len: usize, flags: c_int) -> isize {
    if let Some(runtime) = Runtime::in_handshake() {
        runtime.turn.last_read.set(fd);
        if let Some(handshake) = runtime.running() {
            handshake.reads_from(fd);
        }
    }
    if flags & libc::MSG_PEEK != 0 {
        looks_at(fd);
    }
    if SUSPENDED.load(Relaxed) > 0 && is_held_back(fd) {
        return nothing_to_read();
    }
    // SAFETY: the program's call.
    unsafe { original(fd, data, len, flags) }
}
