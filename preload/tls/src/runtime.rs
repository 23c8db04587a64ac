//! One runtime per thread: which handshake runs, which operations wait, and
//! which handshakes can go on.
//!
//! A handshake that needs a signature or a shared secret queues an
//! [`Operation`] and leaves its stack ([`Runtime::submit`]). Eight of a kind
//! run at once as soon as the eighth is queued; fewer when the event loop
//! has nothing else to do ([`Runtime::run_partial`]). Handshakes whose
//! operation is answered are reported to the server as readable
//! (`epoll.rs`), and go on when it calls into libssl again.
//!
//! Everything is in cells: coroutines re-enter, so no `&mut` may be held
//! across a switch of stacks.

mod offload;
mod surplus;

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hasten_telemetry::{Event, Reason, slot};

use crate::batch::{Engine, LANES, Operation, Verdict, Work};
use crate::clock::now;
use crate::config;
use crate::coroutine::{self, Stack};
use crate::device::{self, Device};
use crate::exchange::Exchange;
use crate::fds;
use crate::handshake::{Handshake, State};
use crate::openssl::Ssl;
use crate::ready::ReadyRing;
use crate::sign::SigningSlot;
use crate::tickets::Tickets;
use crate::turn::Turn;
use surplus::Demand;

/// Handshakes a thread may have suspended at once. Each holds a stack of
/// which it touches some 20 KiB; beyond, operations run at once.
pub(crate) const MAX_HANDSHAKES: usize = 1024;

/// The same for all threads of a process. A stack is two memory maps, of
/// which the kernel allows 65,530 by default, and the server needs some, too.
const MAX_STACKS: u32 = 4096;
static STACKS: AtomicU32 = AtomicU32::new(0);

/// Turns of the event loop that an operation waits for company while every
/// turn brings the server something to do. A busy nginx accepts one connection
/// per turn, so a group of eight takes some eight turns of 150 to 300 µs; only
/// operations of a rare kind wait this long.
const PATIENCE: u32 = 24;
/// The same in nanoseconds, for a server whose turns are long because it has
/// much else to do than handshakes.
const PATIENCE_NS: u64 = 5_000_000;

/// Suspended handshakes of all threads: while there are none, nobody needs
/// to ask whether an SSL is suspended.
pub(crate) static SUSPENDED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static RUNTIME: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
    static AT_THREAD_EXIT: HandOver = const { HandOver };
}

/// Runtimes whose threads have ended, for the next threads.
static ENDED: Mutex<Vec<Recycled>> = Mutex::new(Vec::new());

struct Recycled(&'static Runtime);

// SAFETY: a runtime without suspended handshakes has nothing that is bound to its thread.
unsafe impl Send for Recycled {}

struct HandOver;

impl Drop for HandOver {
    fn drop(&mut self) {
        let Some(runtime) = RUNTIME.replace(None) else { return };
        // One with suspended handshakes stays as it is: their SSLs refer to it.
        if runtime.mapped.get() != runtime.idle.get() {
            return;
        }
        runtime.turn.reset();
        runtime.unmap(runtime.idle.get());
        if let Ok(mut ended) = ENDED.lock() {
            ended.push(Recycled(runtime));
        }
    }
}

pub(crate) struct Runtime {
    /// The handshake whose coroutine is running.
    running: Cell<*mut Handshake>,
    /// The SSL whose handshake function is running, with or without a coroutine.
    driving: Cell<*mut Ssl>,
    queues: [Queue; crate::batch::ALGORITHMS],
    waiting: Cell<u32>,
    pub(crate) ready: ReadyRing,
    free: Cell<*mut Handshake>,
    mapped: Cell<usize>,
    /// Handshakes on the free list.
    idle: Cell<usize>,
    demand: Demand,
    pub(crate) turn: Turn,
    pub(crate) engine: Engine,
    pub(crate) device: Device,
    pub(crate) signing: SigningSlot,
    pub(crate) exchange: Exchange,
    pub(crate) tickets: Tickets,
}

#[derive(Default)]
struct Queue {
    len: Cell<usize>,
    /// The turn, and the time, at which the first operation was queued.
    since: Cell<u32>,
    since_ns: Cell<u64>,
    operations: [Cell<*mut Operation<'static>>; LANES],
}

impl Runtime {
    /// This thread's runtime, made at first use.
    pub(crate) fn get() -> &'static Runtime {
        match RUNTIME.get() {
            Some(runtime) => runtime,
            None => Self::make(),
        }
    }

    /// This thread's runtime if it ever drove a handshake or an event loop.
    #[inline]
    pub(crate) fn existing() -> Option<&'static Runtime> {
        RUNTIME.get()
    }

    #[cold]
    fn make() -> &'static Runtime {
        let recycled = ENDED.lock().ok().and_then(|mut ended| ended.pop());
        let runtime = recycled.map_or_else(Self::allocate, |Recycled(runtime)| runtime);
        RUNTIME.set(Some(runtime));
        // Registers this thread for the hand-over at its end.
        let _ = AT_THREAD_EXIT.try_with(|_| ());
        runtime
    }

    /// Never freed: suspended handshakes and the stacks they are on refer to it.
    fn allocate() -> &'static Runtime {
        Box::leak(Box::new(Runtime {
            running: Cell::new(null_mut()),
            driving: Cell::new(null_mut()),
            queues: Default::default(),
            waiting: Cell::new(0),
            ready: ReadyRing::new(),
            free: Cell::new(null_mut()),
            mapped: Cell::new(0),
            idle: Cell::new(0),
            demand: Demand::new(),
            turn: Turn::new(),
            engine: Engine::new(),
            device: Device::new(),
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
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        !self.driving.get().is_null()
    }

    /// Whether it is inside one for this SSL: libssl's functions call each other.
    #[inline]
    pub(crate) fn is_driving(&self, ssl: *mut Ssl) -> bool {
        self.driving.get() == ssl
    }

    /// The handshake whose coroutine is running, if one is.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Handshake> {
        // SAFETY: `running` is null or a handshake of this runtime, and only idle ones are unmapped.
        unsafe { self.running.get().as_ref() }
    }

    /// Whether operations are queued.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Whether a batch is likely enough to be worth leaving the stack for.
    pub(crate) fn expects_company(&self) -> bool {
        let turn = &self.turn;
        turn.handshakes.get() > 1
            || turn.events.get() > 1
            || turn.previous_handshakes.get() > 1
            || self.has_waiting()
            || !self.ready.is_empty()
            || config::get().eager
    }

    /// Runs a handshake function on the server's stack: operations in it are not queued.
    pub(crate) fn inline<R>(&self, ssl: *mut Ssl, body: impl FnOnce() -> R) -> R {
        self.forget_notes();
        let outer = self.driving.replace(ssl);
        let result = body();
        self.driving.set(outer);
        result
    }

    /// Runs something that must not be taken for part of the running
    /// handshake: a server callback that does TLS of its own.
    pub(crate) fn aside<R>(&self, body: impl FnOnce() -> R) -> R {
        let running = self.running.replace(null_mut());
        let driving = self.driving.replace(null_mut());
        let result = body();
        self.running.set(running);
        self.driving.set(driving);
        result
    }

    /// What libssl set up in an earlier call, and never used, is void.
    fn forget_notes(&self) {
        self.signing.clear();
        self.exchange.clear();
    }

    /// Lets a handshake run until it ends or waits.
    pub(crate) fn run(&self, handshake: &Handshake) -> State {
        self.forget_notes();
        loop {
            handshake.state.set(State::Running);
            let outer = self.running.replace(core::ptr::from_ref(handshake).cast_mut());
            let driving = self.driving.replace(handshake.ssl.get());
            // SAFETY: the coroutine was prepared by `acquire` or left by `leave`, on this thread, and is not running.
            unsafe { coroutine::switch(handshake.server.as_ptr(), handshake.coroutine.get()) };
            self.running.set(outer);
            self.driving.set(driving);
            match handshake.state.get() {
                State::Waiting => {
                    let queue = self.queue_of(handshake);
                    if device::is_wished() {
                        self.offer(queue);
                    }
                    // The eighth of a kind completes its group and goes on at once.
                    if queue.len.get() < LANES {
                        return handshake.state.get();
                    }
                    self.run_queue(queue, handshake);
                    slot().event(Event::Resumed);
                }
                state => return state,
            }
        }
    }

    /// Whether leaving a handshake's stack can lead to anything, and is likely enough to.
    pub(crate) fn may_leave(&self) -> bool {
        let batches = self.engine.can_batch();
        (batches || self.device.is_here())
            && self.turn.comes_back()
            && (self.expects_company()
                || self.device.takes_alone(|algorithm| self.engine.software_ns(algorithm, 1)))
    }

    /// Queues an operation of the running handshake and leaves its stack
    /// until the operation is answered.
    pub(crate) fn submit(&self, operation: &mut Operation<'_>) -> Verdict {
        let Some(handshake) = self.running() else { return Verdict::Bypass(Reason::Alone) };
        if handshake.cancelled.get() {
            return Verdict::Cancelled;
        }
        if !self.can_suspend(handshake) {
            return Verdict::Bypass(Reason::NotPolled);
        }
        // It has left its stack for the sake of a device that is not for this.
        if device::is_wished() && !matches!(operation.work, Work::Rsa(_)) && !self.expects_company() {
            return Verdict::Bypass(Reason::Alone);
        }
        operation.owner = self.running.get();
        let queue = &self.queues[operation.algorithm().index()];
        // The lifetime ends here because the queue outlives no operation: this
        // function returns only when the operation has left the queue.
        let operation: *mut Operation<'static> = core::ptr::from_mut(operation).cast();
        handshake.operation.set(operation);
        if queue.len.get() == 0 {
            queue.since.set(self.turn.number.get());
            queue.since_ns.set(now());
        }
        queue.operations[queue.len.get()].set(operation);
        queue.len.set(queue.len.get() + 1);
        self.waiting.set(self.waiting.get() + 1);
        handshake.state.set(State::Waiting);
        slot().event(Event::Suspended);
        self.leave(handshake);
        handshake.operation.set(null_mut());
        // SAFETY: the caller's operation, exclusively ours again.
        unsafe { (*operation).verdict }
    }

    /// Switches from a coroutine back to the server's stack.
    pub(crate) fn leave(&self, handshake: &Handshake) {
        // SAFETY: called on the coroutine of `handshake`; `server` was stored by the switch that entered it.
        unsafe { coroutine::switch(handshake.coroutine.as_ptr(), handshake.server.get()) };
    }

    /// Whether the server will come back to this connection when told it is readable.
    fn can_suspend(&self, handshake: &Handshake) -> bool {
        let (fd, epfd) = (handshake.fd.get(), self.turn.epfd.get());
        if fd < 0 || !self.turn.sleeps() {
            return false;
        }
        let registered = match fds::registration(fd) {
            Some(registration) => registration.epfd == epfd && !registration.one_shot(),
            None => self.turn.registers_late.get() && fds::is_accepted(fd),
        };
        registered && fds::is_non_blocking(fd)
    }

    fn queue_of(&self, handshake: &Handshake) -> &Queue {
        // SAFETY: a waiting handshake's operation is on its suspended stack.
        let algorithm = unsafe { (*handshake.operation.get()).algorithm() };
        &self.queues[algorithm.index()]
    }

    /// Runs what a handshake waits for: its queue, or it alone if it is at a device.
    pub(crate) fn run_queue_of(&self, handshake: &Handshake) {
        if !self.recall(handshake.operation.get()) {
            self.run_queue(self.queue_of(handshake), null());
        }
    }

    /// Runs what is queued, lanes or not: nothing else will come soon.
    pub(crate) fn run_partial(&self) {
        self.run_queues_if(|_| true);
    }

    /// Runs what has waited for company long enough.
    pub(crate) fn run_overdue(&self) {
        let (turn, time) = (self.turn.number.get(), now());
        self.run_queues_if(|queue| {
            turn.wrapping_sub(queue.since.get()) >= PATIENCE || time - queue.since_ns.get() >= PATIENCE_NS
        });
    }

    fn run_queues_if(&self, due: impl Fn(&Queue) -> bool) {
        for queue in self.queues.iter().filter(|queue| queue.len.get() > 0) {
            if due(queue) {
                self.run_queue(queue, null());
            }
        }
    }

    /// Answers the operations of a queue; their handshakes are ready then, except `caller`, which goes on by itself.
    fn run_queue(&self, queue: &Queue, caller: *const Handshake) {
        let len = queue.len.replace(0);
        self.waiting.set(self.waiting.get() - len as u32);
        let mut operations: [*mut Operation<'static>; LANES] = [null_mut(); LANES];
        for (to, from) in operations.iter_mut().zip(&queue.operations[..len]) {
            *to = from.get();
        }
        // SAFETY: queued operations live on suspended stacks, and each is queued once.
        let mut lanes = operations[..len].iter().map(|operation| unsafe { &mut **operation });
        let lanes: [Option<&mut Operation<'static>>; LANES] = core::array::from_fn(|_| lanes.next());
        self.engine.answer(lanes);
        for operation in &operations[..len] {
            // SAFETY: as above; the owner is the suspended handshake.
            let owner = unsafe { &*(**operation).owner };
            owner.becomes_ready();
            if !core::ptr::eq(owner, caller) {
                self.ready.push(owner);
            }
        }
    }

    /// Takes a handshake out of whatever it waits in; it must then be run to its end.
    pub(crate) fn withdraw(&self, handshake: &Handshake) {
        let operation = handshake.operation.get();
        if handshake.state.get() == State::Waiting {
            let queue = self.queue_of(handshake);
            let len = queue.len.get();
            if let Some(at) = queue.operations[..len].iter().position(|queued| queued.get() == operation) {
                queue.operations[at].set(queue.operations[len - 1].get());
                queue.len.set(len - 1);
                self.waiting.set(self.waiting.get() - 1);
            } else {
                self.device.forget(operation);
            }
        }
        self.ready.forget(handshake);
        if !operation.is_null() {
            // SAFETY: the operation is on the suspended stack.
            unsafe { (*operation).verdict = Verdict::Cancelled };
        }
    }

    /// A coroutine to run a handshake function on, or none when too many are suspended.
    pub(crate) fn acquire(&'static self) -> Option<&'static Handshake> {
        let handshake = self.take_idle().or_else(|| self.map())?;
        self.demand.note(self.mapped.get() - self.idle.get());
        Some(handshake)
    }

    fn take_idle(&self) -> Option<&'static Handshake> {
        // SAFETY: the free list holds idle handshakes of this runtime, which stay until they are unmapped from here.
        let handshake = unsafe { self.free.get().as_ref() }?;
        self.free.set(handshake.next_free.replace(null_mut()));
        self.idle.set(self.idle.get() - 1);
        Some(handshake)
    }

    #[cold]
    fn map(&'static self) -> Option<&'static Handshake> {
        if self.mapped.get() == MAX_HANDSHAKES || STACKS.load(Ordering::Relaxed) >= MAX_STACKS {
            return None;
        }
        let stack = Stack::map()?;
        STACKS.fetch_add(1, Ordering::Relaxed);
        self.mapped.set(self.mapped.get() + 1);
        // SAFETY: the stack is fresh.
        Some(unsafe { Handshake::place(stack, self) })
    }

    /// Returns a coroutine whose function has returned.
    pub(crate) fn release(&self, handshake: &Handshake) {
        handshake.reset();
        self.idle.set(self.idle.get() + 1);
        handshake.next_free.set(self.free.replace(core::ptr::from_ref(handshake).cast_mut()));
    }
}

/// Body of every coroutine: run the function that was asked for, report, wait for the next.
pub(crate) extern "C" fn serve(handshake: *mut c_void) -> ! {
    // SAFETY: `Handshake::place` passes the handshake itself, which lives as long as this stack.
    let handshake = unsafe { &*handshake.cast::<Handshake>() };
    loop {
        handshake.invoke();
        handshake.state.set(State::Returned);
        handshake.runtime.leave(handshake);
    }
}

/// Counts a handshake as suspended from here on, for every thread.
pub(crate) fn count_suspended(delta: i32) {
    SUSPENDED.fetch_add(delta as u32, Ordering::Relaxed);
}
