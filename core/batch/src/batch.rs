//! The operations of one thread: where they wait, what answers them, and whom they wake.
//!
//! Everything is in cells: a woken owner may submit its next operation at once, so no `&mut` may be held across a call.

use core::ptr::null_mut;

use hasten_crypto::LANES;
use hasten_guard::clock::now;

use crate::device::{self, Device};
use crate::engine::{Engine, Group8, Settings};
use crate::host::Host;
use crate::operation::{Operation, Waker};
use crate::queue::{Queue, Queues, Waiting};

/// Collects operations, and answers up to eight of a kind at once.
///
/// Nothing is answered spontaneously: there is no thread and no timer. The code that drives the connections says when
/// nothing else will come soon ([`run_partial`](Self::run_partial), [`run_overdue`](Self::run_overdue)).
pub struct Batch<W, H: Host> {
    pub(crate) queues: Queues<W>,
    pub engine: Engine<H>,
    pub device: Device<W>,
}

impl<W: Waker, H: Host> Batch<W, H> {
    #[must_use]
    pub fn new(settings: &Settings<H::Lanes>) -> Self {
        Self { queues: Queues::new(), engine: Engine::new(settings), device: Device::new() }
    }

    /// Whether operations are queued.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.queues.waiting() > 0
    }

    /// Whether anything could answer an operation better than the original function.
    pub fn can_answer(&self) -> bool {
        self.engine.can_batch() || self.device.is_here()
    }

    /// Whether an operation without others of its kind is worth waiting for, because a device would take it.
    pub fn takes_alone(&self) -> bool {
        self.device.takes_alone(|algorithm| self.engine.software_ns(algorithm, 1))
    }

    /// Queues an operation. `turn` numbers the turns of the caller's event loop, and may wrap.
    ///
    /// # Safety
    ///
    /// The operation, and everything it was [placed](crate::Request::place) with, stay where they are until its waker
    /// is called or it is withdrawn, and nothing else accesses it meanwhile. It waits in only one batch at a time.
    pub unsafe fn submit(&self, operation: *mut Operation<W>, turn: u32) {
        // SAFETY: as the contract says.
        let algorithm = unsafe { (*operation).algorithm() };
        self.queues.push(algorithm, operation, turn);
    }

    /// Answers the group of a waiting operation if it is complete, or hands it to a device. Returns whether the
    /// operation was answered; its waker is not called then, as its owner is the caller.
    ///
    /// # Safety
    ///
    /// The operation waits in this batch.
    pub unsafe fn run_if_complete(&self, operation: *mut Operation<W>) -> bool {
        // SAFETY: as the contract says.
        let queue = unsafe { self.queue_of(operation) };
        if device::is_requested() {
            self.offer(queue);
        }
        let is_complete = queue.len() == LANES;
        if is_complete {
            self.run_queue(queue, operation);
        }
        is_complete
    }

    /// Answers a waiting operation: together with its queue, or alone if it is at a device.
    ///
    /// # Safety
    ///
    /// The operation waits in this batch.
    pub unsafe fn run(&self, operation: *mut Operation<W>) {
        if !self.recall(operation) {
            // SAFETY: the contract.
            self.run_queue(unsafe { self.queue_of(operation) }, null_mut());
        }
    }

    /// Answers all queued operations, in lanes or not: nothing else will come soon.
    pub fn run_partial(&self) {
        self.queues.occupied().for_each(|queue| self.run_queue(queue, null_mut()));
    }

    /// Answers operations that have waited long enough for others of their kind.
    pub fn run_overdue(&self, turn: u32) {
        let time = now();
        let overdue = self.queues.occupied().filter(|queue| queue.is_overdue(turn, time));
        overdue.for_each(|queue| self.run_queue(queue, null_mut()));
    }

    /// Takes an operation back, unanswered.
    ///
    /// # Safety
    ///
    /// The operation waits in this batch.
    pub unsafe fn withdraw(&self, operation: *mut Operation<W>) {
        // SAFETY: as the contract says.
        let queue = unsafe { self.queue_of(operation) };
        if !self.queues.remove(queue, operation) {
            self.device.forget(operation);
        }
    }

    /// For a forked child: waiting operations belong to the parent.
    pub fn forget_all(&self) {
        self.queues.forget_all();
    }

    /// # Safety
    ///
    /// The operation waits in this batch.
    unsafe fn queue_of(&self, operation: Waiting<W>) -> &Queue<W> {
        // SAFETY: as the contract says.
        self.queues.of(unsafe { (*operation).algorithm() })
    }

    /// Answers the operations of a queue, and wakes all their owners but the caller.
    fn run_queue(&self, queue: &Queue<W>, callers: Waiting<W>) {
        let drained = self.queues.drain(queue);
        let operations = drained.operations();
        // SAFETY: the submitter leaves an operation alone until it is answered, and each is queued once.
        let mut group = operations.iter().map(|&operation| unsafe { &mut *operation });
        let group: Group8<'_, W> = core::array::from_fn(|_| group.next());
        self.engine.answer(group);
        for &operation in operations.iter().filter(|&&operation| operation != callers) {
            self.wake(operation);
        }
    }

    /// Wakes the owner of an operation.
    pub(crate) fn wake(&self, operation: Waiting<W>) {
        // SAFETY: it was answered just now, and its owner has not been woken yet.
        let waker = unsafe { (*operation).waker };
        waker.wake();
    }
}
