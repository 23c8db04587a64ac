//! Locks that must be free in a forked child.
//!
//! A lock that another thread holds during a fork stays held in the child, where that thread does not exist. So the
//! forking thread takes all of them first.

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

/// Call before a fork. No thread waits for one of these locks while it holds the other.
pub(crate) fn hold() {
    // A thread that is ending no longer has this storage, and forks without the locks.
    let _ = HELD.try_with(|held| held.set((lock(&ENDED), lock(&WRITER))));
}

/// The locks are normally held for a few microseconds. They are held longer only by this thread itself, if it forks in
/// a signal handler, perhaps to report a crash: it must not wait for ever.
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

/// Call after the fork, in parent and child. A lock that could not be taken stays with its holder.
pub(crate) fn release() {
    let _ = HELD.try_with(Cell::take);
}
