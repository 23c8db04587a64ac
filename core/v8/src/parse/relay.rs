//! Passes buffers from one thread to another, and back once they are empty.

use std::mem;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

/// How many buffers may wait, so that neither thread stalls at each hiccup of the other.
const WAITING: usize = 4;

/// Whether there is a CPU for another thread.
pub(super) fn is_worth_it() -> bool {
    thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

pub(super) fn relay<T>() -> (Giver<T>, Taker<T>) {
    let (full, to_take) = mpsc::sync_channel(WAITING);
    let (empty, to_fill) = mpsc::channel();
    (Giver { full, empty: to_fill }, Taker { full: to_take, empty })
}

pub(super) struct Giver<T> {
    full: SyncSender<T>,
    empty: Receiver<T>,
}

pub(super) struct Taker<T> {
    full: Receiver<T>,
    empty: Sender<T>,
}

impl<T: Default> Giver<T> {
    /// Sends the contents of `buffer`, and replaces it by a returned buffer or a new one.
    pub(super) fn give(&self, buffer: &mut T) {
        let empty = self.empty.try_recv().unwrap_or_default();
        // A panicked thread takes nothing, and joining it reports the panic.
        let _ = self.full.send(mem::replace(buffer, empty));
    }
}

impl<T> Taker<T> {
    /// `None` at the end.
    pub(super) fn take(&self) -> Option<T> {
        self.full.recv().ok()
    }

    pub(super) fn give_back(&self, empty: T) {
        // At the end nobody wants it.
        let _ = self.empty.send(empty);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let (giver, taker) = relay::<Vec<u32>>();
        let count = thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let mut next = 0;
                while let Some(mut buffer) = taker.take() {
                    assert_eq!(buffer, [next]);
                    next += 1;
                    buffer.clear();
                    taker.give_back(buffer);
                }
                next
            });
            let mut buffers = HashSet::new();
            let mut buffer = Vec::with_capacity(1);
            for n in 0..10_000 {
                buffer.push(n);
                buffers.insert(buffer.as_ptr());
                giver.give(&mut buffer);
                assert!(buffer.is_empty());
            }
            // One being filled, one being emptied, one on its way, and those that wait.
            assert!(buffers.len() <= WAITING + 3, "{}", buffers.len());
            drop(giver);
            worker.join()
        });
        assert_eq!(count.expect("no panic"), 10_000);
    }

    #[test]
    fn who_is_gone_is_not_waited_for() {
        let (giver, taker) = relay::<Vec<u8>>();
        drop(taker);
        for _ in 0..2 * WAITING {
            giver.give(&mut vec![1]);
        }
    }
}
