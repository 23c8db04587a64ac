//! One runtime per thread: which handshake runs, which operations wait, and which handshakes can go on.
//!
//! A handshake that needs a signature or a shared secret submits an [`Operation`] to its thread's batch and is
//! suspended ([`Runtime::submit`]). Eight operations of a kind run together as soon as the eighth is queued; fewer run
//! when the event loop has nothing else to do. Handshakes whose operation has been answered are reported to the server
//! as readable (`event_loop/epoll.rs`), and go on when it calls into libssl again, or before the thread blocks
//! (`event_loop/loans.rs`).
//!
//! All state is in cells: slices re-enter, so no `&mut` may be held across a call into one.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::ops::Range;
use core::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hasten_batch::{Request, Verdict, Waker, device};
use hasten_telemetry::{Doubt, Event, Reason, slot};

use crate::config;
use crate::event_loop::fds;
use crate::event_loop::turn::Turn;
use crate::handshake::ready::ReadyRing;
use crate::handshake::{Handshake, State, slice, suspension};
use crate::host::OpenSsl;
use crate::openssl::exchange::Exchange;
use crate::openssl::shortcuts::Role;
use crate::openssl::sign::SigningSlot;
use crate::openssl::tickets::Tickets;
use crate::openssl::{SSL_get_state, Ssl};
use crate::stack;

/// The number of handshakes that a thread may have suspended at once, at two or three kilobytes of frames each; beyond
/// that, operations run at once.
pub(crate) const MAX_HANDSHAKES: usize = 1024;

/// Idle handshakes that keep the memory for their frames.
const KEPT: usize = 64;

/// Suspended handshakes of all threads. While there are none, there is no need to check whether an SSL is suspended, or
/// to call one in.
pub(crate) static SUSPENDED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static RUNTIME: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
    static AT_THREAD_EXIT: HandOver = const { HandOver };
}

/// Runtimes whose threads have ended, for new threads.
pub(crate) static ENDED: Mutex<Ended> = Mutex::new(Vec::new());

pub(crate) type Ended = Vec<Recycled>;

pub(crate) struct Recycled(&'static Runtime);

// SAFETY: a runtime without suspended handshakes holds nothing bound to its thread.
unsafe impl Send for Recycled {}

struct HandOver;

impl Drop for HandOver {
    fn drop(&mut self) {
        let Some(runtime) = RUNTIME.get() else { return };
        runtime.call_in_all();
        RUNTIME.set(None);
        // A handshake that could not be called in still refers to the runtime.
        if !runtime.suspended.borrow().is_empty() {
            return;
        }
        runtime.turn.reset();
        runtime.shrink(0);
        if let Ok(mut ended) = ENDED.lock() {
            ended.push(Recycled(runtime));
        }
    }
}

pub(crate) struct Runtime {
    /// The handshake running in a slice.
    running: Cell<*const Handshake>,
    /// The SSL whose handshake function is running, in a slice or not, and how deep on the stack.
    driving: Cell<(*mut Ssl, usize)>,
    /// How deep on the stack a client's handshake function is running; 0 if none is.
    client: Cell<usize>,
    pub(crate) ready: ReadyRing,
    /// All suspended handshakes.
    pub(crate) suspended: RefCell<Vec<*const Handshake>>,
    free: Cell<*const Handshake>,
    made: Cell<usize>,
    /// Handshakes on the free list.
    idle: Cell<usize>,
    /// How deep the stack may get before a suspended handshake has to be called in; 0 if none is suspended.
    near: Cell<usize>,
    /// The innermost call of a handshake function that has not returned, by its number; 0 outside of them.
    innermost: Cell<u64>,
    /// The number of the latest such call.
    latest: Cell<u64>,
    /// The stack that the system gave this thread.
    stack: Cell<(usize, usize)>,
    /// The running handshake is being called in: its reads find nothing, and the rest is left for the server to read.
    pub(crate) is_calling_in: Cell<bool>,
    /// The running handshake is being made to fail.
    pub(crate) is_cancelling: Cell<bool>,
    /// The count of other threads' requests when this thread last checked.
    pub(crate) heeded: Cell<u32>,
    pub(crate) turn: Turn,
    pub(crate) batch: Batch,
    pub(crate) signing: SigningSlot,
    pub(crate) exchange: Exchange,
    pub(crate) tickets: Tickets,
}

/// The operations of a thread.
pub(crate) type Batch = hasten_batch::Batch<Owner, OpenSsl>;

/// An operation, stored in the handshake that waits for it.
pub(crate) type Operation = hasten_batch::Operation<Owner>;

/// The suspended handshake that waits for an operation.
#[derive(Clone, Copy)]
pub(crate) struct Owner(*const Handshake);

impl Waker for Owner {
    fn wake(self) {
        // SAFETY: handshakes are never freed, and this is the thread that suspended it.
        let handshake = unsafe { &*self.0 };
        handshake.becomes_ready();
        handshake.runtime.ready.push(handshake);
    }
}

impl Runtime {
    /// This thread's runtime, created on first use.
    pub(crate) fn get() -> &'static Runtime {
        match RUNTIME.get() {
            Some(runtime) => runtime,
            None => Self::make(),
        }
    }

    /// This thread's runtime, if it has ever driven a handshake or an event loop.
    #[inline]
    pub(crate) fn existing() -> Option<&'static Runtime> {
        RUNTIME.get()
    }

    #[cold]
    fn make() -> &'static Runtime {
        let recycled = ENDED.lock().ok().and_then(|mut ended| ended.pop());
        let stack = slice::native_stack();
        stack::note(&stack);
        let runtime = match recycled {
            Some(Recycled(runtime)) => runtime.on(stack),
            None => Self::allocate(stack),
        };
        RUNTIME.set(Some(runtime));
        // Registers this thread for the hand-over at its end.
        let _ = AT_THREAD_EXIT.try_with(|_| ());
        runtime
    }

    /// Hands the runtime of an ended thread to a new one.
    fn on(&'static self, stack: Range<usize>) -> &'static Runtime {
        self.stack.set((stack.start, stack.end));
        self
    }

    /// Never freed: handshakes refer to it.
    fn allocate(stack: Range<usize>) -> &'static Runtime {
        Box::leak(Box::new(Runtime {
            running: Cell::new(null()),
            driving: Cell::new((null_mut(), 0)),
            client: Cell::new(0),
            innermost: Cell::new(0),
            latest: Cell::new(0),
            ready: ReadyRing::new(),
            suspended: RefCell::default(),
            free: Cell::new(null()),
            made: Cell::new(0),
            idle: Cell::new(0),
            near: Cell::new(0),
            stack: Cell::new((stack.start, stack.end)),
            is_calling_in: Cell::new(false),
            is_cancelling: Cell::new(false),
            heeded: Cell::new(0),
            turn: Turn::new(),
            batch: Batch::new(&config::get().engine),
            signing: SigningSlot::default(),
            exchange: Exchange::default(),
            tickets: Tickets::default(),
        }))
    }

    /// This thread's runtime, if its server is inside a handshake function right now.
    #[inline]
    pub(crate) fn in_handshake() -> Option<&'static Runtime> {
        RUNTIME.get().filter(|runtime| runtime.is_inside())
    }

    /// Whether the server is inside a handshake function right now.
    ///
    /// A callback may have left the function, by longjmp as those of Perl and Ruby do, or by a switch to another
    /// coroutine on this stack, as those of greenlets do; the stack is then shorter than it was.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        let (ssl, depth) = self.driving.get();
        if ssl.is_null() {
            return false;
        }
        let stack = self.native_stack();
        if !stack.contains(&depth) {
            // A fiber's function: it goes on when the fiber does, which is not now if this is the thread's own stack.
            return !stack.contains(&slice::here());
        }
        if slice::here() < depth {
            return true;
        }
        self.was_left();
        false
    }

    #[cold]
    fn was_left(&self) {
        // SAFETY: null, or a handshake, which is never freed.
        let running = unsafe { self.running.get().as_ref() };
        self.forget_nesting();
        if let Some(handshake) = running
            && handshake.state.get() == State::Running
        {
            self.is_calling_in.set(false);
            self.is_cancelling.set(false);
            if self.suspended.borrow().iter().any(|other| core::ptr::eq(*other, handshake)) {
                count_suspended(handshake, false);
            }
            // A coroutine may come back to it, so it is not used for another connection until it has returned.
            handshake.disown();
        }
    }

    fn forget_nesting(&self) {
        self.innermost.set(0);
        self.running.set(null());
        self.driving.set((null_mut(), 0));
        self.tickets.forget();
    }

    /// Calls of handshake functions take turns on this thread, on one stack or on several, so the innermost one is not
    /// the one that runs. Nothing is suspended in such a process: frames could be taken for those of another handshake.
    #[cold]
    fn lost_track(&self) {
        self.forget_nesting();
        suspension::end(Doubt::Coroutines);
    }

    /// Runs a handshake function, or code that does not belong to the running one, and then continues with what was
    /// running before.
    fn nested<R>(
        &self,
        running: *const Handshake,
        driving: (*mut Ssl, usize),
        body: impl FnOnce(u64) -> R,
    ) -> R {
        let number = self.latest.get() + 1;
        self.latest.set(number);
        let outer = self.innermost.replace(number);
        let outer_running = self.running.replace(running);
        let outer_driving = self.driving.replace(driving);
        let result = body(number);
        if self.innermost.get() == number {
            self.innermost.set(outer);
            self.running.set(outer_running);
            self.driving.set(outer_driving);
        } else {
            self.lost_track();
        }
        result
    }

    /// Whether the server is inside one for this SSL: libssl's functions call each other.
    #[inline]
    pub(crate) fn is_driving(&self, ssl: *mut Ssl) -> bool {
        self.driving.get().0 == ssl
    }

    /// The handshake running in a slice, if any.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Handshake> {
        // SAFETY: `running` is null or a handshake, which is never freed.
        let handshake = unsafe { self.running.get().as_ref() }?;
        if !handshake.slice.is_current() {
            self.lost_track();
            return None;
        }
        Some(handshake)
    }

    /// The stack on which slices can run.
    pub(crate) fn native_stack(&self) -> Range<usize> {
        let (start, end) = self.stack.get();
        start..end
    }

    /// Whether a handshake of this thread is suspended, as far as can be told: a signal handler may ask at any time.
    #[inline]
    pub(crate) fn has_suspended(&self) -> bool {
        self.suspended.try_borrow().is_ok_and(|list| !list.is_empty())
    }

    /// Calls in handshakes whose place on the stack the server's frames are about to reach.
    #[inline]
    pub(crate) fn keep_clear(&self) {
        if slice::here() < self.near.get() && !self.is_inside() {
            self.clear();
        }
    }

    #[cold]
    fn clear(&self) {
        self.call_in_if(|handshake| handshake.has_frames() && slice::here() < handshake.slice.near());
        self.note_depth();
    }

    fn note_depth(&self) {
        let suspended = self.suspended.borrow();
        let near = suspended.iter().filter_map(|handshake| {
            // SAFETY: handshakes are never freed.
            let handshake = unsafe { &**handshake };
            handshake.has_frames().then(|| handshake.slice.near())
        });
        self.near.set(near.max().unwrap_or(0));
    }

    /// Whether a batch is likely enough to justify suspending.
    pub(crate) fn expects_company(&self) -> bool {
        let turn = &self.turn;
        turn.handshakes.get() > 1
            || turn.events.get() > 1
            || turn.previous_handshakes.get() > 1
            || self.batch.has_waiting()
            || !self.ready.is_empty()
            || config::get().eager
    }

    /// Runs a handshake function without queueing its operations.
    pub(crate) fn inline<R>(&self, ssl: *mut Ssl, body: impl FnOnce() -> R) -> R {
        self.forget_notes();
        self.nested(self.running.get(), (ssl, slice::here()), |_| body())
    }

    /// Runs a server's handshake of hasten's own, without queueing its operations; returns what `drive`, the original of
    /// `SSL_do_handshake`, does. No handshake of this thread is running.
    ///
    /// # Safety
    ///
    /// `ssl` is alive, and only this thread uses it.
    pub(crate) unsafe fn shake_at_once(
        &self,
        ssl: *mut Ssl,
        drive: unsafe extern "C" fn(*mut Ssl) -> c_int,
    ) -> c_int {
        // SAFETY: the contract.
        unsafe {
            self.tickets.begin(ssl, SSL_get_state.get()(ssl));
            self.inline(ssl, || drive(ssl))
        }
    }

    /// Runs a client's handshake function. It is never suspended, and the server's handshakes take no notice of it; only what
    /// libssl asks of libcrypto meanwhile is known to be a client's. On a stack other than the thread's own, it is not.
    pub(crate) fn as_client<R>(&self, body: impl FnOnce() -> R) -> R {
        let here = slice::here();
        if !self.native_stack().contains(&here) {
            return body();
        }
        self.forget_notes();
        let outer = self.client.replace(here);
        let result = body();
        self.client.set(outer);
        result
    }

    /// The side of the handshake whose function is running right now.
    #[inline]
    pub(crate) fn role(&self) -> Option<Role> {
        if self.is_inside() {
            return Some(Role::Server);
        }
        // As in `is_inside`: a callback may have left the function, and the stack is then shorter than it was.
        let here = slice::here();
        (here < self.client.get() && self.native_stack().contains(&here)).then_some(Role::Client)
    }

    /// Runs code that does not belong to the running handshake: a server callback that does TLS of its own.
    pub(crate) fn aside<R>(&self, body: impl FnOnce() -> R) -> R {
        let outer = self.client.replace(0);
        let result = self.nested(null(), (null_mut(), 0), |_| body());
        self.client.set(outer);
        result
    }

    /// Drops the notes on operations that libssl prepared in an earlier call and never used.
    fn forget_notes(&self) {
        self.signing.clear();
        self.exchange.clear();
    }

    /// Starts a handshake, and runs it until it ends or waits.
    pub(crate) fn begin(&self, handshake: &Handshake) -> State {
        /// # Safety
        ///
        /// `handshake` is the address of a [`Handshake`] of this thread, whose slice runs this.
        unsafe extern "C" fn body(handshake: usize) {
            // SAFETY: the handshake below, which is never freed.
            let handshake = unsafe { &*(handshake as *const Handshake) };
            handshake.invoke();
            handshake.state.set(State::Returned);
        }
        self.step(handshake, slice::here(), || {
            // SAFETY: room on the stack was checked when the handshake was acquired.
            unsafe {
                handshake.slice.begin(&self.native_stack(), body, core::ptr::from_ref(handshake) as usize);
            }
        });
        self.go_on_with_group(handshake)
    }

    /// Runs a suspended handshake until it ends or waits again.
    pub(crate) fn resume(&self, handshake: &Handshake) -> State {
        // SAFETY: it was suspended on this thread, which owns it.
        self.step(handshake, depth_of(handshake), || unsafe { handshake.slice.resume() });
        self.go_on_with_group(handshake)
    }

    /// `depth` is a stack address that all frames of the step lie below.
    fn step(&self, handshake: &Handshake, depth: usize, run: impl FnOnce()) {
        self.forget_notes();
        handshake.state.set(State::Running);
        self.nested(handshake, (handshake.ssl(), depth), |number| {
            handshake.slice.mark(number);
            run();
        });
    }

    /// An eighth operation of a kind completes its group, and its handshake goes on at once.
    fn go_on_with_group(&self, handshake: &Handshake) -> State {
        while handshake.state.get() == State::Waiting {
            // SAFETY: a waiting handshake's operation waits in the batch.
            if !unsafe { self.batch.run_if_complete(handshake.operation.get()) } {
                break;
            }
            handshake.becomes_ready();
            slot().event(Event::Resumed);
            // SAFETY: as in `resume`.
            self.step(handshake, depth_of(handshake), || unsafe { handshake.slice.resume() });
        }
        handshake.state.get()
    }

    /// Whether suspending a handshake is possible, and likely enough to pay.
    pub(crate) fn may_leave(&self) -> bool {
        if !self.batch.can_answer() {
            return false;
        }
        if !suspension::is_on() {
            slot().bypass(Reason::SuspensionOff);
            return false;
        }
        let is_shadowing = !self.turn.comes_back();
        suspension::tell(is_shadowing);
        if is_shadowing {
            slot().bypass(Reason::Shadowed);
            return false;
        }
        self.expects_company() || self.batch.takes_alone()
    }

    /// Queues an operation of the running handshake and suspends that until the operation is answered; the result is
    /// then in `out`.
    pub(crate) fn submit(&self, request: &Request<'_>, out: &mut [u8]) -> Verdict {
        let Some(handshake) = self.running() else { return Verdict::Bypass(Reason::Alone) };
        if handshake.cancelled.get() {
            return Verdict::Cancelled;
        }
        if self.is_calling_in.get() || !self.can_suspend(handshake) {
            return Verdict::Bypass(Reason::NotPolled);
        }
        if !device::is_requested() && !self.batch.engine.may_batch(request.algorithm()) {
            return Verdict::Bypass(Reason::BelowBreakEven);
        }
        // The handshake was started in a slice for a device that does not handle this operation.
        if device::is_requested() && !request.is_rsa() && !self.expects_company() {
            return Verdict::Bypass(Reason::Alone);
        }
        // SAFETY: the handshake is running and waits for nothing, so nothing else accesses these.
        let verdict = unsafe {
            let operation = request.place(Owner(handshake), &mut *handshake.buffers.get());
            let operation = core::ptr::from_mut((*handshake.place.get()).write(operation));
            handshake.operation.set(operation);
            self.batch.submit(operation, self.turn.number.get());
            handshake.state.set(State::Waiting);
            slot().event(Event::Suspended);
            handshake.slice.leave();
            (*handshake.operation.replace(null_mut())).verdict()
        };
        // SAFETY: as above; the operation has left its queue.
        unsafe { (*handshake.buffers.get()).deliver(verdict, out) }
    }

    /// Whether the server will come back to this connection when told it is readable.
    fn can_suspend(&self, handshake: &Handshake) -> bool {
        let (fd, epfd) = (handshake.fd.get(), self.turn.epfd.get());
        if fd < 0 || !self.turn.sleeps() || !core::ptr::eq(handshake.runtime, self) {
            return false;
        }
        // Answers from the current moment have been valid since the first handshake was suspended.
        let any = SUSPENDED.load(Ordering::Relaxed) > 0;
        let is_same = if any { fds::is_still_same_socket } else { fds::is_same_socket };
        let is_non_blocking = if any { fds::is_still_non_blocking } else { fds::is_non_blocking };
        let registered = match fds::registration(fd) {
            Some(registration) => registration.epfd == epfd && !registration.one_shot() && is_same(fd),
            None => self.turn.registers_late.get() && fds::is_accepted(fd) && fds::learn_socket(fd),
        };
        registered && is_non_blocking(fd)
    }

    /// Runs the operation a handshake waits for.
    pub(crate) fn run_operation_of(&self, handshake: &Handshake) {
        // SAFETY: a waiting handshake's operation waits in the batch.
        unsafe { self.batch.run(handshake.operation.get()) }
    }

    /// Takes a handshake out of the queue it waits in; it must then be run to its end.
    pub(crate) fn withdraw(&self, handshake: &Handshake) {
        let operation = handshake.operation.get();
        if handshake.state.get() == State::Waiting {
            // SAFETY: it waits in the batch.
            unsafe { self.batch.withdraw(operation) };
        }
        self.ready.forget(handshake);
        if !operation.is_null() {
            // SAFETY: the operation is stored in its handshake.
            unsafe { (*operation).cancel() };
        }
    }

    /// A handshake to run, or `None` if too many are suspended.
    pub(crate) fn acquire(&'static self) -> Option<&'static Handshake> {
        // SAFETY: the free list holds idle handshakes of this runtime, which are never freed.
        if let Some(handshake) = unsafe { self.free.get().as_ref() } {
            self.free.set(handshake.next_free.replace(null()));
            self.idle.set(self.idle.get() - 1);
            return Some(handshake);
        }
        if self.made.get() == MAX_HANDSHAKES {
            slot().bypass(Reason::NoStack);
            return None;
        }
        self.made.set(self.made.get() + 1);
        Some(Handshake::make(self))
    }

    /// For a forked child: handshakes that could not be called in before the fork belong to the parent.
    pub(crate) fn forget_all(&self) {
        self.batch.forget_all();
        self.ready.clear();
        self.suspended.borrow_mut().clear();
        self.near.set(0);
        SUSPENDED.store(0, Ordering::Relaxed);
    }

    /// Returns to the free list a handshake whose function has returned.
    pub(crate) fn release(&self, handshake: &Handshake) {
        handshake.reset();
        if self.idle.get() >= KEPT {
            handshake.slice.shrink();
        }
        self.idle.set(self.idle.get() + 1);
        handshake.next_free.set(self.free.replace(handshake));
    }

    /// Frees the memory of idle handshakes, except for the first `kept`.
    fn shrink(&self, kept: usize) {
        let mut next = self.free.get();
        let mut at = 0;
        // SAFETY: as `acquire`.
        while let Some(handshake) = unsafe { next.as_ref() } {
            if at >= kept {
                handshake.slice.shrink();
            }
            at += 1;
            next = handshake.next_free.get();
        }
    }
}

/// A handshake called in from deep on the stack runs above its caller.
fn depth_of(handshake: &Handshake) -> usize {
    slice::here().max(handshake.slice.top())
}

/// Counts a handshake as suspended, or as no longer so.
pub(crate) fn count_suspended(handshake: &Handshake, suspended: bool) {
    let list = &handshake.runtime.suspended;
    if suspended {
        if SUSPENDED.fetch_add(1, Ordering::Relaxed) == 0 {
            fds::next_moment();
        }
        list.borrow_mut().push(handshake);
        let near = &handshake.runtime.near;
        near.set(near.get().max(handshake.slice.near()));
    } else {
        SUSPENDED.fetch_sub(1, Ordering::Relaxed);
        let mut list = list.borrow_mut();
        if let Some(at) = list.iter().position(|other| core::ptr::eq(*other, handshake)) {
            list.swap_remove(at);
        }
        if list.is_empty() {
            handshake.runtime.near.set(0);
        }
    }
}
