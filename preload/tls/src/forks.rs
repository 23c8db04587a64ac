//! Locks that a forked child finds free.
//!
//! A lock that another thread holds at that moment stays held in the child, where this thread does not exist. So whoever
//! forks takes them all first.

use core::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use crate::openssl::keys::{Count, WRITER};
use crate::runtime::{ENDED, Ended};

type Held = (Option<MutexGuard<'static, Ended>>, Option<MutexGuard<'static, Count>>);

thread_local! {
    static HELD: Cell<Held> = const { Cell::new((None, None)) };
}

/// Before a fork. No thread waits for one of these locks while it holds the other.
pub(crate) fn hold() {
    // A thread that is ending has no such place any more, and forks without.
    let _ = HELD.try_with(|held| held.set((lock(&ENDED), lock(&WRITER))));
}

/// They are held for some microseconds. Longer only by this thread itself, which then forks in a signal handler, to report
/// a crash perhaps: it must not wait for ever.
fn lock<T>(mutex: &'static Mutex<T>) -> Option<MutexGuard<'static, T>> {
    const TRIES: u32 = 1000;
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(10)),
        }
    }
    None
}

/// After it, in parent and child. A lock that could not be had stays whose it is.
pub(crate) fn release() {
    let _ = HELD.try_with(Cell::take);
}
