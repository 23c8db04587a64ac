//! The event loop is the clock of batching: before a thread sleeps, what its handshakes have queued runs.

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use hasten_guard::clock::now;
use libc::epoll_event;

use super::worker::Worker;

type Wait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;

static ORIGINAL: AtomicUsize = AtomicUsize::new(0);

/// # Safety
///
/// `original` is the address of `epoll_wait`.
pub(super) unsafe fn prepare(original: usize) {
    ORIGINAL.store(original, Ordering::Relaxed);
}

/// # Safety
///
/// As for epoll_wait(2).
pub(super) unsafe extern "C" fn wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: `prepare` comes before this is in a slot; the program's call, with another timeout.
    let original = |timeout| unsafe {
        let original: Wait = transmute(ORIGINAL.load(Ordering::Relaxed));
        original(epfd, events, max, timeout)
    };
    let Some(worker) = Worker::existing() else { return original(timeout) };
    if worker.current().is_some() {
        // A callback with an event loop of its own.
        return original(timeout);
    }
    worker.turn.begin();
    worker.keys.borrow_mut().sweep(now());
    let count = if worker.batch.has_waiting() { next(worker, timeout, original) } else { original(timeout) };
    worker.turn.events.set(count.max(0).unsigned_abs());
    count
}

/// The next events while operations are queued. Without any, the operations run, and their connections have the loop go on
/// at once: it looks for those after it has waited, so it must not wait.
fn next(worker: &Worker, timeout: c_int, original: impl Fn(c_int) -> c_int) -> c_int {
    let fresh = original(0);
    // A loop that does not want to sleep has work of its own, which may bring more operations, just as events may.
    if fresh != 0 || timeout == 0 {
        worker.batch.run_overdue(worker.turn.number.get());
        return fresh;
    }
    worker.batch.run_partial();
    0
}
