//! A server's handshake, which can be suspended in the middle to wait for a batch.
//!
//! The server calls `SSL_do_handshake` (or `SSL_accept`, `SSL_read_early_data`) as always. If its handshake has to wait
//! for a batch, the call returns "want read", and the next call for the same SSL resumes it where it stopped. Whatever
//! else the server does with that SSL in between must not enter libssl, whose state machine is in the middle of a step:
//! reads and writes answer "want read", and `SSL_free` first makes the handshake fail.
//!
//! A suspended handshake is a loan: `event_loop/loans.rs` calls it in before its thread blocks anywhere, so nothing
//! ever waits for one.

mod attached;
pub(crate) mod calls;
pub(crate) mod cancel;
mod client;
pub(crate) mod entry;
pub(crate) mod ready;
pub(crate) mod slice;
pub(crate) mod suspension;

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32};

use hasten_batch::Buffers;
use hasten_guard::clock::now;
use hasten_telemetry::{Event, Reason, slot};

use self::attached::{FAILED, SHARED, is_marked, mark, unmark};
pub(crate) use self::attached::{attach, reserve_ex_data, share, suspended};
pub(crate) use self::entry::{Call, EarlyDataFn, HandshakeFn, set_would_block};
use self::entry::{EarlyBuffer, never_called};
use self::slice::Slice;
use crate::event_loop::{fds, kernel};
use crate::hooks::original;
use crate::openssl::errors::Errors;
use crate::openssl::shortcuts::{self, Role};
use crate::openssl::*;
use crate::runtime::{Operation, Runtime, count_suspended};
use crate::start;

/// Early data is read into memory of the handshake, because the caller's buffer is gone when the call is resumed; a
/// call returns at most one TLS record.
const EARLY_DATA: usize = 16 << 10;

/// There is no result yet.
const NONE: u8 = 0;
/// The server was told to wait, and the function has since returned.
const OWED: u8 = 1;
/// The server has received the result.
const TAKEN: u8 = 2;

/// One of a thread's handshakes. Handshakes are never freed, because another thread may access one that it found
/// attached to an SSL.
pub(crate) struct Handshake {
    pub(crate) slice: Slice,
    pub(crate) runtime: &'static Runtime,
    pub(crate) state: Cell<State>,
    pub(crate) ssl: AtomicPtr<Ssl>,
    pub(crate) fd: Cell<c_int>,
    pub(crate) call: Cell<Call>,
    pub(crate) result: Cell<c_int>,
    /// errno when the function returned.
    error_number: Cell<c_int>,
    /// Whether the result is there for the next call, on any thread.
    outcome: AtomicU8,
    early_len: Cell<usize>,
    early_data: Cell<*mut u8>,
    /// The operation it waits for, in `place`, or null.
    pub(crate) operation: Cell<*mut Operation>,
    pub(crate) place: UnsafeCell<MaybeUninit<Operation>>,
    pub(crate) buffers: UnsafeCell<Buffers>,
    /// The errors that libssl reported outside of a call by the server.
    pub(crate) errors: Errors,
    pub(crate) cancelled: Cell<bool>,
    /// Whether another thread has freed the SSL.
    pub(crate) is_orphan: AtomicBool,
    /// The process that started it: a forked child has only the frames of the forking thread.
    pub(crate) process: Cell<u32>,
    /// Identifies the connection among those that have had this descriptor.
    generation: Cell<u64>,
    /// Whether it has been reported to the server as readable since it became ready.
    pub(crate) reported: Cell<bool>,
    /// When it became ready.
    ready_since: Cell<u64>,
    /// How often the server called while the operation was queued.
    calls: Cell<u32>,
    /// References to the SSL that were taken while it was suspended.
    pub(crate) references: AtomicU32,
    pub(crate) next_free: Cell<*const Handshake>,
}

// SAFETY: other threads touch only the atomics, and `runtime`, which is immutable.
unsafe impl Sync for Handshake {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// On the free list.
    Idle,
    /// Running in its slice.
    Running,
    /// Its operation is queued.
    Waiting,
    /// Its operation is answered.
    Ready,
    /// The function has returned.
    Returned,
}

/// # Safety
///
/// As for `SSL_do_handshake` or `SSL_accept`, whichever `original` is: `ssl` is a live SSL that no other thread of the
/// server uses meanwhile.
pub(crate) unsafe fn do_handshake(original: HandshakeFn, ssl: *mut Ssl) -> c_int {
    // SAFETY: the server's call, forwarded.
    unsafe { drive(ssl, Call::Handshake(original)) }
}

/// Programs that make a few connections and end, as most that call this do, are spared the preparations.
///
/// # Safety
///
/// As for `SSL_connect`: `ssl` is a live SSL that no other thread of the program uses meanwhile.
pub(crate) unsafe fn connect(original: HandshakeFn, ssl: *mut Ssl) -> c_int {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    // SAFETY: the program's call, forwarded.
    unsafe {
        if !start::was_prepared() && suspended(ssl).is_none() {
            let begins = SSL_in_before.get()(ssl) == 1;
            if BEGUN.fetch_add(u32::from(begins), Relaxed) + 1 < start::first_trial() {
                return original(ssl);
            }
        }
        do_handshake(original, ssl)
    }
}

/// # Safety
///
/// As for `SSL_read_early_data`: `ssl` is a live SSL that no other thread of the server uses meanwhile, `data` is valid
/// for writes of `len` bytes, and `read` is valid for a write.
pub(crate) unsafe fn read_early_data(
    original: EarlyDataFn,
    ssl: *mut Ssl,
    data: *mut c_void,
    len: usize,
    read: *mut usize,
) -> c_int {
    // SAFETY: the server's call, forwarded.
    unsafe { drive(ssl, Call::EarlyData(original, EarlyBuffer { data, len, read })) }
}

/// Handles a call of one of the handshake functions.
///
/// # Safety
///
/// `ssl` is a live SSL that no other thread of the server uses meanwhile. The function in `call` is the original of the
/// one the server called, and the buffer, if any, stays valid until this returns.
pub(crate) unsafe fn drive(ssl: *mut Ssl, call: Call) -> c_int {
    // SAFETY: as the contract says; the calls are those the server made.
    unsafe {
        if !start::is_ready() && suspended(ssl).is_none() {
            return call.invoke(ssl);
        }
        let runtime = Runtime::get();
        runtime.heed_others();
        runtime.keep_clear();
        let resumed = match suspended_here(runtime, ssl, call) {
            Ok(resumed) => resumed,
            Err(result) => return result,
        };
        if runtime.is_inside() {
            return drive_inside(runtime, resumed, ssl, call);
        }
        if resumed.is_none() && SSL_is_init_finished.get()(ssl) == 1 {
            return call.invoke(ssl);
        }
        if resumed.is_none() && SSL_is_server.get()(ssl) == 0 {
            return client::drive(runtime, ssl, call);
        }
        let result = drive_outside(runtime, resumed, ssl, call);
        count_outcome(ssl, result);
        result
    }
}

/// The suspended handshake of `ssl`, if this thread has one; or the call's result, if another thread's handshake had to
/// be called in.
///
/// # Safety
///
/// As [`drive`], and `runtime` is this thread's.
unsafe fn suspended_here<'a>(
    runtime: &Runtime,
    ssl: *mut Ssl,
    call: Call,
) -> Result<Option<&'a Handshake>, c_int> {
    // SAFETY: as `drive`.
    unsafe {
        match suspended(ssl) {
            Some(handshake) if !core::ptr::eq(handshake.runtime, runtime) => {
                if !handshake.is_called_in(ssl) {
                    return Err(call.would_block());
                }
                if handshake.take() {
                    return Err(handshake.hand_over(ssl, call));
                }
                Ok(None)
            }
            resumed => Ok(resumed),
        }
    }
}

/// A call from inside a handshake of this thread, on the same SSL or another.
///
/// # Safety
///
/// As [`drive`], and `runtime` is this thread's.
unsafe fn drive_inside(runtime: &Runtime, resumed: Option<&Handshake>, ssl: *mut Ssl, call: Call) -> c_int {
    // SAFETY: as `drive`.
    unsafe {
        match resumed {
            // Not resumed inside another handshake: its turn comes in the event loop.
            Some(_) => call.would_block(),
            None if runtime.is_driving(ssl) => call.invoke(ssl),
            None => runtime.aside(|| call.invoke(ssl)),
        }
    }
}

/// A call from outside, for a server handshake that has not ended.
///
/// # Safety
///
/// As [`drive`]. `runtime` is this thread's, and `resumed` is the suspended handshake of `ssl`, if it has one.
unsafe fn drive_outside(
    runtime: &'static Runtime,
    resumed: Option<&Handshake>,
    ssl: *mut Ssl,
    call: Call,
) -> c_int {
    runtime.turn.shakes.set(true);
    // SAFETY: as `drive`.
    unsafe {
        // No longer true once the first call has looked for a hello, whether or not there was one.
        let begins = SSL_in_before.get()(ssl) == 1;
        if begins {
            shortcuts::before_handshake(runtime, Role::Server);
        }
        runtime.tickets.begin(ssl, SSL_get_state.get()(ssl));
        if begins {
            slot().event(Event::HandshakeStarted);
            // A server may use an SSL again, for another connection.
            unmark(ssl, FAILED);
        }
        match resumed {
            Some(handshake) => handshake.go_on(runtime, call),
            None => first_call(runtime, ssl, call),
        }
    }
}

/// A call for an SSL whose handshake is not suspended.
///
/// # Safety
///
/// As [`drive`]. The handshake of `ssl` is not suspended, and `runtime` is this thread's.
unsafe fn first_call(runtime: &'static Runtime, ssl: *mut Ssl, call: Call) -> c_int {
    runtime.turn.handshakes.set(runtime.turn.handshakes.get() + 1);
    runtime.turn.called(ssl);
    // SAFETY: as `drive`.
    unsafe {
        let result = match slice_for(runtime, ssl) {
            Some(handshake) => handshake.begin(ssl, call),
            None => runtime.inline(ssl, || call.invoke(ssl)),
        };
        if result <= 0 {
            runtime.turn.blocked(ssl);
            runtime.expect_registration(ssl);
            if suspension::is_watching() {
                fds::set_shaking(descriptor(ssl), true);
            }
        }
        result
    }
}

/// Counts a handshake that has ended, successfully or not, and one that failed only once: some servers call again and
/// again.
///
/// # Safety
///
/// As [`drive`]. `result` is what the handshake's function returned, and its errors are in this thread's queue.
unsafe fn count_outcome(ssl: *mut Ssl, result: c_int) {
    // SAFETY: as `drive`. A handshake that is suspended, or waits for the network, has not ended.
    unsafe {
        if suspended(ssl).is_some() {
            return;
        }
        if result > 0 && SSL_is_init_finished.get()(ssl) == 1 {
            slot().event(Event::HandshakeFinished);
            slot().event_n(Event::HybridHandshake, u64::from(is_hybrid(ssl)));
            if suspension::is_watching() {
                fds::set_shaking(SSL_get_rfd.get()(ssl), false);
            }
        } else if result <= 0
            && matches!(original::SSL_get_error.get()(ssl, result), SSL_ERROR_SSL | SSL_ERROR_SYSCALL)
            && !is_marked(ssl, FAILED)
        {
            slot().event(Event::HandshakeFailed);
            mark(ssl, FAILED);
        }
    }
}

/// Whether the group of a finished handshake is one of the hybrids with ML-KEM.
///
/// # Safety
///
/// `ssl` is alive.
unsafe fn is_hybrid(ssl: *mut Ssl) -> bool {
    // SAFETY: the control reads a field of the SSL.
    let group = unsafe { SSL_ctrl.get()(ssl, SSL_CTRL_GET_NEGOTIATED_GROUP, 0, null_mut()) };
    // Groups without a number of OpenSSL's own are reported by that of TLS.
    (0x11eb..=0x11ed).contains(&(group ^ TLSEXT_NID_UNKNOWN))
}

/// A handshake to run in, if suspending it is possible and likely to pay.
///
/// # Safety
///
/// `ssl` is as for [`drive`].
unsafe fn slice_for(runtime: &'static Runtime, ssl: *mut Ssl) -> Option<&'static Handshake> {
    if !runtime.may_leave() {
        return None;
    }
    // SAFETY: reads fields of the SSL.
    let unfit = unsafe { unfit(ssl) };
    let unfit =
        unfit.or_else(|| (!slice::has_room(&runtime.native_stack())).then_some(Reason::NotNativeStack));
    if let Some(reason) = unfit {
        slot().bypass(reason);
        return None;
    }
    runtime.acquire()
}

/// Why a handshake cannot be suspended. A server that uses OpenSSL's own asynchronous jobs already runs on their
/// stacks; DTLS retransmits when its timer expires, in whatever state it is; an SSL with several owners may be freed by
/// one while another goes on; and callbacks that run after the point of suspension must be able to run wherever the
/// handshake is called in.
///
/// # Safety
///
/// `ssl` is as for [`drive`].
unsafe fn unfit(ssl: *mut Ssl) -> Option<Reason> {
    // SAFETY: as `drive`.
    unsafe {
        let is_async = SSL_ctrl.get()(ssl, SSL_CTRL_MODE, 0, null_mut()) & SSL_MODE_ASYNC != 0;
        // A child that the C library does not know about has no runtime of its own either.
        if is_async || SSL_is_dtls.get()(ssl) != 0 || is_marked(ssl, SHARED) || fds::is_vfork_child() {
            Some(Reason::NotPolled)
        } else if !start::is_sound() || suspension::is_in_bio() {
            Some(Reason::UnknownLibrary)
        } else {
            (!suspension::allows_callbacks_of(ssl)).then_some(Reason::Callback)
        }
    }
}

impl Handshake {
    pub(crate) fn make(runtime: &'static Runtime) -> &'static Handshake {
        Box::leak(Box::new(Handshake {
            slice: Slice::new(),
            runtime,
            state: Cell::new(State::Idle),
            ssl: AtomicPtr::new(null_mut()),
            fd: Cell::new(-1),
            call: Cell::new(Call::Handshake(never_called)),
            result: Cell::new(0),
            error_number: Cell::new(0),
            outcome: AtomicU8::new(NONE),
            early_len: Cell::new(0),
            early_data: Cell::new(null_mut()),
            operation: Cell::new(null_mut()),
            place: UnsafeCell::new(MaybeUninit::uninit()),
            buffers: UnsafeCell::new(Buffers::NEW),
            errors: Errors::default(),
            cancelled: Cell::new(false),
            is_orphan: AtomicBool::new(false),
            process: Cell::new(0),
            generation: Cell::new(0),
            reported: Cell::new(false),
            ready_since: Cell::new(0),
            calls: Cell::new(0),
            references: AtomicU32::new(0),
            next_free: Cell::new(core::ptr::null()),
        }))
    }

    pub(crate) fn ssl(&self) -> *mut Ssl {
        self.ssl.load(Relaxed)
    }

    /// Handles the first call for this SSL since it last waited for the network.
    ///
    /// # Safety
    ///
    /// As [`drive`]. `self` is fresh from [`slice_for`], so it is this thread's, and its slice has room on the current
    /// stack.
    unsafe fn begin(&self, ssl: *mut Ssl, call: Call) -> c_int {
        self.ssl.store(ssl, Relaxed);
        // SAFETY: as `drive`.
        self.set_descriptor(unsafe { descriptor(ssl) });
        self.process.set(start::generation());
        self.keep_call(call);
        // SAFETY: as `drive`.
        unsafe { self.settle(self.runtime.begin(self), call, false) }
    }

    /// Keeps the call, and for early data a buffer that outlives it.
    fn keep_call(&self, call: Call) {
        self.call.set(call);
        if matches!(call, Call::EarlyData(..)) && self.early_data.get().is_null() {
            self.early_data.set(Box::leak(Box::new([0_u8; EARLY_DATA])).as_mut_ptr());
        }
    }

    /// Handles another call for an SSL whose handshake is suspended.
    ///
    /// # Safety
    ///
    /// As [`drive`]. `self` is the suspended handshake of that SSL, and this is its thread, whose runtime is `runtime`.
    unsafe fn go_on(&self, runtime: &Runtime, call: Call) -> c_int {
        if self.has_to_wait() {
            return call.would_block();
        }
        runtime.ready.forget(self);
        slot().event(Event::Resumed);
        // SAFETY: as `drive`; other connections may have left errors in this thread's queue, which libssl would have
        // cleared on entry.
        unsafe {
            if ERR_peek_error.get()() != 0 {
                ERR_clear_error.get()();
            }
            if self.state.get() != State::Returned {
                let state = runtime.resume(self);
                return self.settle(state, call, true);
            }
            if !self.take() {
                return call.would_block();
            }
            self.raise();
            self.settle(State::Returned, call, true)
        }
    }

    /// Whether this call cannot resume the handshake.
    fn has_to_wait(&self) -> bool {
        let waits = self.state.get() == State::Waiting && !self.is_pressed();
        // If the server's frames are in the way, where its callbacks may run, it has to be resumed from another stack
        // depth.
        let is_covered = self.slice.is_covered() || !self.is_on_its_stack();
        waits || (is_covered && self.state.get() != State::Returned)
    }

    /// Whether its function was suspended, so that its frames must be put back to go on.
    pub(crate) fn has_frames(&self) -> bool {
        matches!(self.state.get(), State::Waiting | State::Ready)
    }

    /// Whether its frames cannot be put back at this moment: either the thread is on another stack, a fiber's or a
    /// signal's, or frames of the server are in their place and another thread may access them.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.has_frames()
            && (!self.is_on_its_stack() || (self.slice.is_covered() && !kernel::has_one_thread()))
    }

    fn is_on_its_stack(&self) -> bool {
        self.runtime.native_stack().contains(&slice::here())
    }

    /// Keeps what the function returned until the server asks for it.
    pub(crate) fn owe(&self, error_number: c_int) {
        self.error_number.set(error_number);
        self.errors.take();
        self.reported.set(false);
        // A thread that now closes or moves the descriptor need not wait.
        fds::set_suspended(self.fd.get(), false);
        self.outcome.store(OWED, Release);
    }

    /// Whether the result is there to be taken.
    pub(crate) fn is_owed(&self) -> bool {
        self.outcome.load(Acquire) == OWED
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.outcome.load(Relaxed) == TAKEN
    }

    /// Takes the result; returns whether this caller, of all threads that may try, is the one that got it.
    pub(crate) fn take(&self) -> bool {
        self.outcome.compare_exchange(OWED, TAKEN, AcqRel, Relaxed).is_ok()
    }

    fn raise(&self) {
        self.errors.raise();
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = self.error_number.get() };
    }

    /// Gives the result to a thread other than the handshake's own, which has taken it.
    ///
    /// # Safety
    ///
    /// As [`drive`]. `ssl` is the SSL of this handshake, and this call has taken its result ([`Handshake::take`]).
    unsafe fn hand_over(&self, ssl: *mut Ssl, call: Call) -> c_int {
        let result = self.result.get();
        // SAFETY: as `drive`. From here on the handshake's own thread touches neither the SSL nor the result.
        unsafe {
            ERR_clear_error.get()();
            call.deliver_early_data(self);
            self.raise();
            self.let_go(ssl);
            count_outcome(ssl, result);
        }
        result
    }

    /// Whether this process has started it, and not the one that it was forked from.
    fn is_of_this_process(&self) -> bool {
        self.process.get() == start::generation()
    }

    /// Releases the SSL to its server after another thread has taken the result; the rest is up to the handshake's own
    /// thread.
    ///
    /// # Safety
    ///
    /// `ssl` is the live SSL of this handshake, the caller has taken the result ([`Handshake::take`]), and no other
    /// thread of the server uses `ssl` meanwhile.
    pub(crate) unsafe fn let_go(&self, ssl: *mut Ssl) {
        // SAFETY: as `drive`.
        unsafe { attach(ssl, null_mut()) };
    }

    /// Reports to the server how far the handshake has got.
    ///
    /// # Safety
    ///
    /// As [`drive`], for the SSL of this handshake, on the handshake's own thread. `state` is the state its function
    /// has reached, and `call` is the server's current call.
    unsafe fn settle(&self, state: State, call: Call, was_suspended: bool) -> c_int {
        if state == State::Returned {
            let result = self.result.get();
            // SAFETY: as `drive`.
            unsafe {
                call.deliver_early_data(self);
                if was_suspended {
                    self.detach();
                }
            }
            self.runtime.release(self);
            return result;
        }
        // SAFETY: as `drive`.
        if !was_suspended && unsafe { attach(self.ssl(), core::ptr::from_ref(self).cast_mut()) } {
            fds::set_suspended(self.fd.get(), true);
            count_suspended(self, true);
        }
        call.would_block()
    }

    /// Whether the operation is done after this call. A server that calls again and again may be waiting in a way that
    /// is not seen, so its operation is then run at once.
    fn is_pressed(&self) -> bool {
        const PATIENT: u32 = 16;
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() > PATIENT {
            self.runtime.run_operation_of(self);
        }
        self.state.get() == State::Ready
    }

    /// Gives the SSL back to its server.
    ///
    /// # Safety
    ///
    /// The SSL of this handshake is alive and refers to it, this is the handshake's own thread, and no other thread of
    /// the server uses the SSL meanwhile.
    pub(crate) unsafe fn detach(&self) {
        if self.ssl().is_null() {
            return;
        }
        let is_shared = self.references.swap(0, Relaxed) > 0;
        if self.outcome.load(Relaxed) == NONE {
            fds::set_suspended(self.fd.get(), false);
        }
        // SAFETY: as `drive`.
        unsafe {
            attach(self.ssl(), null_mut());
            if is_shared {
                mark(self.ssl(), SHARED);
            }
        }
        count_suspended(self, false);
    }

    /// Its function was left in the middle, and returns later or never: until then it belongs to no connection.
    pub(crate) fn disown(&self) {
        fds::set_suspended(self.fd.replace(-1), false);
        self.ssl.store(null_mut(), Release);
    }

    /// Runs in the slice.
    pub(crate) fn invoke(&self) {
        let call = match self.call.get() {
            Call::EarlyData(original, buffer) => {
                let own = EarlyBuffer {
                    data: self.early_data.get().cast(),
                    len: buffer.len.min(EARLY_DATA),
                    read: self.early_len.as_ptr(),
                };
                Call::EarlyData(original, own)
            }
            call @ Call::Handshake(_) => call,
        };
        // SAFETY: the server's call, deeper on the stack of the same thread; the SSL stays alive until the handshake
        // has returned (see `free`).
        self.result.set(unsafe { call.invoke(self.ssl()) });
    }

    /// Forgets the connection it served.
    pub(crate) fn reset(&self) {
        self.state.set(State::Idle);
        self.fd.set(-1);
        self.operation.set(null_mut());
        self.cancelled.set(false);
        self.is_orphan.store(false, Relaxed);
        self.outcome.store(NONE, Relaxed);
        self.errors.clear();
        if self.early_len.replace(0) > 0 {
            // SAFETY: the buffer is this handshake's own. Early data belongs to the client: do not keep it.
            unsafe { core::ptr::write_bytes(self.early_data.get(), 0, EARLY_DATA) };
        }
        self.slice.forget();
        // Last: threads that wait for this handshake see it.
        self.ssl.store(null_mut(), Release);
    }

    /// Learns the descriptor from a read inside the handshake, for servers with a BIO of their own.
    pub(crate) fn reads_from(&self, fd: c_int) {
        if self.fd.get() < 0 {
            self.set_descriptor(fd);
        }
    }

    fn set_descriptor(&self, fd: c_int) {
        self.fd.set(fd);
        self.generation.set(fds::generation(fd));
    }

    /// Whether the descriptor still belongs to the connection: a server may close it and free the SSL later, or never.
    /// Asks the kernel.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_current() && fds::is_same_socket(self.fd.get())
    }

    /// The same, as far as the process has seen.
    pub(crate) fn is_current(&self) -> bool {
        self.generation.get() == fds::generation(self.fd.get())
    }

    /// Whether the server has not come back for it within the time a loop that serves connections needs.
    ///
    /// HAProxy continues one handshake after the other, from a queue of its own: while it does so, a large number takes
    /// longer.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        const PATIENCE_NS: u64 = 50_000_000;
        const PATIENCE_IN_A_CROWD_NS: u64 = 1_000_000_000;
        let patience = if self.runtime.turn.shook.get() { PATIENCE_IN_A_CROWD_NS } else { PATIENCE_NS };
        self.state.get() == State::Ready && now.saturating_sub(self.ready_since.get()) > patience
    }

    pub(crate) fn becomes_ready(&self) {
        self.ready_since.set(now());
        self.state.set(State::Ready);
        self.reported.set(false);
        self.calls.set(0);
    }
}

/// The connection's descriptor, if the SSL reads from one directly.
///
/// # Safety
///
/// `ssl` is as for [`drive`].
unsafe fn descriptor(ssl: *mut Ssl) -> c_int {
    // SAFETY: as `drive`.
    let fd = unsafe { SSL_get_rfd.get()(ssl) };
    let known = fd >= 0 && (fds::is_registered(fd) || fds::is_accepted(fd));
    if known { fd } else { -1 }
}

impl Runtime {
    /// Notes that a handshake now waits for the network on an unregistered descriptor: a server that registers it next
    /// is one that registers late.
    ///
    /// # Safety
    ///
    /// `ssl` is as for [`drive`], and this is the runtime's own thread.
    unsafe fn expect_registration(&self, ssl: *mut Ssl) {
        if self.turn.registers_late.get() {
            return;
        }
        // SAFETY: as `drive`.
        let fd = unsafe { descriptor(ssl) };
        let fd = if fd >= 0 { fd } else { self.turn.last_read.get() };
        if fd >= 0 && !fds::is_registered(fd) {
            self.turn.expected_registration.set(fd);
        }
    }
}
