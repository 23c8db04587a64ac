//! Operations at the device, by the tickets under which it knows them.

use core::cell::Cell;
use core::ptr::null_mut;

use crate::queue::Waiting;

/// The most operations at the device at once, for one thread.
pub(crate) const MOST: usize = 64;

/// The device works on copies, so an operation can be taken back at any time: from then on its ticket means nothing,
/// whether or not an answer comes.
pub(crate) struct Flights<W> {
    entries: [Entry<W>; MOST],
    count: Cell<usize>,
}

struct Entry<W> {
    operation: Cell<Waiting<W>>,
    /// Distinguishes the operations that have had this entry.
    generation: Cell<u32>,
}

impl<W> Flights<W> {
    pub(crate) fn new() -> Self {
        let entry = || Entry { operation: Cell::new(null_mut()), generation: Cell::new(0) };
        Self { entries: core::array::from_fn(|_| entry()), count: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// Records an operation; `None` if there are too many.
    pub(crate) fn begin(&self, operation: Waiting<W>) -> Option<u64> {
        let at = self.entries.iter().position(|entry| entry.operation.get().is_null())?;
        let entry = &self.entries[at];
        entry.operation.set(operation);
        entry.generation.set(entry.generation.get().wrapping_add(1));
        self.count.set(self.count.get() + 1);
        Some(u64::from(entry.generation.get()) << 8 | at as u64)
    }

    /// The operation with this ticket, which is no longer at the device.
    pub(crate) fn end(&self, ticket: u64) -> Option<Waiting<W>> {
        let entry = self.entries.get((ticket & 0xff) as usize)?;
        if u64::from(entry.generation.get()) != ticket >> 8 {
            return None;
        }
        self.take(entry)
    }

    /// Takes an operation back; returns whether it was there.
    pub(crate) fn forget(&self, operation: Waiting<W>) -> bool {
        let is_it = |entry: &&Entry<W>| entry.operation.get() == operation;
        !operation.is_null() && self.entries.iter().find(is_it).and_then(|entry| self.take(entry)).is_some()
    }

    /// Takes back any one of them.
    pub(crate) fn pop(&self) -> Option<Waiting<W>> {
        self.entries.iter().find_map(|entry| self.take(entry))
    }

    fn take(&self, entry: &Entry<W>) -> Option<Waiting<W>> {
        let operation = entry.operation.replace(null_mut());
        if operation.is_null() {
            return None;
        }
        self.count.set(self.count.get() - 1);
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(number: usize) -> Waiting<()> {
        core::ptr::without_provenance_mut(number * 16)
    }

    #[test]
    fn an_answer_finds_its_operation_once() {
        let flights = Flights::new();
        let tickets: Vec<_> = (1..=MOST).map(|number| flights.begin(operation(number)).unwrap()).collect();
        assert_eq!((flights.count(), flights.begin(operation(99))), (MOST, None));
        for (at, ticket) in tickets.iter().enumerate().rev() {
            assert_eq!(flights.end(*ticket), Some(operation(at + 1)));
            assert_eq!(flights.end(*ticket), None);
        }
        assert_eq!((flights.count(), flights.pop()), (0, None));
    }

    #[test]
    fn an_answer_for_one_that_was_taken_back_is_nobodys() {
        let flights = Flights::new();
        let late = flights.begin(operation(1)).unwrap();
        assert!(flights.forget(operation(1)));
        assert!(!flights.forget(operation(1)) && !flights.forget(null_mut()));
        // The entry belongs to another by now.
        let next = flights.begin(operation(2)).unwrap();
        assert_eq!((flights.end(late), flights.count()), (None, 1));
        assert_eq!(flights.end(next), Some(operation(2)));
        for odd in [u64::MAX, MOST as u64, 0] {
            assert_eq!(flights.end(odd), None);
        }
    }
}
