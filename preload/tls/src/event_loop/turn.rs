//! What a thread's event loop is doing, and how far it can be trusted.
//!
//! A handshake can be suspended only if its server will sleep in the epoll instance that the connection is registered
//! with, and will come back to the connection when that reports it. Neither can be known in advance: a server may sleep
//! in poll(2) and ask epoll without waiting, or wait for the one connection on the spot. So each thread is watched
//! first, during its first handshakes, which are not suspended: one in a proven program, and several in a row in any
//! other.

use core::cell::Cell;
use core::ffi::c_int;

use super::fds;
use crate::handshake::suspension;
use crate::openssl::Ssl;

thread_local! {
    /// The epoll instance in which this thread last waited, as opposed to merely polling it.
    ///
    /// Recorded even before the thread has a runtime: a server that is busy from its first handshake on (HAProxy with a
    /// full run queue) may not wait again for a long time.
    static SLEPT_ON: Cell<c_int> = const { Cell::new(-1) };
}

/// Notes that this thread waits on an epoll instance, or only polls it.
#[inline]
pub(crate) fn waits(epfd: c_int, timeout: c_int) {
    if timeout != 0 {
        SLEPT_ON.set(epfd);
    }
}

/// The clock of batching.
pub(crate) struct Turn {
    /// The epoll instance this thread waits on, or -1.
    pub(crate) epfd: Cell<c_int>,
    /// Events the server got from its last wait.
    pub(crate) events: Cell<c_int>,
    /// Handshake calls since then, and between the two waits before.
    pub(crate) handshakes: Cell<u32>,
    pub(crate) previous_handshakes: Cell<u32>,
    /// Whether the server has continued any handshake since then, and between the two waits before.
    pub(crate) shakes: Cell<bool>,
    pub(crate) shook: Cell<bool>,
    /// Turns so far; wraps.
    pub(crate) number: Cell<u32>,
    /// The server registers descriptors only after the handshake has asked for more (as HAProxy does). Once this has
    /// been seen, an unregistered descriptor is trusted to be registered later.
    pub(crate) registers_late: Cell<bool>,
    pub(crate) expected_registration: Cell<c_int>,
    /// The descriptor that libssl last read from through the server's own BIO.
    pub(crate) last_read: Cell<c_int>,
    /// The SSL that had to wait, and the turn in which that happened.
    watched: Cell<Option<(*const Ssl, u32)>>,
    /// How many in a row were called again in a later turn.
    sightings: Cell<u32>,
    comes_back: Cell<bool>,
}

impl Turn {
    pub(crate) const fn new() -> Self {
        Self {
            epfd: Cell::new(-1),
            events: Cell::new(0),
            handshakes: Cell::new(0),
            previous_handshakes: Cell::new(0),
            shakes: Cell::new(false),
            shook: Cell::new(false),
            number: Cell::new(0),
            registers_late: Cell::new(false),
            expected_registration: Cell::new(-1),
            last_read: Cell::new(-1),
            watched: Cell::new(None),
            sightings: Cell::new(0),
            comes_back: Cell::new(false),
        }
    }

    /// Resets the state for a new thread, which may run different server code.
    pub(crate) fn reset(&self) {
        self.epfd.set(-1);
        self.registers_late.set(false);
        self.watched.set(None);
        self.sightings.set(0);
        self.comes_back.set(false);
    }

    /// The server has handled all events and asks for more.
    pub(crate) fn begin(&self, epfd: c_int, timeout: c_int) {
        waits(epfd, timeout);
        fds::next_moment();
        if self.epfd.replace(epfd) != epfd || fds::is_unwaited(epfd) {
            fds::waited_on(epfd);
        }
        self.number.set(self.number.get().wrapping_add(1));
        self.previous_handshakes.set(self.handshakes.replace(0));
        self.shook.set(self.shakes.replace(false));
        self.expected_registration.set(-1);
    }

    /// Whether this thread sleeps in the epoll instance it last asked, and no other thread does.
    pub(crate) fn sleeps(&self) -> bool {
        let epfd = self.epfd.get();
        epfd >= 0 && SLEPT_ON.get() == epfd && !fds::is_shared(epfd)
    }

    /// Whether handshakes that have to wait are called again in a later turn.
    pub(crate) fn comes_back(&self) -> bool {
        self.comes_back.get()
    }

    /// The server calls into a handshake, perhaps not for the first time.
    pub(crate) fn called(&self, ssl: *const Ssl) {
        if let Some((watched, turn)) = self.watched.get()
            && watched == ssl
        {
            let later = turn != self.number.get();
            self.watched.set(None);
            self.sightings.set(if later { self.sightings.get() + 1 } else { 0 });
            if self.sightings.get() >= suspension::sightings() {
                self.comes_back.set(true);
            }
        }
    }

    /// The handshake has to wait for the network.
    pub(crate) fn blocked(&self, ssl: *const Ssl) {
        if !self.comes_back() && self.watched.get().is_none() {
            self.watched.set(Some((ssl, self.number.get())));
        }
    }

    /// The SSL ends or starts over: what follows at its address says nothing about this handshake.
    pub(crate) fn ended(&self, ssl: *const Ssl) {
        if self.watched.get().is_some_and(|(watched, _)| watched == ssl) {
            self.watched.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: *const Ssl = core::ptr::without_provenance(16);
    const B: *const Ssl = core::ptr::without_provenance(32);

    /// One handshake that has to wait and is called again in a later turn.
    fn come_back(turn: &Turn) {
        turn.called(A);
        turn.blocked(A);
        turn.begin(-1, -1);
        turn.called(B);
        turn.called(A);
        turn.ended(A);
    }

    #[test]
    fn a_server_that_calls_again_from_later_turns_comes_back() {
        let turn = Turn::new();
        for _ in 1..suspension::sightings() {
            come_back(&turn);
            assert!(!turn.comes_back(), "a few say nothing");
        }
        come_back(&turn);
        assert!(turn.comes_back());
        turn.reset();
        assert!(!turn.comes_back());
    }

    #[test]
    fn a_server_that_waits_on_the_spot_does_not_come_back() {
        let turn = Turn::new();
        for _ in 0..3 * suspension::sightings() {
            turn.called(A);
            turn.blocked(A);
            turn.called(A);
            turn.ended(A);
            turn.begin(-1, -1);
        }
        assert!(!turn.comes_back());
    }

    #[test]
    fn one_that_is_waited_for_on_the_spot_undoes_the_others() {
        let turn = Turn::new();
        for _ in 1..suspension::sightings() {
            come_back(&turn);
        }
        turn.blocked(A);
        turn.called(A);
        come_back(&turn);
        assert!(!turn.comes_back());
    }

    #[test]
    fn another_ssl_at_the_same_address_is_no_evidence() {
        let turn = Turn::new();
        for _ in 0..3 * suspension::sightings() {
            turn.called(A);
            turn.blocked(A);
            turn.ended(A);
            turn.begin(-1, -1);
            turn.called(A);
        }
        assert!(!turn.comes_back());
    }
}
