//! Locks that a forked child finds free.
//!
//! A lock that another thread holds at that moment stays held in the child, where this thread does not exist. So whoever
//! forks takes them all first.

use core::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::keys::{Count, WRITER};
use crate::runtime::{ENDED, Ended};

type Held = (MutexGuard<'static, Ended>, MutexGuard<'static, Count>);

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Before a fork. No thread waits for one of these locks while it holds the other.
pub(crate) fn hold() {
    fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
    // A thread that is ending has no such place any more, and forks without.
    let _ = HELD.try_with(|held| held.set(Some((lock(&ENDED), lock(&WRITER)))));
}

/// After it, in parent and child.
pub(crate) fn release() {
    let _ = HELD.try_with(Cell::take);
}
