//! How much of its stack a thread has left.
//!
//! zlib needs two kilobytes. A thread whose stack was sized for that has no room for an engine, ISA-L least of all.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::pages;

/// With less than this left, no engine is called. ISA-L takes 17 KiB.
const ENOUGH: usize = 32 << 10;

/// Whether an engine fits on the rest of the stack. It does not on one that is not the thread's own, such as a
/// coroutine's: its length is unknown.
pub(crate) fn has_room() -> bool {
    let mark = 0_u8;
    let here = (&raw const mark).addr();
    known().is_some_and(|(floor, top)| here < top && here >= floor.saturating_add(ENOUGH))
}

/// Where this thread's stack begins and ends, if it is known or may be found out, which takes system calls.
pub(crate) fn known() -> Option<(usize, usize)> {
    thread_local! {
        static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }
    if STACK.get().is_none() && !pages::is_sealed() {
        STACK.set(Some(own()));
    }
    STACK.get()
}

/// Whether this is a signal handler on its own stack, which may lie within the thread's: too short for engines that take
/// much of it, but long enough for anything that takes little more than zlib.
pub(crate) fn is_alternate() -> bool {
    if pages::is_sealed() {
        return false;
    }
    let mut now = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: nothing is set, and the answer is writable; it was written if the call succeeded.
    unsafe {
        libc::sigaltstack(ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().ss_flags & libc::SS_ONSTACK != 0
    }
}

/// Where this thread's stack begins and ends; empty if that cannot be determined.
fn own() -> (usize, usize) {
    // SAFETY: neither call has a precondition.
    let is_first = unsafe { libc::getpid() == libc::gettid() };
    if is_first { first() } else { of_a_thread() }.unwrap_or((0, 0))
}

/// The first thread's stack grows down to its limit from where the kernel put the arguments. A thread that became the
/// first by a fork is not on it.
fn first() -> Option<(usize, usize)> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the result is writable, and was written if the call succeeded.
    let limit = unsafe {
        (libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) == 0)
            .then(|| limit.assume_init().rlim_cur)?
    };
    // SAFETY: no precondition.
    let top = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    let length = usize::try_from(limit).unwrap_or(usize::MAX).min(LONGEST);
    (top > length).then(|| (top - length, top))
}

/// A limit beyond this, or none at all, says nothing about what lies below the stack.
const LONGEST: usize = 8 << 20;

fn of_a_thread() -> Option<(usize, usize)> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut floor, mut length) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are written by the first call, read by the second if that succeeded, and then destroyed.
    let is_known = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let got = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut floor, &raw mut length);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        got == 0
    };
    is_known.then(|| (floor.addr(), floor.addr() + length))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn on_a_thread_with(bytes: usize) -> bool {
        thread::Builder::new().stack_size(bytes).spawn(has_room).expect("a thread").join().expect("an answer")
    }

    #[test]
    fn a_short_stack_has_no_room() {
        assert!(on_a_thread_with(128 << 10));
        // On arm64 no thread has so little: PTHREAD_STACK_MIN is 128 KiB.
        assert_eq!(on_a_thread_with(20 << 10), cfg!(target_arch = "aarch64"));
    }

    #[test]
    fn the_first_threads_stack_is_where_its_arguments_are() {
        let (floor, top) = first().expect("a limit");
        let on_this_thread = 0_u8;
        assert!(
            !(floor..top).contains(&(&raw const on_this_thread).addr()),
            "tests have threads of their own"
        );
        // SAFETY: no precondition.
        let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        assert!((floor..top).contains(&random), "the kernel puts both at the end of the stack");
    }
}
