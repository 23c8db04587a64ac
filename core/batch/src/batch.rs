//! The operations of one thread: where they wait, who answers them, and who is told.
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

/// Gathers operations, and answers up to eight of a kind at once.
///
/// Nothing is answered by itself: there is no thread and no timer. Whoever drives the connections says when nothing else
/// will come soon ([`run_partial`](Self::run_partial), [`run_overdue`](Self::run_overdue)).
pub struct Batch<W, H> {
    pub(crate) queues: Queues<W>,
    pub engine: Engine<H>,
    pub device: Device<W>,
}

impl<W: Waker, H: Host> Batch<W, H> {
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { queues: Queues::new(), engine: Engine::new(settings), device: Device::new() }
    }

    /// Whether operations are queued.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.queues.waiting() > 0
    }

    /// Whether there is anything that could answer an operation better than the original function.
    pub fn can_answer(&self) -> bool {
        self.engine.can_batch() || self.device.is_here()
    }

    /// Whether an operation that finds no company is worth waiting for, as a device takes it.
    pub fn takes_alone(&self) -> bool {
        self.device.takes_alone(|algorithm| self.engine.software_ns(algorithm, 1))
    }

    /// Queues an operation. `turn` numbers the turns of the caller's event loop, and may wrap.
    ///
    /// # Safety
    ///
    /// The operation, and what it was [placed](crate::Request::place) with, stay where they are until its waker is called
    /// or it is withdrawn, and nobody else looks at it meanwhile. It waits in one batch at a time.
    pub unsafe fn submit(&self, operation: *mut Operation<W>, turn: u32) {
        // SAFETY: the contract.
        let algorithm = unsafe { (*operation).algorithm() };
        self.queues.push(algorithm, operation, turn);
    }

    /// Answers the group of a waiting operation if that is complete, or hands it to a device. Returns whether the operation
    /// was answered; its waker is not called then, as its owner is the caller.
    ///
    /// # Safety
    ///
    /// The operation waits in this batch.
    pub unsafe fn run_if_complete(&self, operation: *mut Operation<W>) -> bool {
        // SAFETY: the contract.
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

    /// Answers a waiting operation: with its queue, or alone if it is at a device.
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

    /// Answers what is queued, lanes or not: nothing else will come soon.
    pub fn run_partial(&self) {
        self.queues.occupied().for_each(|queue| self.run_queue(queue, null_mut()));
    }

    /// Answers what has waited for company long enough.
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
        // SAFETY: the contract.
        let queue = unsafe { self.queue_of(operation) };
        if !self.queues.remove(queue, operation) {
            self.device.forget(operation);
        }
    }

    /// In a forked child, what waits is the parent's.
    pub fn forget_all(&self) {
        self.queues.forget_all();
    }

    /// # Safety
    ///
    /// The operation waits in this batch.
    unsafe fn queue_of(&self, operation: Waiting<W>) -> &Queue<W> {
        // SAFETY: the contract.
        self.queues.of(unsafe { (*operation).algorithm() })
    }

    /// Answers the operations of a queue, and wakes their owners but the caller.
    fn run_queue(&self, queue: &Queue<W>, callers: Waiting<W>) {
        let drained = self.queues.drain(queue);
        let operations = drained.operations();
        // SAFETY: who submits an operation leaves it alone until it is answered, and each is queued once.
        let mut group = operations.iter().map(|&operation| unsafe { &mut *operation });
        let group: Group8<'_, W> = core::array::from_fn(|_| group.next());
        self.engine.answer(group);
        for &operation in operations.iter().filter(|&&operation| operation != callers) {
            self.wake(operation);
        }
    }

    /// Its owner can go on.
    pub(crate) fn wake(&self, operation: Waiting<W>) {
        // SAFETY: it was answered just now, and its owner has not been told.
        let waker = unsafe { (*operation).waker };
        waker.wake();
    }
}
