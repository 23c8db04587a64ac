//! What the event loop of a thread is doing, and what it may be trusted to do.
//!
//! A handshake can be suspended only if its server will sleep in the epoll
//! instance that the connection is registered with, and will come back to
//! the connection when that reports it. Nothing tells this beforehand: a
//! server may sleep in poll(2) and ask epoll without waiting, or wait for the
//! one connection on the spot. So it is watched first, with its first
//! handshakes, which are not suspended.

use core::cell::Cell;
use core::ffi::c_int;

use crate::fds;
use crate::openssl::Ssl;

thread_local! {
    /// The epoll instance in which this thread last really waited, and did not just ask.
    ///
    /// Known also before the thread has a runtime: a server that is busy from
    /// its first handshake on (HAProxy with a full run queue) may not wait again for long.
    static SLEPT_ON: Cell<c_int> = const { Cell::new(-1) };
}

/// Notes that this thread waits on an epoll instance, or just asks.
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
    /// Turns so far; wraps.
    pub(crate) number: Cell<u32>,
    /// The server registers descriptors after the handshake asked for more
    /// (HAProxy does): seen to happen, so an unregistered one may be trusted to come.
    pub(crate) registers_late: Cell<bool>,
    pub(crate) expected_registration: Cell<c_int>,
    /// The descriptor that libssl last read from through the server's own BIO.
    pub(crate) last_read: Cell<c_int>,
    habit: Cell<Habit>,
}

/// Where the server goes when a handshake has to wait for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Not seen yet.
    Unknown,
    /// This SSL had to wait in this turn.
    Watched(*const Ssl, u32),
    /// To its event loop, and it called again from a later turn.
    ComesBack,
}

impl Turn {
    pub(crate) const fn new() -> Self {
        Self {
            epfd: Cell::new(-1),
            events: Cell::new(0),
            handshakes: Cell::new(0),
            previous_handshakes: Cell::new(0),
            number: Cell::new(0),
            registers_late: Cell::new(false),
            expected_registration: Cell::new(-1),
            last_read: Cell::new(-1),
            habit: Cell::new(Habit::Unknown),
        }
    }

    /// Another thread takes over, whose server code may be another.
    pub(crate) fn reset(&self) {
        self.epfd.set(-1);
        self.registers_late.set(false);
        self.habit.set(Habit::Unknown);
    }

    /// The server has dealt with all events and asks for more.
    pub(crate) fn begin(&self, epfd: c_int, timeout: c_int) {
        waits(epfd, timeout);
        if self.epfd.replace(epfd) != epfd || fds::is_unwaited(epfd) {
            fds::waited_on(epfd);
        }
        self.number.set(self.number.get().wrapping_add(1));
        self.previous_handshakes.set(self.handshakes.replace(0));
        self.expected_registration.set(-1);
    }

    /// Whether this thread sleeps in the epoll instance that it asked last,
    /// and nobody else does.
    pub(crate) fn sleeps(&self) -> bool {
        let epfd = self.epfd.get();
        epfd >= 0 && SLEPT_ON.get() == epfd && !fds::is_shared(epfd)
    }

    /// Whether a handshake that has to wait is called again from a later turn.
    pub(crate) fn comes_back(&self) -> bool {
        self.habit.get() == Habit::ComesBack
    }

    /// The server calls, not for the first time perhaps, into a handshake.
    pub(crate) fn called(&self, ssl: *const Ssl) {
        if let Habit::Watched(watched, turn) = self.habit.get()
            && watched == ssl
        {
            let later = turn != self.number.get();
            self.habit.set(if later { Habit::ComesBack } else { Habit::Unknown });
        }
    }

    /// The handshake has to wait for the network.
    pub(crate) fn blocked(&self, ssl: *const Ssl) {
        if self.habit.get() == Habit::Unknown {
            self.habit.set(Habit::Watched(ssl, self.number.get()));
        }
    }

    /// The SSL ends or starts over: what comes next under its address says nothing.
    pub(crate) fn ended(&self, ssl: *const Ssl) {
        if matches!(self.habit.get(), Habit::Watched(watched, _) if watched == ssl) {
            self.habit.set(Habit::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: *const Ssl = core::ptr::without_provenance(16);
    const B: *const Ssl = core::ptr::without_provenance(32);

    #[test]
    fn a_server_that_calls_again_from_a_later_turn_comes_back() {
        let turn = Turn::new();
        turn.called(A);
        turn.blocked(A);
        turn.begin(-1, -1);
        turn.called(B);
        assert!(!turn.comes_back(), "only one SSL is watched");
        turn.called(A);
        assert!(turn.comes_back());
        turn.reset();
        assert!(!turn.comes_back());
    }

    #[test]
    fn a_server_that_waits_on_the_spot_does_not_come_back() {
        let turn = Turn::new();
        for _ in 0..3 {
            turn.called(A);
            turn.blocked(A);
            turn.called(A);
            turn.ended(A);
            turn.begin(-1, -1);
        }
        assert!(!turn.comes_back());
    }

    #[test]
    fn another_ssl_at_the_same_address_is_no_evidence() {
        let turn = Turn::new();
        turn.called(A);
        turn.blocked(A);
        turn.ended(A);
        turn.begin(-1, -1);
        turn.called(A);
        assert!(!turn.comes_back());
    }
}
