//! Locks: a thread may wait for one whose holder waits for a handshake of this thread.
//!
//! Most locks are held for less than a microsecond, and an allocator's lock may be requested in the middle of an
//! allocation, where libssl, which allocates, cannot run. So handshakes are called in only after the lock has been held
//! for a long time, over many separate waits: if the machine stalls, only one of them expires, not all.

use core::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use hasten_guard::clock::now;
use hasten_hook::{Library, Original, c_name};
use libc::timespec;
use rustix::time::{ClockId, clock_gettime};

use super::blocking;
use crate::runtime::{Runtime, SUSPENDED};

type Lock = unsafe extern "C" fn(*mut c_void) -> c_int;
type TimedLock = unsafe extern "C" fn(*mut c_void, *const timespec) -> c_int;

macro_rules! timed {
    ($($constant:ident = $name:ident;)*) => {
        $(static $constant: Original<TimedLock> =
            // SAFETY: the prototype under which the C library documents it.
            unsafe { Original::new(Library::C, c_name!($name)) };)*

        /// Looks up the functions needed while waiting for a lock, where no lookup is allowed.
        pub(crate) fn init() {
            $(let _ = $constant.find();)*
            let _ = SPIN.find();
        }
    };
}

timed! {
    MUTEX = pthread_mutex_timedlock;
    C_MUTEX = mtx_timedlock;
    SHARED = pthread_rwlock_timedrdlock;
    EXCLUSIVE = pthread_rwlock_timedwrlock;
}

/// Takes a spinlock if it is free.
static SPIN: Original<Lock> =
    // SAFETY: the prototype under which the C library documents it.
    unsafe { Original::new(Library::C, c"pthread_spin_trylock") };

/// A spinning thread does not sleep; reading the clock is cheap next to that.
///
/// # Safety
///
/// As for `pthread_spin_lock`: `lock` is an initialised spinlock, and stays so until this returns.
pub(crate) unsafe fn spin(original: Lock, lock: *mut c_void) -> c_int {
    if SUSPENDED.load(Relaxed) > 0
        && has_suspended()
        && let Some(try_lock) = SPIN.found()
    {
        let start = now();
        while now() - start < u64::from(WAITS) * WAIT_NS as u64 {
            // SAFETY: the program's lock.
            if unsafe { try_lock(lock) } == 0 {
                return 0;
            }
            core::hint::spin_loop();
        }
        blocking::before_blocking();
    }
    // SAFETY: the program's call.
    unsafe { original(lock) }
}

const WAITS: u32 = 20;
const WAIT_NS: i64 = 10_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// What `mtx_timedlock` returns when time is up; the others return ETIMEDOUT.
const THRD_TIMEDOUT: c_int = 4;

/// # Safety
///
/// As for `pthread_mutex_lock`: `lock` is an initialised `pthread_mutex_t`, and stays so until this returns.
pub(crate) unsafe fn mutex(original: Lock, lock: *mut c_void) -> c_int {
    // SAFETY: the program's call.
    unsafe { take(original, &MUTEX, libc::ETIMEDOUT, lock) }
}

/// # Safety
///
/// As for `mtx_lock`: `lock` is an initialised `mtx_t`, and stays so until this returns.
pub(crate) unsafe fn c_mutex(original: Lock, lock: *mut c_void) -> c_int {
    // SAFETY: the program's call.
    unsafe { take(original, &C_MUTEX, THRD_TIMEDOUT, lock) }
}

/// # Safety
///
/// As for `pthread_rwlock_rdlock`: `lock` is an initialised `pthread_rwlock_t`, and stays so until this returns.
pub(crate) unsafe fn shared(original: Lock, lock: *mut c_void) -> c_int {
    // SAFETY: the program's call.
    unsafe { take(original, &SHARED, libc::ETIMEDOUT, lock) }
}

/// # Safety
///
/// As for `pthread_rwlock_wrlock`: `lock` is an initialised `pthread_rwlock_t`, and stays so until this returns.
pub(crate) unsafe fn exclusive(original: Lock, lock: *mut c_void) -> c_int {
    // SAFETY: the program's call.
    unsafe { take(original, &EXCLUSIVE, libc::ETIMEDOUT, lock) }
}

/// Takes the lock. A timed wait has every result that an untimed one has, and one more.
///
/// # Safety
///
/// `original` and `timed` take locks of one kind; `lock` is an initialised lock of that kind, and stays so until this
/// returns. `expired` is what `timed` returns when time is up.
#[inline]
unsafe fn take(original: Lock, timed: &Original<TimedLock>, expired: c_int, lock: *mut c_void) -> c_int {
    if SUSPENDED.load(Relaxed) > 0
        && has_suspended()
        && let Some(timed) = timed.found()
    {
        // SAFETY: the program's lock.
        return unsafe { take_or_call_in(original, timed, expired, lock) };
    }
    // SAFETY: the program's call.
    unsafe { original(lock) }
}

fn has_suspended() -> bool {
    Runtime::existing().is_some_and(|runtime| runtime.has_suspended() && !runtime.is_inside())
}

/// # Safety
///
/// As [`take`].
#[cold]
unsafe fn take_or_call_in(original: Lock, timed: TimedLock, expired: c_int, lock: *mut c_void) -> c_int {
    for _ in 0..WAITS {
        let end = after(WAIT_NS);
        // SAFETY: the program's lock, and a time in a local variable.
        let result = unsafe { timed(lock, &raw const end) };
        if result != expired {
            return result;
        }
    }
    blocking::before_blocking();
    // SAFETY: the program's call.
    unsafe { original(lock) }
}

/// A short time from now, by the time of day that these functions use.
///
/// The kernel decides by its own clock. A preloaded library that wraps `clock_gettime` may report another time, and may
/// take a lock to do so, which would recurse into this code for ever.
fn after(pause_ns: i64) -> timespec {
    let time = clock_gettime(ClockId::Realtime);
    let ns = time.tv_nsec + pause_ns;
    timespec { tv_sec: time.tv_sec + ns / SECOND_NS, tv_nsec: ns % SECOND_NS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_later_is_a_valid_time() {
        for pause in [0, WAIT_NS, SECOND_NS - 1] {
            let (now, later) = (after(0), after(pause));
            assert!((0..SECOND_NS).contains(&later.tv_nsec));
            assert!((later.tv_sec, later.tv_nsec) >= (now.tv_sec, now.tv_nsec));
        }
    }
}
