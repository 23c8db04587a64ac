//! The event loop is the clock of batching: when the server waits for events, queued operations run, and handshakes
//! that can go on are reported as readable. This needs no timer, thread or extra descriptor.

use core::ffi::c_int;
use core::ptr::null_mut;

use hasten_guard::clock::{now, thread_cpu_ns};
use hasten_telemetry::{Doubt, Event, slot};
use libc::{epoll_event, sigset_t};

use super::fds::{self, Change, Registration};
use super::loans;
use super::turn::waits;
use crate::handshake::{State, suspension};
use crate::hooks::original;
use crate::runtime::Runtime;

type Control = unsafe extern "C" fn(c_int, c_int, c_int, *mut epoll_event) -> c_int;
type Wait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;
type PWait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;

/// # Safety
///
/// As for epoll_ctl(2): `event` is valid for reads until this returns, unless the kernel refuses the call or `op` is
/// `EPOLL_CTL_DEL`.
pub(crate) unsafe fn control(
    original: Control,
    epfd: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    call_in_before(epfd, op, fd);
    // Another thread may receive the event, and continue the handshake, before the call returns.
    let before = (op == libc::EPOLL_CTL_ADD).then(|| fds::learn_new_socket(fd));
    let change = fds::changing(fd);
    // SAFETY: the server's call.
    let result = unsafe { original(epfd, op, fd, event) };
    if result != 0 {
        take_back(fd, before, change);
        return result;
    }
    // For a deletion the kernel does not look at the event; otherwise it has read it.
    let event = if op == libc::EPOLL_CTL_DEL { null_mut() } else { event };
    // SAFETY: null, or valid because the kernel could read it.
    if change.succeeded(epfd, op, unsafe { event.as_ref().copied() }) {
        rearm(fd);
    }
    note_registration(op, fd);
    result
}

/// Calls in a handshake suspended on a descriptor that leaves its epoll instance.
fn call_in_before(epfd: c_int, op: c_int, fd: c_int) {
    match op {
        libc::EPOLL_CTL_DEL => loans::release_descriptor(fd),
        // A server that registers late started the handshake before registering.
        libc::EPOLL_CTL_ADD if fds::registration(fd).is_some_and(|known| known.epfd != epfd) => {
            loans::move_descriptor(fd);
        }
        _ => {}
    }
}

/// The kernel refused the call: restores the previous state.
fn take_back(fd: c_int, before: Option<(u64, u64)>, change: Change) {
    if let Some(before) = before {
        fds::restore_socket(fd, before);
    }
    if change.failed() {
        rearm(fd);
    }
}

/// Learns from a successful registration how this server registers.
fn note_registration(op: c_int, fd: c_int) {
    let is_one_shot = fds::registration(fd).is_some_and(|registration| registration.one_shot());
    if is_one_shot {
        loans::release_descriptor(fd);
    }
    if let Some(runtime) = Runtime::existing()
        && runtime.turn.expected_registration.get() == fd
        && op == libc::EPOLL_CTL_ADD
        && !is_one_shot
    {
        runtime.turn.registers_late.set(true);
    }
}

/// # Safety
///
/// As for epoll_wait(2): `events` is valid for writes of `max` events, if `max` is positive.
pub(crate) unsafe fn wait(
    original: Wait,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the server's call, with another timeout.
    turn(epfd, events, max, timeout, |timeout| unsafe { original(epfd, events, max, timeout) })
}

/// # Safety
///
/// As for epoll_pwait(2): `events` is valid for writes of `max` events, if `max` is positive, and `mask` is null or
/// valid for reads.
pub(crate) unsafe fn pwait(
    original: PWait,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the server's call, with another timeout.
    turn(epfd, events, max, timeout, |timeout| unsafe { original(epfd, events, max, timeout, mask) })
}

/// One wait of the server for events.
fn turn(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    wait: impl Fn(c_int) -> c_int,
) -> c_int {
    let Some(runtime) = Runtime::existing() else {
        waits(epfd, timeout);
        return wait(timeout);
    };
    if runtime.is_inside() || max <= 0 {
        // A callback with an event loop of its own, or a call that will fail anyway.
        return wait(timeout);
    }
    runtime.heed_others();
    runtime.keep_clear();
    runtime.turn.begin(epfd, timeout);
    let count = if runtime.suspended.borrow().is_empty() {
        wait(timeout)
    } else {
        next_events(runtime, epfd, events, max, timeout, wait)
    };
    runtime.turn.events.set(count);
    count
}

/// The next events while handshakes are suspended: resumed handshakes first, then network events, and if there are
/// neither, queued operations run as a partial batch.
fn next_events(
    runtime: &Runtime,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    wait: impl Fn(c_int) -> c_int,
) -> c_int {
    if runtime.batch.device.is_busy() {
        runtime.batch.collect();
    }
    let resumed = report(runtime, epfd, Events::new(events, 0, max), Report::First);
    if resumed > 0 {
        return resumed;
    }
    let fresh = wait(0);
    if fresh < 0 {
        return fresh;
    }
    let ready = report(runtime, epfd, Events::new(events, fresh, max), Report::Again);
    // A server that does not want to sleep has work of its own (HAProxy's run queue), which may bring more operations,
    // just as events may.
    if ready > 0 || timeout == 0 {
        runtime.batch.run_overdue(runtime.turn.number.get());
        call_in_overdue(runtime);
        return ready;
    }
    runtime.batch.run_partial();
    match report(runtime, epfd, Events::new(events, 0, max), Report::First) {
        0 if runtime.batch.device.is_busy() => attend(runtime, epfd, events, max, timeout, wait),
        0 => before_sleep(runtime, epfd, events, max, timeout, wait),
        resumed => resumed,
    }
}

/// Calls in handshakes left alone by a loop that always has something else to do.
fn call_in_overdue(runtime: &Runtime) {
    /// Turns between two checks; a turn takes many times as long as a check.
    const LOOK_EVERY: u32 = 16;
    if !runtime.turn.number.get().is_multiple_of(LOOK_EVERY) {
        return;
    }
    let time = now();
    runtime.call_in_if(|handshake| {
        let is_due = handshake.is_overdue(time);
        if is_due && handshake.reported.get() {
            suspension::left_alone();
        }
        is_due
    });
}

/// The thread is about to sleep. Calls in every suspended handshake that cannot be reported here, or was reported and
/// left alone, and reports those that end.
#[cold]
fn before_sleep(
    runtime: &Runtime,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    wait: impl Fn(c_int) -> c_int,
) -> c_int {
    let nested = report_nested(runtime, epfd, events, max);
    if nested > 0 {
        return nested;
    }
    runtime.call_in_if(|handshake| {
        if handshake.reported.get() && handshake.state.get() == State::Ready {
            suspension::left_alone();
        }
        true
    });
    match report(runtime, epfd, Events::new(events, 0, max), Report::First) {
        0 => wait(timeout),
        ended => ended,
    }
}

/// Reports an epoll instance registered with this one if a handshake can go on there.
fn report_nested(runtime: &Runtime, epfd: c_int, events: *mut epoll_event, max: c_int) -> c_int {
    let mut found = None;
    runtime.ready.retain(|handshake| {
        if found.is_none() && !handshake.reported.get() {
            let inner = fds::registration(handshake.fd.get()).filter(|inner| inner.epfd != epfd);
            found = inner.and_then(|inner| fds::registration(inner.epfd)).filter(|outer| outer.epfd == epfd);
        }
        true
    });
    let Some(outer) = found.filter(|outer| max > 0 && outer.events & libc::EPOLLIN as u32 != 0) else {
        return 0;
    };
    suspension::end(Doubt::NestedLoop);
    // SAFETY: the caller's array has room for one.
    unsafe { events.write_unaligned(epoll_event { events: libc::EPOLLIN as u32, u64: outer.cookie }) };
    1
}

/// Makes the kernel report an edge again, for a connection that may have unread data.
pub(crate) fn rearm(fd: c_int) {
    fds::rearm(fd, |registration| {
        // A one-shot registration is armed only by its server.
        if registration.edge_triggered() && !registration.one_shot() && fds::is_same_socket(fd) {
            let mut event = epoll_event { events: registration.events, u64: registration.cookie };
            // SAFETY: repeats the server's own registration; errno is this thread's.
            unsafe {
                let errno = *libc::__errno_location();
                original::epoll_ctl.get()(registration.epfd, libc::EPOLL_CTL_MOD, fd, &raw mut event);
                *libc::__errno_location() = errno;
            }
        }
    });
}

/// Waits for a device or the network, whichever comes first. The kernel cannot wait for the device, so the device is
/// polled every millisecond, up to its time limit.
#[cold]
fn attend(
    runtime: &Runtime,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    wait: impl Fn(c_int) -> c_int,
) -> c_int {
    const LOOK_EVERY: c_int = 1;
    let began = now();
    loop {
        let left = match timeout {
            ..0 => timeout,
            _ => c_int::try_from((now() - began) / 1_000_000).map_or(0, |passed| (timeout - passed).max(0)),
        };
        if !runtime.batch.device.is_busy() {
            return wait(left);
        }
        let start = thread_cpu_ns();
        let fresh = wait(if left < 0 { LOOK_EVERY } else { left.min(LOOK_EVERY) });
        if fresh < 0 {
            return fresh;
        }
        if fresh == 0 {
            runtime.batch.device.spend(start);
        }
        runtime.batch.collect();
        let ready = report(runtime, epfd, Events::new(events, fresh, max), Report::First);
        if ready > 0 || left == 0 {
            return ready;
        }
    }
}

/// Which of the handshakes that can go on are reported: those not yet reported, instead of network events; or, next to
/// network events, those that were reported but have been left alone so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    First,
    Again,
}

/// The caller's array.
struct Events {
    list: *mut epoll_event,
    /// How many entries the kernel has written.
    fresh: c_int,
    len: c_int,
    max: c_int,
}

impl Events {
    fn new(list: *mut epoll_event, fresh: c_int, max: c_int) -> Self {
        Self { list, fresh, len: fresh, max }
    }

    fn is_full(&self) -> bool {
        self.len == self.max
    }

    /// Adds an event to an array that is not full. The kernel never reports a registration twice in one call: a server
    /// that frees a connection at its first event must not see it again.
    fn add(&mut self, event: epoll_event) {
        for at in 0..self.fresh as usize {
            // SAFETY: `fresh` entries are written. They are packed, hence unaligned.
            unsafe {
                let known = self.list.add(at);
                let mut merged = known.read_unaligned();
                if merged.u64 == event.u64 {
                    merged.events |= event.events;
                    return known.write_unaligned(merged);
                }
            }
        }
        // SAFETY: the array has `max` entries, and is not full.
        unsafe { self.list.add(self.len as usize).write_unaligned(event) };
        self.len += 1;
    }
}

/// Adds readiness for handshakes that can go on, as the kernel would: once per change if edge-triggered, otherwise
/// until the server continues them. Returns how many events the server gets.
fn report(runtime: &Runtime, epfd: c_int, mut events: Events, which: Report) -> c_int {
    let mut count = 0_u32;
    runtime.ready.retain(|handshake| {
        if handshake.is_taken() || !handshake.is_current() {
            return false;
        }
        if events.is_full() || handshake.reported.get() == (which == Report::First) {
            return true;
        }
        // A one-shot registration is reported only if a result is owed, since only the kernel can disarm it; other
        // handshakes are called in.
        let may_report = |known: &Registration| !known.one_shot() || handshake.is_owed();
        let Some(registration) = fds::settled_registration(handshake.fd.get()).filter(may_report) else {
            return true;
        };
        let wanted = match registration.events & (libc::EPOLLIN | libc::EPOLLOUT) as u32 {
            both if both & libc::EPOLLIN as u32 != 0 => libc::EPOLLIN as u32,
            only_out => only_out,
        };
        if registration.epfd != epfd || wanted == 0 {
            return true;
        }
        // In each turn HAProxy has many ready handshakes that it has not registered: ask the kernel only about those to
        // be reported.
        if !handshake.is_connected() {
            return false;
        }
        events.add(epoll_event { events: wanted, u64: registration.cookie });
        count += 1;
        handshake.reported.set(true);
        !registration.edge_triggered()
    });
    slot().event_n(Event::SyntheticWakeups, u64::from(count));
    suspension::reported(count);
    events.len
}
