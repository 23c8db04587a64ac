//! Calls that make, use and close descriptors.

use core::ffi::{c_int, c_void};

use libc::{sockaddr, socklen_t};

use crate::fds;
use crate::runtime::Runtime;

type Accept4 = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
type Accept = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
type OnInt = unsafe extern "C" fn(c_int) -> c_int;
type Recv = unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> isize;

pub(crate) unsafe fn accept4(
    original: Accept4,
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    let connection = unsafe { original(fd, address, len, flags) };
    fds::accepted(connection, flags & libc::SOCK_NONBLOCK != 0);
    connection
}

pub(crate) unsafe fn accept(
    original: Accept,
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the program's call.
    let connection = unsafe { original(fd, address, len) };
    fds::accepted(connection, false);
    connection
}

pub(crate) unsafe fn close(original: OnInt, fd: c_int) -> c_int {
    // Before the call: another thread may get the number as soon as it is free.
    fds::closed(fd);
    // SAFETY: the program's call.
    unsafe { original(fd) }
}

pub(crate) unsafe fn epoll_create1(original: OnInt, flags: c_int) -> c_int {
    // SAFETY: the program's call.
    let epfd = unsafe { original(flags) };
    fds::closed(epfd);
    epfd
}

pub(crate) unsafe fn epoll_create(original: OnInt, size: c_int) -> c_int {
    // SAFETY: the program's call.
    let epfd = unsafe { original(size) };
    fds::closed(epfd);
    epfd
}

pub(crate) unsafe fn dup2(
    original: unsafe extern "C" fn(c_int, c_int) -> c_int,
    old: c_int,
    new: c_int,
) -> c_int {
    // SAFETY: the program's call.
    let result = unsafe { original(old, new) };
    replaced(old, result)
}

pub(crate) unsafe fn dup3(
    original: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int,
    old: c_int,
    new: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    let result = unsafe { original(old, new, flags) };
    replaced(old, result)
}

/// `new` was closed, if it was open, and is a copy of `old` now.
fn replaced(old: c_int, new: c_int) -> c_int {
    if old != new {
        fds::closed(new);
    }
    new
}

pub(crate) unsafe fn recv(original: Recv, fd: c_int, data: *mut c_void, len: usize, flags: c_int) -> isize {
    if let Some(runtime) = Runtime::in_handshake() {
        runtime.turn.last_read.set(fd);
        if let Some(handshake) = runtime.running() {
            handshake.reads_from(fd);
        }
    }
    // SAFETY: the program's call.
    unsafe { original(fd, data, len, flags) }
}
