//! A connection whose handshake has something queued, or has an answer.

use core::cell::{Cell, RefCell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::rc::Rc;

use hasten_batch::{Buffers, Request, Verdict, Waker};
use hasten_telemetry::{Event, slot};

use super::boring::Transport;
use super::exchange::Exchange;
use super::keys::Key;

/// An operation, stored in the connection that waits for it.
pub(super) type Operation = hasten_batch::Operation<Owner>;

/// Connections are never freed: a queued operation refers to its own.
pub(super) struct Connection {
    transport: Cell<Option<Transport>>,
    state: Cell<State>,
    place: UnsafeCell<MaybeUninit<Operation>>,
    buffers: UnsafeCell<Buffers>,
    /// Calls by Envoy while the operation is queued.
    calls: Cell<u32>,
    pub(super) exchange: RefCell<Option<Exchange>>,
    pub(super) signing: RefCell<Option<Signing>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Queued,
    Answered,
}

/// A signature that is queued.
pub(super) struct Signing {
    pub(super) algorithm: u16,
    /// What is signed: for the original, if the engine has no answer.
    pub(super) message: Vec<u8>,
    /// The operation refers to it.
    pub(super) key: Rc<Key>,
}

/// The connection that waits for an operation.
#[derive(Clone, Copy)]
pub(super) struct Owner(&'static Connection);

impl Waker for Owner {
    fn wake(self) {
        self.0.answered();
    }
}

impl Connection {
    pub(super) fn make() -> &'static Self {
        Box::leak(Box::new(Self {
            transport: Cell::new(None),
            state: Cell::new(State::Idle),
            place: UnsafeCell::new(MaybeUninit::uninit()),
            buffers: UnsafeCell::new(Buffers::NEW),
            calls: Cell::new(0),
            exchange: RefCell::new(None),
            signing: RefCell::new(None),
        }))
    }

    pub(super) fn is_queued(&self) -> bool {
        self.state.get() == State::Queued
    }

    pub(super) fn is_answered(&self) -> bool {
        self.state.get() == State::Answered
    }

    /// Places a request where it can wait; it has to be submitted.
    ///
    /// # Safety
    ///
    /// Nothing is queued. What `request` refers to stays as long as that is, and `transport` is alive as long as this
    /// connection is in its worker's list.
    pub(super) unsafe fn place(&'static self, request: &Request<'_>, transport: Transport) -> *mut Operation {
        debug_assert!(!self.is_queued(), "one operation at a time");
        self.transport.set(Some(transport));
        self.state.set(State::Queued);
        self.calls.set(0);
        slot().event(Event::Suspended);
        // SAFETY: nothing is queued, so nothing else uses place and buffers. The buffers are this connection's, and what
        // else the operation refers to stays, as the contract says.
        unsafe {
            let operation = request.place(Owner(self), &mut *self.buffers.get());
            core::ptr::from_mut((*self.place.get()).write(operation))
        }
    }

    /// The operation that is queued.
    pub(super) fn operation(&self) -> *mut Operation {
        if self.is_queued() { self.place.get().cast() } else { null_mut() }
    }

    /// Counts a call while the operation is queued. After many, whoever calls may not be waiting for the event loop.
    pub(super) fn is_pressed(&self) -> bool {
        const PATIENT: u32 = 16;
        self.calls.set(self.calls.get() + 1);
        self.calls.get() > PATIENT
    }

    /// The operation has its answer.
    fn answered(&self) {
        self.becomes_answered();
        if let Some(transport) = self.transport.get() {
            // SAFETY: the connection is in its worker's list, so Envoy has not closed it.
            unsafe { transport.set_readable() };
        }
        slot().event(Event::SyntheticWakeups);
    }

    /// The same, without telling Envoy.
    pub(super) fn becomes_answered(&self) {
        self.state.set(State::Answered);
    }

    /// Takes the answer: the result is in `out`.
    pub(super) fn take(&self, out: &mut [u8]) -> Verdict {
        debug_assert!(self.is_answered(), "the operation is answered");
        self.state.set(State::Idle);
        slot().event(Event::Resumed);
        // SAFETY: the operation was placed, and is not queued any more, so nothing else uses it or the buffers.
        unsafe {
            let verdict = (*self.place.get()).assume_init_ref().verdict();
            (*self.buffers.get()).deliver(verdict, out)
        }
    }

    /// Forgets what it was used for; what was queued has been withdrawn.
    pub(super) fn reset(&self) {
        if self.state.replace(State::Idle) != State::Idle {
            // SAFETY: the operation is neither queued nor used any more.
            unsafe { (*self.buffers.get()).deliver(Verdict::Cancelled, &mut []) };
        }
        self.transport.set(None);
        self.exchange.replace(None);
        self.signing.replace(None);
    }
}
