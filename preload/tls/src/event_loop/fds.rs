//! What is known of each file descriptor: whether it was accepted here, whether it is non-blocking, and how it is
//! registered: with which epoll instance, for which events, with which cookie.
//!
//! The kernel knows all this but does not reveal it, and a resumed handshake must be reported under the server's own
//! cookie. One entry per descriptor, 80 bytes each.
//!
//! A descriptor can be closed, and its number reused, in ways that go unseen (io_uring, close_range, a direct system
//! call). So a registration counts only for the socket that was registered, identified by a number that the kernel
//! never reuses. Calls of a vfork child, which closes descriptors of its own while sharing our memory, are ignored.
//!
//! A connection may move from thread to thread before the `epoll_ctl` that registered it has returned to where it is
//! noted. So calls are numbered when they begin, and the record keeps the result of the one that began last; a late one
//! has no effect any more, least of all on the next connection with the same number.
//!
//! The kernel's answers about a socket hold for one moment: until a thread of this process waits, or uses a function
//! that may change them.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};
use libc::{c_int, epoll_event};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::kernel;

/// Descriptors above this are left alone (and counted as not polled).
const CAPACITY: usize = 1 << 20;

/// The process whose descriptors these are.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Entries are allocated by the thousand, only where there are descriptors: unused ones cost a process neither memory
/// nor address space, which may be limited (`ulimit -v`, `mlockall`).
const CHUNK: usize = 1 << 10;
static CHUNKS: [AtomicPtr<Entry>; CAPACITY / CHUNK] =
    [const { AtomicPtr::new(null_mut()) }; CAPACITY / CHUNK];
static SILENT: AtomicBool = AtomicBool::new(false);

/// The current moment; descriptors the kernel was never asked about have moment 0.
static MOMENT: Moment = Moment(AtomicU64::new(1));

/// Every thread writes it in each turn of its loop, so it does not share a cache line with data that all of them read.
#[repr(align(64))]
struct Moment(AtomicU64);

fn moment() -> u64 {
    MOMENT.0.load(Relaxed)
}

#[derive(Debug)]
struct Entry {
    /// ACCEPTED | SUSPENDED | UNTOLD | SHAKING | calls under way << 56 | (epfd + 1) << 32 | events
    state: AtomicU64,
    /// epoll_event.data
    cookie: AtomicU64,
    /// The number of epoll_ctl calls and connections begun for it, and the latest of them that has been noted.
    begun: AtomicU64,
    noted: AtomicU64,
    /// The thread that reads or writes the fields that belong together: registration, cookie, and the two above.
    holder: AtomicUsize,
    /// For an epoll instance: the one thread that waits on it, or SHARED.
    waiter: AtomicU64,
    /// Counts the connections that have had this number.
    generation: AtomicU64,
    /// The registered socket, by the kernel's number; 0 if unknown.
    socket: AtomicU64,
    /// The moment at which the kernel confirmed that the number stands for that socket.
    same: AtomicU64,
    /// The moment at which the kernel said that it is non-blocking.
    non_blocking: AtomicU64,
}

/// An epoll instance that two threads wait on belongs to neither: there is no telling which of them would get a resumed
/// handshake.
const SHARED: u64 = u64::MAX;

const ACCEPTED: u64 = 1 << 63;
/// A handshake on it is suspended.
const SUSPENDED: u64 = 1 << 62;
/// An edge must be reported again, which was not possible while the registration was changing or before there was one.
const UNTOLD: u64 = 1 << 61;
/// A handshake on it waits for its client, in a program being watched.
const SHAKING: u64 = 1 << 60;
/// Number of threads in a call of epoll_ctl for it: the new registration may already be in effect, and bring events to
/// other threads.
const ONE_CHANGING: u64 = 1 << 56;
const CHANGING: u64 = 15 * ONE_CHANGING;
/// The flags that hold for the descriptor whatever its epoll instance.
const KEPT: u64 = ACCEPTED | SUSPENDED | SHAKING | CHANGING;
const EPFD_SHIFT: u32 = 32;
const EPFD_MASK: u64 = (1 << 24) - 1;
const REGISTERED: u64 = EPFD_MASK << EPFD_SHIFT | u32::MAX as u64;

/// How a descriptor is registered with an epoll instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) epfd: c_int,
    pub(crate) events: u32,
    pub(crate) cookie: u64,
}

impl Registration {
    /// Whether it is reported once per change rather than for as long as it is ready.
    pub(crate) fn edge_triggered(&self) -> bool {
        self.events & libc::EPOLLET as u32 != 0
    }

    /// Whether the kernel disarms it after one report; this is not imitated here.
    pub(crate) fn one_shot(&self) -> bool {
        self.events & libc::EPOLLONESHOT as u32 != 0
    }
}

/// Begins a new moment: the kernel has to be asked again. Called when the first handshake is suspended, and from then
/// on for everything that may change an answer.
pub(crate) fn next_moment() {
    MOMENT.0.fetch_add(1, Relaxed);
}

/// A connection was accepted under this number: everything known about it is stale.
pub(crate) fn accepted(fd: c_int, non_blocking: bool) {
    if let Some(entry) = made(fd) {
        entry.waiter.store(0, Relaxed);
        entry.non_blocking.store(if non_blocking { moment() } else { 0 }, Relaxed);
        entry.socket.store(0, Relaxed);
        entry.generation.fetch_add(1, Relaxed);
        entry.hold().begin_anew(ACCEPTED);
    }
}

/// The number is free, or stands for something new; its former socket must not be reported any more.
pub(crate) fn closed(fd: c_int) {
    let Some(entry) = entry(fd) else { return };
    // Most descriptors are files that were never looked up: do not dirty their pages.
    if entry.state.load(Relaxed) | entry.waiter.load(Relaxed) == 0 || is_vfork_child() {
        return;
    }
    if entry.state.load(Relaxed) != 0 {
        entry.hold().begin_anew(0);
        entry.non_blocking.store(0, Relaxed);
        entry.generation.fetch_add(1, Relaxed);
    }
    if entry.waiter.load(Relaxed) != 0 {
        entry.waiter.store(0, Relaxed);
    }
}

/// This thread waits on an epoll instance.
pub(crate) fn waited_on(epfd: c_int) {
    let Some(entry) = made(epfd).filter(|_| !is_silent()) else { return };
    let thread = kernel::thread().into();
    if let Err(other) = entry.waiter.compare_exchange(0, thread, Relaxed, Relaxed)
        && other != thread
    {
        entry.waiter.store(SHARED, Relaxed);
    }
}

/// Whether no thread is known to wait on an epoll instance, which may be a new one.
pub(crate) fn is_unwaited(epfd: c_int) -> bool {
    entry(epfd).is_some_and(|entry| entry.waiter.load(Relaxed) == 0)
}

/// Whether an epoll instance cannot be relied on to bring a handshake back to its thread.
pub(crate) fn is_shared(epfd: c_int) -> bool {
    entry(epfd).is_none_or(|entry| matches!(entry.waiter.load(Relaxed), 0 | SHARED))
}

/// A call of `epoll_ctl`, from before it starts until its outcome is noted.
#[derive(Debug)]
#[must_use = "the descriptor is changing until the call is noted"]
pub(crate) struct Change {
    fd: c_int,
    /// 0 if there is no entry.
    number: u64,
    /// Whether it is among the calls counted in the state; there may be more threads than the counter holds.
    is_counted: bool,
}

/// Call before an `epoll_ctl`.
pub(crate) fn changing(fd: c_int) -> Change {
    let Some(entry) = made(fd) else { return Change { fd, number: 0, is_counted: false } };
    let _held = entry.hold();
    let is_counted = entry.state.load(Relaxed) & CHANGING != CHANGING;
    if is_counted {
        entry.state.fetch_add(ONE_CHANGING, Relaxed);
    }
    Change { fd, number: entry.begun.fetch_add(1, Relaxed) + 1, is_counted }
}

impl Change {
    /// The call failed. Returns whether an edge must be reported again.
    #[cold]
    pub(crate) fn failed(self) -> bool {
        self.noted(None)
    }

    /// The call succeeded. Returns whether an edge must be reported again.
    pub(crate) fn succeeded(self, epfd: c_int, operation: c_int, event: Option<epoll_event>) -> bool {
        let registered = match event {
            Some(event) if operation != libc::EPOLL_CTL_DEL => {
                let epfd = Some(epfd as u64 + 1).filter(|epfd| *epfd <= EPFD_MASK).unwrap_or(0);
                (epfd << EPFD_SHIFT | u64::from(event.events), event.u64)
            }
            _ => (0, 0),
        };
        self.noted(Some(registered))
    }

    /// Notes the outcome: the current registration and its cookie.
    fn noted(self, registered: Option<(u64, u64)>) -> bool {
        let Some(entry) = entry(self.fd).filter(|_| self.number != 0) else { return false };
        let _held = entry.hold();
        let latest = registered.filter(|_| self.number > entry.noted.load(Relaxed));
        if let Some((_, cookie)) = latest {
            entry.noted.store(self.number, Relaxed);
            entry.cookie.store(cookie, Relaxed);
        }
        let after = |state: u64| {
            let state = latest.map_or(state, |(registered, _)| match registered & REGISTERED {
                0 => state & KEPT,
                registered => state & (KEPT | UNTOLD) | registered,
            });
            if self.is_counted && state & CHANGING != 0 { state - ONE_CHANGING } else { state }
        };
        // Other threads change whether a handshake is suspended.
        let is_due = |state: u64| state & UNTOLD != 0 && !is_unsettled(state);
        let tell = |state: u64| {
            let state = after(state);
            Some(if is_due(state) { state & !UNTOLD } else { state })
        };
        let before = entry.state.fetch_update(AcqRel, Relaxed, tell).unwrap_or(0);
        is_due(after(before))
    }
}

/// Whether a call is in progress, or there is no registration.
const fn is_unsettled(state: u64) -> bool {
    state & CHANGING != 0 || state >> EPFD_SHIFT & EPFD_MASK == 0
}

/// Has the kernel report an edge again, with the descriptor's registration. If that is unsettled, the call that settles
/// it does so. Meanwhile no other call for this descriptor is in progress, and it is not closed: `tell` must be short.
pub(crate) fn rearm(fd: c_int, tell: impl FnOnce(Registration)) {
    let Some(entry) = entry(fd) else { return };
    let _held = entry.hold();
    let note = |state: u64| is_unsettled(state).then_some(state | UNTOLD);
    if entry.state.fetch_update(AcqRel, Relaxed, note).is_err()
        && let Some(registration) = entry.registration()
    {
        tell(registration);
    }
}

/// Records the socket about to be registered; returns the one known before and the new one.
pub(crate) fn learn_new_socket(fd: c_int) -> (u64, u64) {
    made(fd).map_or((0, 0), |entry| {
        let now = socket(fd);
        entry.same.store(moment(), Relaxed);
        (entry.socket.swap(now, Relaxed), now)
    })
}

/// Undoes [`learn_new_socket`]: the socket was not registered.
pub(crate) fn restore_socket(fd: c_int, (before, now): (u64, u64)) {
    let Some(entry) = entry(fd) else { return };
    if entry.socket.compare_exchange(now, before, Relaxed, Relaxed).is_ok() {
        // The answer may have been about another socket.
        entry.same.store(0, Relaxed);
    }
}

/// The kernel's number of the socket behind a descriptor, which is never reused; 0 if it is not a socket.
fn socket(fd: c_int) -> u64 {
    if is_silent() { 0 } else { kernel::socket(fd) }
}

/// Records the socket if it is to be registered later; returns whether there is one.
pub(crate) fn learn_socket(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| {
        if entry.socket.load(Relaxed) == 0 {
            entry.socket.store(socket(fd), Relaxed);
        }
        entry.socket.load(Relaxed) != 0
    })
}

/// Whether the number still stands for the registered socket. Asks the kernel.
pub(crate) fn is_same_socket(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| {
        let (known, moment) = (entry.socket.load(Relaxed), moment());
        let is_same = known != 0 && (is_silent() || known == socket(fd));
        entry.same.store(if is_same { moment } else { 0 }, Relaxed);
        is_same
    })
}

/// As `is_same_socket`, but at most once per moment. Only while handshakes are suspended.
pub(crate) fn is_still_same_socket(fd: c_int) -> bool {
    let is_known = |entry: &Entry| entry.socket.load(Relaxed) != 0 && entry.same.load(Relaxed) == moment();
    entry(fd).is_some_and(is_known) || is_same_socket(fd)
}

/// A child of vfork shares our memory until it executes another program, and has descriptors of its own.
pub(crate) fn is_vfork_child() -> bool {
    // SAFETY: no argument; cannot fail.
    !is_silent() && unsafe { libc::getpid() != PROCESS.load(Relaxed) }
}

/// Stops asking the kernel: the program is about to forbid some system calls. By then nothing is suspended.
pub(crate) fn be_silent() {
    SILENT.store(true, Relaxed);
}

#[inline]
fn is_silent() -> bool {
    SILENT.load(Relaxed)
}

/// Records which process owns this memory: at the start, and in a forked child.
pub(crate) fn note_process() {
    // SAFETY: no argument; cannot fail.
    PROCESS.store(unsafe { libc::getpid() }, Relaxed);
}

/// Notes whether a handshake on this descriptor is suspended.
pub(crate) fn set_suspended(fd: c_int, suspended: bool) {
    let Some(entry) = entry(fd) else { return };
    if suspended {
        entry.state.fetch_or(SUSPENDED, Relaxed);
    } else {
        entry.state.fetch_and(!SUSPENDED, Relaxed);
    }
}

/// Notes whether a handshake on this descriptor waits for its client.
pub(crate) fn set_shaking(fd: c_int, shaking: bool) {
    let Some(entry) = entry(fd) else { return };
    if shaking {
        entry.state.fetch_or(SHAKING, Relaxed);
    } else if entry.state.load(Relaxed) & SHAKING != 0 {
        entry.state.fetch_and(!SHAKING, Relaxed);
    }
}

/// Whether a handshake on it waits for its client, in a program being watched.
pub(crate) fn is_shaking(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.state.load(Relaxed) & SHAKING != 0)
}

/// Whether a handshake on it is suspended.
pub(crate) fn is_suspended(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.state.load(Relaxed) & SUSPENDED != 0)
}

/// Distinguishes one connection from the next that gets the same number.
pub(crate) fn generation(fd: c_int) -> u64 {
    entry(fd).map_or(0, |entry| entry.generation.load(Relaxed))
}

/// The latest registration noted, if any.
pub(crate) fn registration(fd: c_int) -> Option<Registration> {
    let entry = entry(fd).filter(|entry| entry.state.load(Relaxed) & REGISTERED != 0)?;
    let _held = entry.hold();
    entry.registration()
}

/// The same, unless a call is in progress that may have changed it.
pub(crate) fn settled_registration(fd: c_int) -> Option<Registration> {
    let entry = entry(fd).filter(|entry| !is_unsettled(entry.state.load(Relaxed)))?;
    let _held = entry.hold();
    entry.registration().filter(|_| !is_unsettled(entry.state.load(Relaxed)))
}

pub(crate) fn is_registered(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.state.load(Relaxed) >> EPFD_SHIFT & EPFD_MASK != 0)
}

/// Whether the descriptor came from `accept` in this process.
pub(crate) fn is_accepted(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.state.load(Relaxed) & ACCEPTED != 0)
}

/// Whether operations on it do not block at this moment. Asks the kernel: another process may share the socket and
/// change that unnoticed.
pub(crate) fn is_non_blocking(fd: c_int) -> bool {
    let moment = moment();
    let is_so = kernel::is_non_blocking(fd) == Some(true);
    // For other descriptors, closing may go unnoticed.
    if let Some(entry) = entry(fd).filter(|entry| is_so && entry.state.load(Relaxed) != 0) {
        entry.non_blocking.store(moment, Relaxed);
    }
    is_so
}

/// As `is_non_blocking`, but at most once per moment. Only while handshakes are suspended.
pub(crate) fn is_still_non_blocking(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.non_blocking.load(Relaxed) == moment()) || is_non_blocking(fd)
}

thread_local! {
    /// Its address identifies the thread.
    static THREAD: u8 = const { 0 };
}

/// An entry whose registration no other thread reads or writes.
struct Held<'a> {
    entry: &'a Entry,
    is_own: bool,
}

impl Entry {
    /// Waits for other threads, which hold it for a few instructions, or for a call that reports an edge again.
    ///
    /// This thread may hold it itself, further up the stack: it is in a signal handler, or in a function that another
    /// library has wrapped. A thread can also end at any point while holding it. In these cases it goes on without.
    fn hold(&self) -> Held<'_> {
        /// Each try takes a scheduler turn if the machine is busy.
        const PATIENCE: u32 = 10_000;
        let thread = THREAD.with(|thread| core::ptr::from_ref(thread) as usize);
        for turn in 0..PATIENCE {
            match self.holder.compare_exchange(0, thread, Acquire, Relaxed) {
                Ok(_) => return Held { entry: self, is_own: true },
                Err(other) if other == thread => break,
                Err(_) if turn < 100 || is_silent() => core::hint::spin_loop(),
                Err(_) => kernel::step_back(),
            }
        }
        Held { entry: self, is_own: false }
    }

    fn registration(&self) -> Option<Registration> {
        let state = self.state.load(Relaxed);
        let epfd = state >> EPFD_SHIFT & EPFD_MASK;
        (epfd != 0).then(|| Registration {
            epfd: epfd as c_int - 1,
            events: state as u32,
            cookie: self.cookie.load(Relaxed),
        })
    }
}

impl Held<'_> {
    /// Starts a new connection, or none: results of calls in progress are void.
    fn begin_anew(self, state: u64) {
        let number = self.entry.begun.fetch_add(1, Relaxed) + 1;
        self.entry.noted.store(number, Relaxed);
        let keep = |before: u64| Some(before & CHANGING | state);
        let _ = self.entry.state.fetch_update(AcqRel, Relaxed, keep);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.is_own {
            self.entry.holder.store(0, Release);
        }
    }
}

/// For a forked child, in which the other threads do not return.
pub(crate) fn forget_other_threads() {
    for chunk in CHUNKS.iter().map(|chunk| chunk.load(Acquire)).filter(|chunk| !chunk.is_null()) {
        // SAFETY: as `entry`.
        for entry in (0..CHUNK).map(|at| unsafe { &*chunk.add(at) }) {
            // Most entries hold no such state: do not dirty their pages.
            if entry.holder.load(Relaxed) != 0 {
                entry.holder.store(0, Relaxed);
            }
            if entry.state.load(Relaxed) & CHANGING != 0 {
                entry.state.fetch_and(!CHANGING, Relaxed);
            }
        }
    }
}

/// What is known of a descriptor, if anything is.
#[inline]
fn entry(fd: c_int) -> Option<&'static Entry> {
    let at = usize::try_from(fd).ok()?;
    let chunk = CHUNKS.get(at / CHUNK)?.load(Acquire);
    // SAFETY: null, or CHUNK entries that are never freed and are only accessed atomically.
    (!chunk.is_null()).then(|| unsafe { &*chunk.add(at % CHUNK) })
}

/// The same, for storing; `None` if there is no memory for it.
#[inline]
fn made(fd: c_int) -> Option<&'static Entry> {
    entry(fd).or_else(|| make(fd))
}

#[cold]
fn make(fd: c_int) -> Option<&'static Entry> {
    let place = CHUNKS.get(usize::try_from(fd).ok()? / CHUNK)?;
    if is_silent() {
        return None;
    }
    let (size, access) = (CHUNK * size_of::<Entry>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a fresh zeroed mapping, at any address; zero is a valid Entry.
    let chunk = unsafe { mmap_anonymous(null_mut(), size, access, MapFlags::PRIVATE) }.ok()?;
    if place.compare_exchange(null_mut(), chunk.cast(), AcqRel, Relaxed).is_err() {
        // Another thread was faster.
        // SAFETY: no other thread has seen this mapping.
        let _ = unsafe { munmap(chunk, size) };
    }
    entry(fd)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The holder has the table to itself; a process has only one.
    pub(crate) static TABLE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn add(epfd: c_int, fd: c_int, cookie: u64) {
        learn_new_socket(fd);
        changing(fd).succeeded(epfd, libc::EPOLL_CTL_ADD, Some(edge(cookie)));
    }

    fn edge(cookie: u64) -> epoll_event {
        epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: cookie }
    }

    /// The cookie with which an edge is reported again, if it is.
    fn rearmed(fd: c_int) -> Option<u64> {
        let mut rearmed = None;
        rearm(fd, |registration| rearmed = Some(registration.cookie));
        rearmed
    }

    #[test]
    fn follows_a_descriptor_through_its_life() {
        let _table = TABLE.lock();
        note_process();
        assert_eq!(registration(9), None, "of a number that nobody has noted nothing is known");
        accepted(9, false);
        assert!(is_accepted(9));
        assert_eq!(registration(9), None);

        add(0, 9, u64::MAX);
        let r = registration(9).unwrap();
        assert_eq!((r.epfd, r.cookie, r.edge_triggered(), r.one_shot()), (0, u64::MAX, true, false));

        changing(9).succeeded(0, libc::EPOLL_CTL_DEL, None);
        assert_eq!(registration(9), None);
        assert!(is_accepted(9), "leaving epoll does not end the connection");

        add(5, 9, 1);
        let before = generation(9);
        closed(9);
        assert_ne!(generation(9), before);
        assert_eq!(registration(9), None);
        assert!(!is_accepted(9));

        add(5, 9, 1);
        accepted(9, false);
        assert_eq!(registration(9), None, "a reused number starts afresh");

        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (one, other) = (std::os::fd::AsRawFd::as_raw_fd(&one), std::os::fd::AsRawFd::as_raw_fd(&other));
        add(5, one, 1);
        assert!(is_same_socket(one) && !is_same_socket(other));
        // SAFETY: both are open.
        assert_eq!(unsafe { libc::dup2(other, one) }, one);
        assert!(is_still_same_socket(one), "nothing has been asked in this moment but that it was the same");
        next_moment();
        assert!(!is_still_same_socket(one) && !is_same_socket(one), "replaced without a word");

        let (_, now) = learn_new_socket(one);
        restore_socket(one, (1, now));
        assert!(!is_still_same_socket(one), "what was learned is not what was known before");
        let late = learn_new_socket(one);
        learn_new_socket(one);
        accepted(one, false);
        assert!(learn_socket(one));
        restore_socket(one, (1, late.1 + 1));
        assert!(is_same_socket(one), "it is another's by now");

        // SAFETY: it is open.
        let set = |flags: c_int| assert_eq!(unsafe { libc::fcntl(other, libc::F_SETFL, flags) }, 0);
        accepted(other, false);
        set(libc::O_NONBLOCK);
        assert!(is_still_non_blocking(other));
        set(0);
        assert!(!is_non_blocking(other));
        next_moment();
        assert!(!is_still_non_blocking(other), "asked anew in another moment");
        accepted(other, true);
        assert!(is_still_non_blocking(other), "its flags came with it");
        closed(other);
        assert!(!is_still_non_blocking(other), "the next one of this number");

        // An event may arrive, and a handshake go on, while epoll_ctl is in progress.
        let (modify, delete) = (libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_DEL);
        add(5, 9, 1);
        assert_eq!(rearmed(9), Some(1));
        let change = changing(9);
        assert_eq!(
            (rearmed(9), settled_registration(9)),
            (None, None),
            "what is registered may be another by now"
        );
        assert!(change.succeeded(5, modify, Some(edge(2))), "it is up to whoever registers");
        assert_eq!(rearmed(9), Some(2));
        assert!(!changing(9).failed());
        let change = changing(9);
        assert_eq!(rearmed(9), None);
        assert!(change.failed(), "what was registered still is");
        assert!(!changing(9).succeeded(5, delete, None));
        assert_eq!(rearmed(9), None);
        assert!(changing(9).succeeded(6, libc::EPOLL_CTL_ADD, Some(edge(2))));

        // The thread that got the first event moves a connection before the call that added it has returned.
        let late = changing(9);
        assert!(!changing(9).succeeded(6, delete, None));
        assert!(!changing(9).succeeded(7, libc::EPOLL_CTL_ADD, Some(edge(3))));
        assert_eq!(rearmed(9), None, "as long as one is under way");
        assert!(late.succeeded(6, modify, Some(edge(2))), "the last one tells, whichever it is");
        assert_eq!(rearmed(9), Some(3));
        assert_eq!(settled_registration(9).unwrap().epfd, 7);

        // Or the connection ends, and the next one gets its number.
        let late = changing(9);
        closed(9);
        accepted(9, true);
        assert!(!changing(9).succeeded(8, libc::EPOLL_CTL_ADD, Some(edge(4))));
        assert!(!late.succeeded(7, modify, Some(edge(3))));
        assert_eq!((rearmed(9), registration(9).unwrap().epfd), (Some(4), 8));

        // More threads than are counted, and what a child finds that inherits one.
        let changes: Vec<_> = (0..20).map(|_| changing(9)).collect();
        assert_eq!(rearmed(9), None);
        let due = changes.into_iter().map(|change| change.succeeded(8, modify, Some(edge(5))));
        assert_eq!(due.filter(|due| *due).count(), 1);
        let _lost = changing(9);
        let held = entry(9).unwrap().hold();
        assert!(held.is_own && !entry(9).unwrap().hold().is_own, "it does not wait for itself");
        forget_other_threads();
        assert!(entry(9).unwrap().hold().is_own);
        assert_eq!(rearmed(9), Some(5));
        drop(held);

        waited_on(5);
        assert!(!is_shared(5));
        std::thread::spawn(|| waited_on(5)).join().unwrap();
        assert!(is_shared(5), "two threads wait on it");
        closed(5);
        waited_on(5);
        assert!(!is_shared(5), "another epoll instance under the same number");

        for fd in [-1, CAPACITY as c_int, c_int::MAX] {
            accepted(fd, true);
            add(1, fd, 2);
            closed(fd);
            assert_eq!(registration(fd), None);
        }
    }
}
