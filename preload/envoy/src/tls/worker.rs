//! The handshakes of one of Envoy's threads.
//!
//! All state is in cells: a handshake calls back into the hooks, and an answered operation wakes a connection, so no `&mut`
//! may be held across a call.

use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use hasten_batch::{Request, Verdict};
use hasten_crypto::Curve;
use hasten_telemetry::{Event, Reason, slot};

use super::boring::{Handshaker, PrivateKey, Ssl, Transport};
use super::connection::Connection;
use super::exchange::Forecast;
use super::host::Kernel;
use super::keys::{Key, Keys};
use super::start::{config, register};
use crate::object::Object;

pub(super) type Batch = hasten_batch::Batch<super::connection::Owner, Kernel>;

/// The number of connections of a thread that may wait at once, at some 2 KB each; beyond that, operations run at once.
const MOST: usize = 1024;

pub(super) struct Worker {
    pub(super) batch: Batch,
    pub(super) turn: Turn,
    pub(super) keys: RefCell<Keys>,
    pub(super) forecast: Forecast,
    /// The handshake whose function runs.
    current: Cell<Option<NonNull<Handshaker>>>,
    /// Connections that have something queued, or an answer, by their sockets.
    connections: RefCell<HashMap<NonNull<Object>, &'static Connection, BuildHasherDefault<ByAddress>>>,
    free: RefCell<Vec<&'static Connection>>,
}

/// Hashes addresses that the program's allocator chose.
#[derive(Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29);
    }
}

/// What the event loop of the thread is doing.
#[derive(Default)]
pub(super) struct Turn {
    /// Turns since this thread's first handshake; wraps.
    pub(super) number: Cell<u32>,
    /// Events in this turn.
    pub(super) events: Cell<u32>,
    /// Handshakes that began to need something in this turn, and in the one before.
    pub(super) handshakes: Cell<u32>,
    pub(super) previous: Cell<u32>,
}

thread_local! {
    static WORKER: Cell<Option<&'static Worker>> = const { Cell::new(None) };
}

impl Worker {
    /// The worker of this thread, if it has done a handshake.
    #[inline]
    pub(super) fn existing() -> Option<&'static Self> {
        WORKER.get()
    }

    /// The worker of this thread.
    #[inline]
    pub(super) fn get() -> &'static Self {
        WORKER.get().unwrap_or_else(Self::make)
    }

    /// Envoy's threads end with the process.
    #[cold]
    fn make() -> &'static Self {
        register();
        let worker = Box::leak(Box::new(Self {
            batch: Batch::new(&config().engine),
            turn: Turn::default(),
            keys: RefCell::default(),
            forecast: Forecast::default(),
            current: Cell::new(None),
            connections: RefCell::default(),
            free: RefCell::default(),
        }));
        WORKER.set(Some(worker));
        worker
    }

    /// The handshake whose function runs on this thread.
    pub(super) fn current(&self) -> Option<NonNull<Handshaker>> {
        self.current.get()
    }

    /// The same, if it is that of `ssl`.
    ///
    /// # Safety
    ///
    /// Called from within a handshake's function, if any runs.
    pub(super) unsafe fn current_of(&self, ssl: *mut Ssl) -> Option<NonNull<Handshaker>> {
        // SAFETY: a handshaker lives as long as its function runs.
        self.current.get().filter(|handshaker| core::ptr::eq(unsafe { handshaker.as_ref() }.ssl, ssl))
    }

    /// Runs a handshake's function.
    pub(super) fn inside<R>(&self, handshaker: NonNull<Handshaker>, body: impl FnOnce() -> R) -> R {
        let outer = self.current.replace(Some(handshaker));
        let result = body();
        self.current.set(outer);
        result
    }

    /// The connection of a socket, if it is in the list.
    pub(super) fn find(&self, socket: NonNull<Object>) -> Option<&'static Connection> {
        self.connections.borrow().get(&socket).copied()
    }

    /// The same; if it is not in the list, it is added, unless too many are.
    pub(super) fn obtain(&self, socket: NonNull<Object>) -> Option<&'static Connection> {
        let known = self.find(socket);
        if known.is_some() {
            return known;
        }
        let mut connections = self.connections.borrow_mut();
        if connections.len() == MOST {
            slot().bypass(Reason::NoStack);
            return None;
        }
        let connection = self.free.borrow_mut().pop().unwrap_or_else(Connection::make);
        connections.insert(socket, connection);
        Some(connection)
    }

    /// Removes the connection of a socket from the list, and what it has queued.
    pub(super) fn release(&self, socket: NonNull<Object>) {
        let Some(connection) = self.connections.borrow_mut().remove(&socket) else { return };
        if connection.is_queued() {
            // SAFETY: it is queued in this batch.
            unsafe { self.batch.withdraw(connection.operation()) };
            slot().event(Event::Cancelled);
            slot().bypass(Reason::Cancelled);
        }
        connection.reset();
        self.free.borrow_mut().push(connection);
    }

    /// How a connection would be called again, if its handshake can wait, and a batch is likely enough.
    ///
    /// # Safety
    ///
    /// `handshaker` is alive, and this is its thread.
    pub(super) unsafe fn may_wait(&self, handshaker: NonNull<Handshaker>) -> Option<Transport> {
        if !self.batch.can_answer() || !self.expects_company() {
            return None;
        }
        // SAFETY: as the contract says.
        let transport = unsafe { Transport::of(handshaker.as_ptr()).filter(|transport| transport.reads()) };
        if transport.is_none() || !self.turn.is_seen() {
            slot().bypass(Reason::NotPolled);
            return None;
        }
        transport
    }

    /// Whether an engine signs with this key for one connection, as far as is known before it is used: its first signature tells.
    pub(super) fn may_sign(&self, key: NonNull<PrivateKey>) -> bool {
        let engine = &self.batch.engine;
        match self.keys.borrow().last(key) {
            Some(Key::Rsa(_)) => engine.has_rsa(),
            Some(Key::Ec(key)) => is_signed_alone(key.curve()) && engine.can_sign().is_ok(),
            Some(Key::Refused(_)) => false,
            None => engine.has_rsa() || engine.can_sign().is_ok(),
        }
    }

    fn expects_company(&self) -> bool {
        let Turn { events, handshakes, previous, .. } = &self.turn;
        handshakes.get() > 1
            || events.get() > 1
            || previous.get() > 1
            || self.batch.has_waiting()
            || config().eager
    }

    /// Queues a request of a connection. Returns whether it was answered at once.
    ///
    /// # Safety
    ///
    /// As [`Connection::place`].
    pub(super) unsafe fn submit(
        &self,
        connection: &'static Connection,
        request: &Request<'_>,
        transport: Transport,
    ) -> bool {
        // SAFETY: as the contract says; `release` withdraws it before the connection goes.
        unsafe {
            let operation = connection.place(request, transport);
            self.batch.submit(operation, self.turn.number.get());
            let is_answered = self.batch.run_if_complete(operation);
            if is_answered {
                connection.becomes_answered();
            }
            is_answered
        }
    }

    /// Whether a connection that Envoy calls again still has to wait.
    pub(super) fn is_still_queued(&self, connection: &Connection) -> bool {
        if connection.is_queued() && connection.is_pressed() {
            // SAFETY: it is queued in this batch.
            unsafe { self.batch.run(connection.operation()) };
        }
        if connection.is_answered() && connection.signing.borrow().is_none() {
            self.finish_exchange(connection);
        }
        connection.is_queued()
    }
}

impl Turn {
    /// The event loop has handled all events, and asks for more.
    pub(super) fn begin(&self) {
        self.number.set(self.number.get().wrapping_add(1));
        self.previous.set(self.handshakes.replace(0));
    }

    /// Whether the event loop of the thread asks for events where it is seen.
    fn is_seen(&self) -> bool {
        self.number.get() > 0
    }

    pub(super) fn shook(&self) {
        self.handshakes.set(self.handshakes.get() + 1);
    }
}

/// Whether an engine signs with keys of this curve for one connection. BoringSSL is as fast with those of the other.
pub(super) const fn is_signed_alone(curve: Curve) -> bool {
    matches!(curve, Curve::P384)
}

/// Whether the original has to do the work.
pub(super) fn is_refused(verdict: Verdict) -> bool {
    if let Verdict::Bypass(reason) = verdict {
        slot().bypass(reason);
    }
    !matches!(verdict, Verdict::Done | Verdict::DoneWith(_))
}
