//! Measures how long engines are at work.

use std::cell::Cell;

use hasten_guard::clock::now;

use crate::pages;

/// Below this many bytes, two clock readings cost a percent of the work.
const SHORT: usize = 4096;

/// One in this many short chunks is timed, and stands for the others.
const EVERY: u8 = 16;

/// Runs while an engine does.
#[derive(Debug)]
pub(crate) struct Watch {
    started: Option<u64>,
    weight: u64,
}

impl Watch {
    /// `length` is that of the engine's input.
    pub(crate) fn start(length: usize) -> Self {
        thread_local! {
            static SHORT_ONES: Cell<u8> = const { Cell::new(0) };
        }
        // The program may have forbidden the clock's system call too.
        if pages::is_sealed() {
            return Self { started: None, weight: 1 };
        }
        if length >= SHORT {
            return Self { started: Some(now()), weight: 1 };
        }
        let count = SHORT_ONES.get();
        SHORT_ONES.set((count + 1) % EVERY);
        Self { started: (count == 0).then(now), weight: EVERY.into() }
    }

    pub(crate) fn ns(&self) -> u64 {
        let elapsed = self.started.map(|started| now().saturating_sub(started)).unwrap_or_default();
        elapsed.saturating_mul(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_short_chunks_one_in_sixteen_stands_for_all() {
        let timed = (0..EVERY).filter(|_| Watch::start(SHORT - 1).started.is_some()).count();
        assert_eq!(timed, 1);
        assert!((0..EVERY).all(|_| Watch::start(SHORT).started.is_some()));
        let watch = Watch { started: Some(now()), weight: 16 };
        while watch.ns() == 0 {}
        assert_eq!(watch.ns() % 16, 0);
        assert_eq!(Watch { started: None, weight: 16 }.ns(), 0);
    }
}
