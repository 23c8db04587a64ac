//! What a crowd has needed goes back to the kernel when it is over.
//!
//! A stack keeps the pages that its handshakes have touched, some 20 KiB, so
//! a thousand handshakes at once would cost a server 20 MiB for the rest of
//! its life. Stacks are kept for as many handshakes as were suspended at once
//! in the last seconds; those beyond are unmapped, a few in each turn of the
//! event loop, or all of them when the server has slept for a second.

use core::cell::Cell;
use std::sync::atomic::Ordering;

use super::{Runtime, STACKS};
use crate::clock::now;

/// So few are not worth a system call.
const KEPT: usize = 32;

/// Stacks to unmap in one turn: some 50 µs.
const PER_TURN: usize = 16;

const PERIOD_NS: u64 = 1_000_000_000;

/// How many stacks were in use at once: the most of this period, and of the one before.
pub(super) struct Demand {
    present: Cell<usize>,
    previous: Cell<usize>,
    since: Cell<u64>,
}

impl Demand {
    pub(super) const fn new() -> Self {
        Self { present: Cell::new(0), previous: Cell::new(0), since: Cell::new(0) }
    }

    #[inline]
    pub(super) fn note(&self, used: usize) {
        if used > self.present.get() {
            self.present.set(used);
        }
    }

    fn lately(&self, used: usize, time: u64) -> usize {
        if time - self.since.get() >= PERIOD_NS {
            self.since.set(time);
            self.previous.set(self.present.replace(used));
        }
        self.present.get().max(self.previous.get())
    }
}

impl Runtime {
    /// Whether there are more idle stacks than are kept in any case.
    #[inline]
    pub(crate) fn has_surplus(&self) -> bool {
        self.idle.get() > KEPT
    }

    /// Unmaps some of the stacks that were not needed lately.
    #[cold]
    pub(crate) fn shed(&self) {
        let mapped = self.mapped.get();
        let needed = self.demand.lately(mapped - self.idle.get(), now()).max(KEPT);
        self.unmap(mapped.saturating_sub(needed).min(PER_TURN));
    }

    /// Unmaps all idle stacks but a few.
    #[cold]
    pub(crate) fn shed_all(&self) {
        self.unmap(self.idle.get().saturating_sub(KEPT));
    }

    /// Unmaps as many idle stacks, or all there are.
    pub(super) fn unmap(&self, count: usize) {
        for _ in 0..count {
            let Some(handshake) = self.take_idle() else { return };
            let stack = handshake.stack;
            self.mapped.set(self.mapped.get() - 1);
            STACKS.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: the handshake was idle: no SSL, queue, ring or device knows it, its coroutine waits in `serve`
            // with nothing to drop, and it is on no list any more. We are not on its stack, which runs no idle one.
            unsafe { stack.unmap() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = PERIOD_NS;

    #[test]
    fn a_crowd_is_remembered_for_a_period_and_the_next() {
        let demand = Demand::new();
        assert_eq!(demand.lately(0, 10 * SECOND), 0);
        demand.note(500);
        demand.note(40);
        assert_eq!(demand.lately(40, 10 * SECOND + 1), 500, "it was just now");
        assert_eq!(demand.lately(40, 11 * SECOND), 500, "and in the period before");
        assert_eq!(demand.lately(40, 12 * SECOND - 1), 500);
        assert_eq!(demand.lately(40, 12 * SECOND), 40, "not any more");
    }

    #[test]
    fn what_is_in_use_all_the_time_is_needed() {
        let demand = Demand::new();
        for second in 10..20 {
            assert_eq!(demand.lately(300, second * SECOND), 300);
        }
    }
}
