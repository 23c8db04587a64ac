//! Holds messages while the device carries their numbers. Each is taken once, by whoever comes first.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const PLACES: usize = 128;

/// Being written or read.
const BUSY: u64 = u64::MAX;
const EMPTY: u64 = 0;

pub(super) struct Table {
    places: [Place; PLACES],
    turn: AtomicU32,
}

struct Place {
    /// The number that identifies its message: the turn and the slot.
    number: AtomicU64,
    message: AtomicU64,
    since_ns: AtomicU64,
}

impl Table {
    pub(super) fn new() -> Self {
        let place = |_| Place {
            number: AtomicU64::new(EMPTY),
            message: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
        };
        Self { places: std::array::from_fn(place), turn: AtomicU32::new(0) }
    }

    /// Stores a message. `None` if every slot is taken.
    pub(super) fn put(&self, message: u64, now_ns: u64) -> Option<u64> {
        for (at, place) in self.places.iter().enumerate() {
            if place.number.compare_exchange(EMPTY, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            let turn = self.turn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            // Never 0 nor all ones: there are fewer slots than that.
            let number = u64::from(turn) << 32 | (at as u64 + 1);
            place.message.store(message, Ordering::Relaxed);
            place.since_ns.store(now_ns, Ordering::Relaxed);
            place.number.store(number, Ordering::Release);
            return Some(number);
        }
        None
    }

    /// The message with this number, for the first caller that asks.
    pub(super) fn take(&self, number: u64) -> Option<u64> {
        let place = self.place(number)?;
        if matches!(number, EMPTY | BUSY) {
            return None;
        }
        place.number.compare_exchange(number, BUSY, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let message = place.message.load(Ordering::Relaxed);
        place.number.store(EMPTY, Ordering::Release);
        Some(message)
    }

    pub(super) fn take_all(&self, taken: &mut dyn FnMut(u64)) {
        for place in &self.places {
            if let Some(message) = self.take(place.number.load(Ordering::Acquire)) {
                taken(message);
            }
        }
    }

    /// Whether a message with this number can have been sent.
    pub(super) fn knows(&self, number: u64) -> bool {
        let turn = (number >> 32) as u32;
        let last = self.turn.load(Ordering::Relaxed);
        self.place(number).is_some() && last.wrapping_sub(turn) < u32::MAX / 2
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        let waits = |place: &&Place| !matches!(place.number.load(Ordering::Acquire), EMPTY | BUSY);
        self.places.iter().filter(waits).map(|place| place.since_ns.load(Ordering::Relaxed)).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }

    fn place(&self, number: u64) -> Option<&Place> {
        self.places.get(((number & 0xffff_ffff) as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{PLACES, Table};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn what_is_put_down_is_taken_once() {
        let table = Table::new();
        let numbers: Vec<_> = (0..PLACES as u64).map(|message| table.put(message, 5).unwrap()).collect();
        assert_eq!((table.put(1, 5), table.oldest()), (None, Some(5)));
        for (message, number) in numbers.iter().enumerate() {
            assert_eq!(table.take(*number), Some(message as u64));
            assert_eq!(table.take(*number), None);
            assert!(table.knows(*number));
        }
        assert!(table.is_empty());
        assert!(!table.knows(0) && !table.knows(u64::MAX) && !table.knows(7 << 60 | 1));
    }

    #[test]
    fn two_who_take_at_once_do_not_both_get_it() {
        let table = Table::new();
        let taken = AtomicUsize::new(0);
        for message in 0..2_000 {
            let number = table.put(message, 0).unwrap();
            std::thread::scope(|scope| {
                let take =
                    || taken.fetch_add(usize::from(table.take(number) == Some(message)), Ordering::Relaxed);
                scope.spawn(take);
                take();
            });
        }
        assert_eq!(taken.into_inner(), 2_000);
    }
}
