//! The room on the stack that the system gave a thread. Any other stack is a coroutine's or a signal's, of which neither the
//! size is known nor how much of it the program has set aside.

use core::cell::Cell;
use core::ops::Range;

thread_local! {
    static OWN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Notes which stack is the thread's own.
pub(crate) fn note(own: &Range<usize>) {
    OWN.set((own.start, own.end));
}

/// Whether this is the thread's own stack, with room for a function that needs so many bytes, and for a signal.
pub(crate) fn has_room(bytes: usize) -> bool {
    const SIGNAL: usize = 16 << 10;
    let local = 0_u8;
    let here = (&raw const local).addr();
    let (start, end) = OWN.get();
    (start..end).contains(&here) && here - start >= bytes + SIGNAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_the_room_that_is_left() {
        assert!(!has_room(0), "not noted yet");
        let local = 0_u8;
        let here = (&raw const local).addr();
        note(&(here - (64 << 10)..here + 4096));
        assert!(has_room(32 << 10) && !has_room(64 << 10));
        note(&(here + 4096..here + 8192));
        assert!(!has_room(0), "another stack");
    }
}
