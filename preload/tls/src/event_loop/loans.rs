//! A suspended handshake is a loan: it is called in before its thread blocks anywhere other than where the handshake
//! would be reported.
//!
//! Once called in, a handshake runs on until it next needs the network: its answer goes out, and what the client sends
//! next stays unread in the socket, where every event loop sees it. From then on the connection is as it would be
//! without us. If the handshake ends instead, its result is kept for the server's next call.
//!
//! The same happens before its descriptor changes hands, before the thread forks, executes another program or ends, and
//! when another thread asks for it.

use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use hasten_telemetry::{Doubt, Event, Reason, slot};
use libc::{fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

use super::{epoll, fds, kernel};
use crate::handshake::{Handshake, State, slice, suspension};
use crate::hooks::original;
use crate::openssl::errors::Errors;
use crate::openssl::*;
use crate::runtime::{Runtime, SUSPENDED, count_suspended};

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Counts the requests that threads make of each other.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// How long a thread waits for another to call a handshake in.
const PATIENCE: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_micros(100);

impl Runtime {
    /// Calls in every handshake of this thread.
    pub(crate) fn call_in_all(&self) {
        if self.suspended.borrow().is_empty() {
            return;
        }
        self.batch.run_partial();
        self.call_in_if(|_| true);
    }

    /// Calls in the handshakes for which it is due.
    pub(crate) fn call_in_if(&self, due: impl Fn(&Handshake) -> bool) {
        let list = self.suspended.borrow().clone();
        for handshake in list {
            // SAFETY: handshakes are never freed; one that has gone on together with another is no longer suspended.
            let handshake = unsafe { &*handshake };
            let is_here = self.suspended.borrow().iter().any(|other| core::ptr::eq(*other, handshake));
            if is_here && due(handshake) {
                self.call_in(handshake);
            }
        }
    }

    /// Runs a suspended handshake on until it next needs the network.
    pub(crate) fn call_in(&self, handshake: &Handshake) {
        if handshake.is_out_of_reach() {
            return suspension::end(Doubt::DeepStack);
        }
        if handshake.is_orphan.load(Acquire) {
            // SAFETY: its last owner, in another thread, has freed it.
            return unsafe { self.free_orphan(handshake) };
        }
        match handshake.state.get() {
            State::Waiting => self.run_operation_of(handshake),
            State::Ready => {}
            State::Returned if handshake.is_taken() => return self.retire(handshake),
            State::Idle | State::Running | State::Returned => return,
        }
        // In a callback of another handshake, that one's frames are in the way, and what they refer to is in use.
        if self.is_inside() && handshake.slice.is_covered() {
            return;
        }
        let is_connected = handshake.is_connected();
        self.ready.forget(handshake);
        slot().event(Event::Resumed);
        slot().event(Event::CalledIn);
        // SAFETY: the SSL of this handshake is alive, and this is its thread.
        unsafe { self.run_on(handshake, is_connected) }
    }

    /// # Safety
    ///
    /// The handshake is one of this thread's, and ready, so its operation is in its `place`. Its SSL is alive and not
    /// used by another thread of the server meanwhile, and its frames can be put back here (not
    /// [`Handshake::is_out_of_reach`]).
    unsafe fn run_on(&self, handshake: &Handshake, is_connected: bool) {
        // SAFETY: as the contract says; errno is this thread's.
        unsafe {
            let errno = *libc::__errno_location();
            // A handshake that is called in writes, which is a cancellation point; the function it is called in for may
            // not be one. A cancelled thread must end where it would have ended without us.
            let mut cancellable = 0;
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut cancellable);
            let before = Errors::default();
            before.take();
            let outer = self.is_calling_in.replace(true);
            if !is_connected {
                give_up(handshake);
            }
            self.tickets.begin(handshake.ssl(), SSL_get_state.get()(handshake.ssl()));
            let state = self.aside(|| self.resume(handshake));
            self.is_calling_in.set(outer);
            debug_assert_eq!(state, State::Returned, "a handshake that is called in is not suspended again");
            self.called_in(handshake);
            before.raise();
            pthread_setcancelstate(cancellable, null_mut());
            *libc::__errno_location() = errno;
        }
    }

    /// Handles a function that has returned: either the server goes on with the connection, or it is owed the result.
    ///
    /// # Safety
    ///
    /// As [`Runtime::return_to_network`].
    unsafe fn called_in(&self, handshake: &Handshake) {
        // SAFETY: as the contract; errno is this thread's.
        unsafe {
            if handshake.result.get() <= 0 && suspension::waits_for_reading(handshake.ssl()) {
                self.return_to_network(handshake);
            } else {
                handshake.owe(*libc::__errno_location());
                self.ready.push(handshake);
                // This thread may end, and leave its event loop to another.
                epoll::rearm(handshake.fd.get());
            }
        }
    }

    /// Leaves the connection as it would be without us: its server waits for the client.
    ///
    /// # Safety
    ///
    /// The handshake is one of this thread's, and its function has returned. Its SSL is alive and not used by another
    /// thread of the server meanwhile.
    unsafe fn return_to_network(&self, handshake: &Handshake) {
        let fd = handshake.fd.get();
        // SAFETY: as `run_on`; the errors belong to a handshake that goes on.
        unsafe {
            ERR_clear_error.get()();
            handshake.detach();
        }
        self.release(handshake);
        // The edge for the unread data may already have been reported.
        epoll::rearm(fd);
    }

    /// Releases a handshake whose result another thread has taken, perhaps after freeing the SSL.
    fn retire(&self, handshake: &Handshake) {
        self.ready.forget(handshake);
        count_suspended(handshake, false);
        self.release(handshake);
    }

    /// # Safety
    ///
    /// As for [`Handshake::cancel_for_free`], and the last owner of the SSL has given it up.
    unsafe fn free_orphan(&self, handshake: &Handshake) {
        let ssl = handshake.ssl();
        // SAFETY: the SSL is alive until here, and has no other user.
        unsafe {
            handshake.cancel_for_free();
            original::SSL_free.get()(ssl);
        }
    }

    /// Does what other threads are waiting for.
    #[inline]
    pub(crate) fn heed_others(&self) {
        let wanted = WANTED.load(Relaxed);
        if wanted != self.heeded.get() && !self.is_inside() {
            self.heeded.set(wanted);
            self.call_in_all();
        }
    }
}

/// Makes a handshake fail whose descriptor is closed: its number may already belong to another connection, so nothing
/// is written, not even an alert.
///
/// # Safety
///
/// As [`Runtime::run_on`].
unsafe fn give_up(handshake: &Handshake) {
    // SAFETY: as the contract says: the SSL is alive, and the operation is in its `place`.
    unsafe {
        SSL_set_shutdown.get()(handshake.ssl(), SSL_SENT_SHUTDOWN);
        handshake.cancelled.set(true);
        (*handshake.operation.get()).cancel();
    }
}

impl Handshake {
    /// For a thread other than the handshake's own: waits until the handshake has been called in, and returns whether
    /// it has. A result that the server has not received yet can then be taken.
    ///
    /// The handshake's thread may be waiting for something the caller holds, so the wait is short.
    #[cold]
    pub(crate) fn is_called_in(&self, ssl: *const Ssl) -> bool {
        suspension::end(Doubt::ForeignThread);
        slot().event(Event::ForeignCall);
        slot().bypass(Reason::ForeignThread);
        ask_others(|| self.is_owed() || self.ssl.load(Acquire).cast_const() != ssl)
    }
}

/// Asks every thread to call in its handshakes, and waits briefly; returns whether that has happened.
fn ask_others(is_done: impl Fn() -> bool) -> bool {
    let mut waited = Duration::ZERO;
    while !is_done() {
        if waited >= PATIENCE {
            return false;
        }
        WANTED.fetch_add(1, SeqCst);
        kernel::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    true
}

/// Before a descriptor is closed: calls in a handshake suspended on it.
#[inline]
pub(crate) fn release_descriptor(fd: c_int) {
    if SUSPENDED.load(Relaxed) > 0 && fds::is_suspended(fd) && !fds::is_vfork_child() {
        release_suspended(fd, None);
    }
}

/// Before a descriptor is registered with another epoll instance.
#[inline]
pub(crate) fn move_descriptor(fd: c_int) {
    if SUSPENDED.load(Relaxed) > 0 && fds::is_suspended(fd) {
        release_suspended(fd, Some(Doubt::MovedDescriptor));
    }
}

#[cold]
fn release_suspended(fd: c_int, doubt: Option<Doubt>) {
    if let Some(runtime) = Runtime::existing() {
        if slice::is_in_signal_handler(&runtime.native_stack()) {
            return;
        }
        runtime.call_in_if(|handshake| handshake.fd.get() == fd);
    }
    if let Some(doubt) = doubt {
        suspension::end(doubt);
    }
    if fds::is_suspended(fd) {
        ask_others(|| !fds::is_suspended(fd));
    }
}

type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int;
type PPoll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
type Select = unsafe extern "C" fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
type CheckedPoll = unsafe extern "C" fn(*mut pollfd, nfds_t, c_int, usize) -> c_int;
type CheckedPPoll =
    unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t, usize) -> c_int;
type PSelect = unsafe extern "C" fn(
    c_int,
    *mut fd_set,
    *mut fd_set,
    *mut fd_set,
    *const timespec,
    *const sigset_t,
) -> c_int;

/// This thread's runtime, if it has suspended handshakes that may be called in here.
pub(crate) fn runtime_to_call_in() -> Option<&'static Runtime> {
    let runtime = Runtime::existing().filter(|runtime| runtime.has_suspended() && !runtime.is_inside())?;
    let may = !fds::is_vfork_child() && !slice::is_in_signal_handler(&runtime.native_stack());
    may.then_some(runtime)
}

/// Before a wait on many descriptors: this thread's runtime, if it keeps results that the wait has to report.
fn before_wait() -> Option<&'static Runtime> {
    if SUSPENDED.load(Relaxed) == 0 {
        return None;
    }
    let runtime = runtime_to_call_in()?;
    runtime.call_in_all();
    runtime.has_suspended().then_some(runtime)
}

impl Runtime {
    /// Whether the server was told to wait for a connection whose handshake has since ended: on this descriptor, or on
    /// one that this epoll instance watches.
    fn owes(&self, fd: c_int) -> bool {
        let watches = |inner: c_int| fds::registration(inner).is_some_and(|known| known.epfd == fd);
        let is_meant = |connection: c_int| {
            let outer = || fds::registration(connection).is_some_and(|known| watches(known.epfd));
            connection == fd || watches(connection) || outer()
        };
        self.suspended.borrow().iter().any(|handshake| {
            // SAFETY: handshakes are never freed.
            let handshake = unsafe { &**handshake };
            is_meant(handshake.fd.get()) && !handshake.is_taken() && handshake.is_connected()
        })
    }
}

/// Marks owed descriptors as readable; returns how many are ready then.
///
/// # Safety
///
/// `list` is null or valid for reads and writes of `count` entries, which nothing else uses meanwhile.
unsafe fn owed_to_poll(list: *mut pollfd, count: nfds_t) -> c_int {
    let Some(runtime) = before_wait() else { return 0 };
    if list.is_null() {
        return 0;
    }
    // SAFETY: the program's array.
    let list = unsafe { core::slice::from_raw_parts_mut(list, count as usize) };
    let is_owed =
        |entry: &pollfd| entry.fd >= 0 && entry.events & libc::POLLIN != 0 && runtime.owes(entry.fd);
    if !list.iter().any(is_owed) {
        return 0;
    }
    for entry in list.iter_mut() {
        entry.revents = if is_owed(entry) { libc::POLLIN } else { 0 };
    }
    list.iter().filter(|entry| entry.revents != 0).count() as c_int
}

/// # Safety
///
/// As for poll(2), with the conditions of [`owed_to_poll`].
pub(crate) unsafe fn poll(original: Poll, list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match owed_to_poll(list, count) {
            0 => original(list, count, timeout),
            owed => owed,
        }
    }
}

/// # Safety
///
/// As for ppoll(2): `timeout` and `mask` are null or valid for reads. The conditions of [`owed_to_poll`] also hold.
pub(crate) unsafe fn ppoll(
    original: PPoll,
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match owed_to_poll(list, count) {
            0 => original(list, count, timeout, mask),
            owed => owed,
        }
    }
}

/// The poll that compilers emit if they know the size of the array. If that is too small, the original ends the
/// program.
///
/// # Safety
///
/// As for `__poll_chk` of the C library: unless `count` entries are more than `size` bytes, the conditions of
/// [`owed_to_poll`] hold.
pub(crate) unsafe fn checked_poll(
    original: CheckedPoll,
    list: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    size: usize,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match if is_within(count, size) { owed_to_poll(list, count) } else { 0 } {
            0 => original(list, count, timeout, size),
            owed => owed,
        }
    }
}

/// As `checked_poll`.
///
/// # Safety
///
/// As for `__ppoll_chk` of the C library: the conditions of [`checked_poll`] hold, and `timeout` and `mask` are null or
/// valid for reads.
pub(crate) unsafe fn checked_ppoll(
    original: CheckedPPoll,
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    size: usize,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match if is_within(count, size) { owed_to_poll(list, count) } else { 0 } {
            0 => original(list, count, timeout, mask, size),
            owed => owed,
        }
    }
}

fn is_within(count: nfds_t, size: usize) -> bool {
    count as usize <= size / size_of::<pollfd>()
}

/// As `owed_to_poll`, for sets of descriptors.
///
/// # Safety
///
/// Each set is null, or valid for reads and writes and used by nothing else meanwhile. Unless the first is null,
/// `count` is at most `FD_SETSIZE`: the C library's sets are no longer, and a larger number ends the program.
unsafe fn owed_to_select(count: c_int, sets: [*mut fd_set; 3]) -> c_int {
    let Some(runtime) = before_wait() else { return 0 };
    let readable = sets[0];
    if readable.is_null() {
        return 0;
    }
    // SAFETY: the program's sets, which are as long as it says.
    unsafe {
        let mut owed = Vec::new();
        owed.extend((0..count).filter(|&fd| libc::FD_ISSET(fd, readable) && runtime.owes(fd)));
        if owed.is_empty() {
            return 0;
        }
        for set in sets.into_iter().filter(|set| !set.is_null()) {
            (0..count).for_each(|fd| libc::FD_CLR(fd, set));
        }
        owed.iter().for_each(|&fd| libc::FD_SET(fd, readable));
        owed.len() as c_int
    }
}

/// # Safety
///
/// As for select(2): `timeout` is null or valid for reads and writes. The conditions of [`owed_to_select`] also hold;
/// the kernel itself takes longer sets.
pub(crate) unsafe fn select(
    original: Select,
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match owed_to_select(count, [read, write, except]) {
            0 => original(count, read, write, except, timeout),
            owed => owed,
        }
    }
}

/// # Safety
///
/// As for pselect(2): `timeout` and `mask` are null or valid for reads. The conditions of [`owed_to_select`] also hold;
/// the kernel itself takes longer sets.
pub(crate) unsafe fn pselect(
    original: PSelect,
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        match owed_to_select(count, [read, write, except]) {
            0 => original(count, read, write, except, timeout, mask),
            owed => owed,
        }
    }
}
