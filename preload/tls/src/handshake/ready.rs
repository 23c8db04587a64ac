//! Handshakes that can go on, in the order in which they became ready.

use core::cell::Cell;
use core::ptr::null;

use crate::handshake::Handshake;
use crate::runtime::MAX_HANDSHAKES;

/// A ring with room for as many handshakes as can be suspended. A handshake is in it at most once; one that went on
/// another way leaves a hole.
pub(crate) struct ReadyRing {
    slots: Box<[Cell<*const Handshake>]>,
    head: Cell<usize>,
    len: Cell<usize>,
}

impl ReadyRing {
    pub(crate) fn new() -> Self {
        let slots = (0..MAX_HANDSHAKES).map(|_| Cell::new(null())).collect();
        Self { slots, head: Cell::new(0), len: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    pub(crate) fn push(&self, handshake: &Handshake) {
        debug_assert!(self.len.get() < MAX_HANDSHAKES, "more entries than handshakes");
        self.slots[(self.head.get() + self.len.get()) % MAX_HANDSHAKES].set(handshake);
        self.len.set(self.len.get() + 1);
    }

    pub(crate) fn clear(&self) {
        self.len.set(0);
    }

    /// Removes a handshake, wherever it is.
    pub(crate) fn forget(&self, handshake: &Handshake) {
        let kept = |entry: &Handshake| !core::ptr::eq(entry, handshake);
        self.retain(kept);
    }

    /// Visits every handshake once, in order, and keeps those for which `keep` returns true.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&Handshake) -> bool) {
        let (head, len) = (self.head.get(), self.len.get());
        let mut kept = 0;
        for i in 0..len {
            let entry = self.slots[(head + i) % MAX_HANDSHAKES].get();
            // SAFETY: entries are suspended handshakes of this runtime; only idle ones are unmapped.
            if keep(unsafe { &*entry }) {
                self.slots[(head + kept) % MAX_HANDSHAKES].set(entry);
                kept += 1;
            }
        }
        self.len.set(kept);
    }
}
