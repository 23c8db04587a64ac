//! Operations waiting for others of their kind.

use core::cell::Cell;
use core::ptr::null_mut;

use hasten_crypto::{Algorithm, LANES};
use hasten_guard::clock::now;

use crate::operation::Operation;

/// How many turns of the event loop an operation waits for others while every
/// turn brings the server something to do. A busy nginx accepts one connection
/// per turn, so a group of eight takes some eight turns of 150 to 300 µs; only
/// operations of a rare kind wait this long.
const PATIENCE: u32 = 24;
/// The same in nanoseconds, for a server whose turns are long because it does
/// much besides handshakes.
const PATIENCE_NS: u64 = 5_000_000;

/// An operation, as queues and devices refer to it.
pub(crate) type Waiting<W> = *mut Operation<W>;

pub(crate) struct Queues<W> {
    queues: [Queue<W>; Algorithm::COUNT],
    waiting: Cell<usize>,
}

pub(crate) struct Queue<W> {
    len: Cell<usize>,
    /// The turn, and the time, at which the first operation was queued.
    since: Cell<u32>,
    since_ns: Cell<u64>,
    operations: [Cell<Waiting<W>>; LANES],
}

impl<W> Queues<W> {
    pub(crate) fn new() -> Self {
        Self { queues: core::array::from_fn(|_| Queue::new()), waiting: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    pub(crate) fn of(&self, algorithm: Algorithm) -> &Queue<W> {
        &self.queues[algorithm.index()]
    }

    pub(crate) fn push(&self, algorithm: Algorithm, operation: Waiting<W>, turn: u32) {
        let queue = self.of(algorithm);
        if queue.len() == 0 {
            queue.since.set(turn);
            queue.since_ns.set(now());
        }
        queue.operations[queue.len()].set(operation);
        queue.len.set(queue.len() + 1);
        self.waiting.set(self.waiting.get() + 1);
    }

    /// Removes all of them.
    pub(crate) fn drain(&self, queue: &Queue<W>) -> Drained<W> {
        let len = queue.len.replace(0);
        self.waiting.set(self.waiting.get() - len);
        Drained { operations: queue.operations.each_ref().map(Cell::get), len }
    }

    /// Removes the latest.
    pub(crate) fn pop(&self, queue: &Queue<W>) {
        queue.len.set(queue.len() - 1);
        self.waiting.set(self.waiting.get() - 1);
    }

    /// Removes one, wherever it is; returns whether it was there.
    pub(crate) fn remove(&self, queue: &Queue<W>, operation: Waiting<W>) -> bool {
        let Some(at) = queue.operations().position(|queued| queued == operation) else { return false };
        queue.operations[at].set(queue.operations[queue.len() - 1].get());
        self.pop(queue);
        true
    }

    pub(crate) fn forget_all(&self) {
        self.queues.iter().for_each(|queue| queue.len.set(0));
        self.waiting.set(0);
    }

    pub(crate) fn occupied(&self) -> impl Iterator<Item = &Queue<W>> {
        self.queues.iter().filter(|queue| queue.len() > 0)
    }
}

impl<W> Queue<W> {
    fn new() -> Self {
        Self {
            len: Cell::new(0),
            since: Cell::new(0),
            since_ns: Cell::new(0),
            operations: [const { Cell::new(null_mut()) }; LANES],
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// The waiting operations, the oldest first.
    pub(crate) fn operations(&self) -> impl DoubleEndedIterator<Item = Waiting<W>> + ExactSizeIterator {
        self.operations[..self.len()].iter().map(Cell::get)
    }

    /// Whether the oldest has waited long enough for others.
    pub(crate) fn is_overdue(&self, turn: u32, time: u64) -> bool {
        turn.wrapping_sub(self.since.get()) >= PATIENCE
            || time.saturating_sub(self.since_ns.get()) >= PATIENCE_NS
    }
}

/// The former contents of a queue.
pub(crate) struct Drained<W> {
    operations: [Waiting<W>; LANES],
    len: usize,
}

impl<W> Drained<W> {
    pub(crate) fn operations(&self) -> &[Waiting<W>] {
        &self.operations[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Algorithm = Algorithm::P256Sign;

    fn operation(number: usize) -> Waiting<()> {
        core::ptr::without_provenance_mut(number * 16)
    }

    fn queued(queues: &Queues<()>) -> Vec<usize> {
        queues.of(KIND).operations().map(|operation| operation.addr() / 16).collect()
    }

    #[test]
    fn what_is_taken_out_leaves_the_others() {
        let queues = Queues::new();
        (1..=4).for_each(|number| queues.push(KIND, operation(number), 0));
        queues.push(Algorithm::P384Sign, operation(5), 0);
        assert!(queues.remove(queues.of(KIND), operation(2)));
        assert!(!queues.remove(queues.of(KIND), operation(5)), "it waits in another queue");
        assert_eq!((queued(&queues), queues.waiting()), (vec![1, 4, 3], 4));
        queues.pop(queues.of(KIND));
        assert_eq!(queues.drain(queues.of(KIND)).operations(), [operation(1), operation(4)]);
        assert_eq!((queues.waiting(), queues.occupied().count()), (1, 1));
        queues.forget_all();
        assert_eq!((queues.waiting(), queues.occupied().count()), (0, 0));
    }

    #[test]
    fn the_first_one_tells_how_long_a_queue_waits() {
        let queues = Queues::new();
        queues.push(KIND, operation(1), u32::MAX - 2);
        queues.push(KIND, operation(2), 20);
        let (queue, time) = (queues.of(KIND), now());
        assert!(!queue.is_overdue(PATIENCE - 4, time), "turns wrap");
        assert!(queue.is_overdue(PATIENCE - 3, time));
        assert!(queue.is_overdue(u32::MAX, time + PATIENCE_NS));
    }
}
