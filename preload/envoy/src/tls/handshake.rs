//! The hooks in Envoy's handshakes: where one is continued, and where its connection ends.

use core::ffi::c_int;
use core::mem::transmute;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hasten_envoy_builds::SOCKET_CALLBACKS;
use hasten_telemetry::{Event, slot};

use super::boring::{BEFORE, CLOSE, COMPLETE, DoHandshake, Handshaker, KEEP_OPEN, WAITS_FOR_KEY};
use super::connection::Connection;
use super::sign;
use super::worker::Worker;
use crate::object::Object;

/// The originals.
pub(super) static DO_HANDSHAKE: AtomicUsize = AtomicUsize::new(0);
pub(super) static DO_HANDSHAKE_OF_BASE: AtomicUsize = AtomicUsize::new(0);
pub(super) static CLOSE_SOCKET: AtomicUsize = AtomicUsize::new(0);
pub(super) static DESTROY: AtomicUsize = AtomicUsize::new(0);
pub(super) static DELETE: AtomicUsize = AtomicUsize::new(0);

/// Where in a handshaker its second base begins.
static BASE: AtomicUsize = AtomicUsize::new(0);

pub(super) fn prepare(base: usize) {
    BASE.store(base, Relaxed);
}

/// # Safety
///
/// As for `SslHandshakerImpl::doHandshake`.
pub(super) unsafe extern "C" fn do_handshake(whole: NonNull<Object>) -> c_int {
    // SAFETY: the caller's promise; the original is stored before this is in a table.
    unsafe {
        drive(whole.byte_add(BASE.load(Relaxed)).cast(), || {
            let original: DoHandshake = transmute(DO_HANDSHAKE.load(Relaxed));
            original(whole)
        })
    }
}

/// # Safety
///
/// As for `Ssl::Handshaker::doHandshake`, of an `SslHandshakerImpl`.
pub(super) unsafe extern "C" fn do_handshake_of_base(base: NonNull<Object>) -> c_int {
    // SAFETY: as `do_handshake`.
    unsafe {
        drive(base.cast(), || {
            let original: DoHandshake = transmute(DO_HANDSHAKE_OF_BASE.load(Relaxed));
            original(base)
        })
    }
}

/// # Safety
///
/// As [`do_handshake`]; `original` calls the original.
unsafe fn drive(handshaker: NonNull<Handshaker>, original: impl FnOnce() -> c_int) -> c_int {
    let worker = Worker::get();
    // SAFETY: the caller's promise.
    unsafe {
        let socket = handshaker.as_ref().callbacks;
        match worker.find(socket) {
            Some(connection) if worker.is_still_queued(connection) => return KEEP_OPEN,
            Some(_) => {}
            None => {
                worker.turn.shook();
                if handshaker.as_ref().state == BEFORE && worker.prepare_exchange(handshaker) {
                    return KEEP_OPEN;
                }
            }
        }
        go_on(worker, handshaker, socket, original)
    }
}

/// # Safety
///
/// As [`do_handshake`]; nothing is queued for the connection.
unsafe fn go_on(
    worker: &Worker,
    handshaker: NonNull<Handshaker>,
    socket: NonNull<Object>,
    original: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller's promise. Connections are freed later than this returns.
    unsafe {
        let ssl = handshaker.as_ref().ssl;
        let had_begun = sign::has_credential(ssl);
        let action = worker.inside(handshaker, original);
        let connection = worker.find(socket);
        let waits = connection.is_some_and(Connection::is_queued);
        if waits && handshaker.as_ref().state == WAITS_FOR_KEY {
            // Otherwise Envoy would not read until somebody else continues the handshake.
            (*handshaker.as_ptr()).state = BEFORE;
        }
        let is_complete = handshaker.as_ref().state >= COMPLETE;
        if !had_begun && (is_complete || action == CLOSE || sign::has_credential(ssl)) {
            slot().event(Event::HandshakeStarted);
        }
        if is_complete {
            slot().event(Event::HandshakeFinished);
        } else if action == CLOSE {
            slot().event(Event::HandshakeFailed);
        }
        if let Some(connection) = connection.filter(|_| !waits) {
            worker.drop_exchange(connection);
            worker.release(socket);
        }
        action
    }
}

/// The connection of a socket is gone.
fn forget(socket: NonNull<Object>) {
    if let Some(worker) = Worker::existing() {
        // SAFETY: within an `SslSocket`.
        worker.release(unsafe { socket.byte_add(SOCKET_CALLBACKS) });
    }
}

type CloseSocket = unsafe extern "C" fn(NonNull<Object>, usize, usize, usize, usize, usize) -> usize;

/// Passes on every register that can have an argument: since 1.39 there is one behind the event, by which Envoy decides
/// whether the peer is told of the end. Releases without it do not look at what they get in its place.
///
/// # Safety
///
/// As for `SslSocket::closeSocket`.
pub(super) unsafe extern "C" fn close_socket(
    socket: NonNull<Object>,
    event: usize,
    is_reset: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> usize {
    forget(socket);
    // SAFETY: the caller's promise; the original is stored before this is in a table. Its arguments and its result are
    // words or less, so each is in the register in which it came here.
    unsafe {
        let original: CloseSocket = transmute(CLOSE_SOCKET.load(Relaxed));
        original(socket, event, is_reset, fourth, fifth, sixth)
    }
}

/// # Safety
///
/// As for the destructor of `SslSocket`.
pub(super) unsafe extern "C" fn destroy(socket: NonNull<Object>) {
    forget(socket);
    // SAFETY: as `close_socket`.
    unsafe {
        let original: unsafe extern "C" fn(NonNull<Object>) = transmute(DESTROY.load(Relaxed));
        original(socket);
    }
}

/// # Safety
///
/// As for the destructor of `SslSocket` that also frees it.
pub(super) unsafe extern "C" fn delete(socket: NonNull<Object>) {
    forget(socket);
    // SAFETY: as `close_socket`.
    unsafe {
        let original: unsafe extern "C" fn(NonNull<Object>) = transmute(DELETE.load(Relaxed));
        original(socket);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    thread_local! {
        static PASSED: Cell<[usize; 6]> = const { Cell::new([0; 6]) };
    }

    /// # Safety
    ///
    /// None: it looks at no memory.
    unsafe extern "C" fn original(
        socket: NonNull<Object>,
        event: usize,
        is_reset: usize,
        fourth: usize,
        fifth: usize,
        sixth: usize,
    ) -> usize {
        PASSED.set([socket.addr().get(), event, is_reset, fourth, fifth, sixth]);
        7
    }

    #[test]
    fn close_passes_on_every_register() {
        CLOSE_SOCKET.store(original as CloseSocket as usize, Relaxed);
        let socket = NonNull::<Object>::dangling();
        // SAFETY: this thread has no worker, so nobody looks into the socket, and the original does not either.
        let result = unsafe { close_socket(socket, 1, usize::MAX, 3, 4, 5) };
        assert_eq!((result, PASSED.get()), (7, [socket.addr().get(), 1, usize::MAX, 3, 4, 5]));
    }
}
