//! The writer's side: allocation-free, lock-free, and silent about its own
//! failures, because it runs inside other people's servers.

use crate::control;
use crate::layout::{HEADER_SIZE, Header, Page, SLOT_COUNT, SLOT_SIZE, Slot, VERSION};
use crate::memory::{self, Mapped, map_mark, map_new};
use crate::{
    Algorithm, BreakerState, Doubt, Engine, EngineClass, Event, Fault, LANES, MAGIC, Reason, Suspension,
};
use hasten_guard::clock::{boot_ns, time_of_day};
use rustix::fs::{CWD, readlinkat_raw};
use rustix::io::Errno;
use rustix::process::Pid;
use std::cell::Cell;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// Identifies this writer. For the constructor of a preload library; later calls change nothing. There is no page yet:
/// anything counted or described before [`start`] stays in this process, and only the description is copied to the
/// page.
pub fn init(accelerator: &str) {
    let pid = process();
    if PROCESS.compare_exchange(0, pid, Relaxed, Relaxed).is_ok() {
        PRIVATE.header.accelerator.store(accelerator.as_bytes());
        // SAFETY: the handlers only touch atomics and make system calls.
        unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
    }
}

/// Creates this process's page, unless it has one. Call it before the first thing worth counting, as often as
/// convenient. Programs that never get there have neither the memory nor the descriptors. If shared memory is not
/// available, counting continues in private, so that callers need not care; readers can see this.
#[inline]
pub fn start() {
    if PAGE.load(Relaxed).is_null() {
        errno_neutral(begin);
    }
}

/// Stops creating pages and making system calls: the program is about to forbid some of them. An existing page is still
/// counted on.
pub fn seal() {
    let _ = PAGE.compare_exchange(null_mut(), from_ref(&PRIVATE).cast_mut(), AcqRel, Relaxed);
    SEALED.store(true, Relaxed);
}

/// The page of this process; before [`start`] a private one.
pub fn page() -> &'static Page {
    published().unwrap_or(&PRIVATE)
}

/// This thread's slot, claimed at the first call.
#[inline]
pub fn slot() -> &'static Slot {
    SLOT.get().unwrap_or_else(claim)
}

/// Reports where this process has its memory now.
pub fn set_tiers(tiers: &Tiers) {
    let Some(slot) = process_slot() else { return };
    let cells = &slot.tiers;
    cells.near.store(tiers.near, Relaxed);
    cells.far.store(tiers.far, Relaxed);
    cells.threshold.store(tiers.threshold, Relaxed);
    cells.target.store(tiers.target, Relaxed);
}

/// The slot of the process' first thread, which any of its threads may use for what is the whole process' own. `None`
/// before [`start`], and if there is none to be had.
fn process_slot() -> Option<&'static Slot> {
    let known = PROCESS_SLOT.load(Acquire);
    if !known.is_null() {
        // SAFETY: a slot of a page, which is never removed.
        return unsafe { known.as_ref() };
    }
    let page = published()?;
    if SEALED.load(Relaxed) || PROCESS.load(Relaxed) != process() {
        return None;
    }
    let process = u64::from(process());
    let slot = page.claim(process << 32 | process, writer_is_gone);
    // The last one is shared by those who found none.
    if core::ptr::eq(slot, &page.slots[SLOT_COUNT - 1]) {
        return None;
    }
    PROCESS_SLOT.store(from_ref(slot).cast_mut(), Release);
    Some(slot)
}

/// Does something that this thread does not count: it is none of the program's work.
pub fn uncounted<R>(body: impl FnOnce() -> R) -> R {
    let counted = SLOT.replace(Some(&PRIVATE.slots[SLOT_COUNT - 1]));
    let result = body();
    SLOT.set(counted);
    result
}

/// Gives the child of a fork a slot of its own: a child that continued in its parent's slot would be counted as its
/// parent. For children that the C library does not know about; after its `fork` this has already been done.
pub fn after_fork_child() {
    SLOT.set(None);
    PROCESS_SLOT.store(null_mut(), Relaxed);
    PROCESS.store(process(), Relaxed);
}

/// Null before [`start`]; then permanently the shared page, or [`PRIVATE`] if there can be none.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
static PRIVATE: Page = Page::new();
static SEALED: AtomicBool = AtomicBool::new(false);
/// The process that may create a page; 0 before [`init`].
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// See [`process_slot`]; null until it is known.
static PROCESS_SLOT: AtomicPtr<Slot> = AtomicPtr::new(null_mut());

/// The number of private slots in which threads count before [`start`]: enough that they rarely meet, at little cost in
/// memory.
const SPARE: usize = 16;

thread_local! {
    // `const` and without a destructor: no allocation, no registration, and
    // usable until the very end of the thread.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

fn published() -> Option<&'static Page> {
    // SAFETY: null, `PRIVATE`, or a mapping that is never removed.
    unsafe { PAGE.load(Acquire).as_ref() }
}

#[cold]
fn claim() -> &'static Slot {
    // Not stored before there is a page, because other threads could not be made to switch to it.
    let Some(page) = published() else { return spare() };
    if SEALED.load(Relaxed) {
        // Finding out which thread this is would take a system call.
        return &page.slots[SLOT_COUNT - 1];
    }
    let slot = page.claim(current_writer(), writer_is_gone);
    SLOT.set(Some(slot));
    slot
}

/// One of the private slots, chosen by the address of the thread's variables.
fn spare() -> &'static Slot {
    let place = SLOT.with(|slot| from_ref(slot) as u64);
    &PRIVATE.slots[(place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SPARE]
}

/// Takes no lock, so neither a fork nor a signal in the middle of it does harm: if several threads start at once, the
/// first to be ready wins.
#[cold]
fn begin() {
    if PROCESS.load(Relaxed) != process() {
        // A child of vfork: the memory belongs to its parent, and its descriptors disappear with it.
        return;
    }
    let Some(mapped) = map_new::<Page>() else {
        if PAGE.compare_exchange(null_mut(), from_ref(&PRIVATE).cast_mut(), AcqRel, Relaxed).is_ok() {
            map_mark();
        }
        return;
    };
    let control = control::map();
    mapped.page.describe(&PRIVATE.header, control.as_ref().map_or(0, |control| control.inode));
    match PAGE.compare_exchange(null_mut(), from_ref(mapped.page).cast_mut(), AcqRel, Relaxed) {
        Ok(_) => control.into_iter().for_each(|control| control::publish(control.page)),
        Err(_) => {
            mapped.discard();
            control.into_iter().for_each(Mapped::discard);
        }
    }
}

/// A server that forks its workers has one page with them, although it never works itself: readers find the whole
/// server, and an engine disabled by the operator is disabled for later workers as well.
extern "C" fn before_fork() {
    if PAGE.load(Relaxed).is_null() && errno_neutral(is_listening) {
        errno_neutral(begin);
    }
}

extern "C" fn in_child() {
    after_fork_child();
}

/// Whether one of the lowest descriptors is a listening socket. Descriptors are assigned from below, so a row of free
/// ones is taken for the end.
fn is_listening() -> bool {
    const ROW: u32 = 8;
    let mut free = 0;
    for fd in 0..1024 {
        match memory::is_listening(fd) {
            Ok(true) => return true,
            Err(Errno::BADF) => free += 1,
            _ => free = 0,
        }
        if free == ROW {
            break;
        }
    }
    false
}

impl Page {
    /// Publishes when a batch of this algorithm pays, as measured or configured; `lanes` above [`LANES`] means never.
    pub fn set_break_even(&self, algorithm: Algorithm, lanes: usize, scalar_ns: u64, batch_ns: u64) {
        let cell = &self.header.break_even[algorithm.index()];
        cell.lanes.store(lanes as u64, Relaxed);
        cell.scalar_ns.store(scalar_ns, Relaxed);
        cell.batch_ns.store(batch_ns, Relaxed);
    }

    /// A short remark for people, such as the engine and the CPU features it uses. It is cut off at 127 bytes.
    pub fn set_note(&self, note: &str) {
        self.header.note.store(note.as_bytes());
    }

    /// Declares that this process has an engine, with its kind and time limit; a limit of 0 means none. `device` is
    /// empty for software.
    pub fn register(&self, engine: Engine, class: EngineClass, device: &str, timeout_ns: u64) {
        let cell = &self.header.engines[engine.index()];
        cell.name.store(engine.as_str().as_bytes());
        cell.device.store(device.as_bytes());
        cell.class.store(class.number().into(), Relaxed);
        cell.timeout_ns.store(timeout_ns, Relaxed);
        cell.present.store(1, Release);
    }

    /// Fills the header, with what was `said` of this process before there was a page.
    fn describe(&self, said: &Header, control: u64) {
        let header = &self.header;
        header.version.store(VERSION, Relaxed);
        header.header_size.store(HEADER_SIZE as u32, Relaxed);
        header.slot_size.store(SLOT_SIZE as u32, Relaxed);
        header.slot_count.store(SLOT_COUNT as u32, Relaxed);
        header.creator_pid.store((current_writer() >> 32) as u32, Relaxed);
        header.lanes.store(LANES as u32, Relaxed);
        header.started_realtime_ns.store(time_of_day(), Relaxed);
        header.started_boottime_ns.store(boot_ns(), Relaxed);
        header.algorithm_count.store(Algorithm::COUNT as u32, Relaxed);
        header.reason_count.store(Reason::COUNT as u32, Relaxed);
        header.event_count.store(Event::COUNT as u32, Relaxed);
        header.engine_count.store(Engine::COUNT as u32, Relaxed);
        header.control.store(control, Relaxed);
        let mut path = [0; 4096];
        header.program.store(program_name(&mut path));
        header.accelerator.copy_from(&said.accelerator);
        header.note.copy_from(&said.note);
        header.break_even.iter().zip(&said.break_even).for_each(|(into, from)| into.copy_from(from));
        header.engines.iter().zip(&said.engines).for_each(|(into, from)| into.copy_from(from));
        // Last: a reader that sees the magic sees the rest.
        header.magic.store(MAGIC, Release);
    }

    /// The writer's own slot, else the first that is free or whose writer is gone, else the last, shared.
    fn claim(&self, writer: u64, is_gone: fn(u64) -> bool) -> &Slot {
        self.slots.iter().find(|slot| slot.try_claim(writer, is_gone)).unwrap_or(&self.slots[SLOT_COUNT - 1])
    }
}

/// Where a process has its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Bytes of objects near the processors.
    pub near: u64,
    /// Bytes of objects on the other node.
    pub far: u64,
    /// The size class on the boundary.
    pub threshold: u64,
    /// The wanted far part of all bytes in 1/65,536.
    pub target: u64,
}

impl Tiers {
    /// The wanted far part of all bytes.
    #[must_use]
    pub fn target_share(&self) -> f64 {
        self.target as f64 / 65536.0
    }

    /// The far part of all bytes.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.far as f64 / self.near.saturating_add(self.far).max(1) as f64
    }
}

/// An engine's work, to be added to its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineWork {
    pub ok: u64,
    /// Results that were wrong or missing; each was redone elsewhere.
    pub failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub busy_ns: u64,
    /// How often the breaker opened.
    pub opened: u64,
}

impl Slot {
    /// Counts a batch of `lanes` operations that took `batch_ns`; lanes that failed are also reported to
    /// [`Slot::failed`]. `saved_ns` estimates how much more the same operations would have cost one by one.
    pub fn batched(&self, algorithm: Algorithm, lanes: usize, batch_ns: u64, saved_ns: u64) {
        let lanes = lanes.clamp(1, LANES);
        let cells = &self.algorithms[algorithm.index()];
        add(&cells.batched, lanes as u64);
        add(&cells.batches, 1);
        add(&cells.lanes[lanes - 1], 1);
        add(&cells.batch_ns, batch_ns);
        add(&cells.saved_ns, saved_ns);
    }

    /// Counts an operation done at once, outside a batch, by an engine of ours, and the CPU time it saved.
    pub fn single(&self, algorithm: Algorithm, saved_ns: u64) {
        let cells = &self.algorithms[algorithm.index()];
        add(&cells.single, 1);
        add(&cells.saved_ns, saved_ns);
    }

    /// Counts time saved by operations without a batch of ours, such as those of a device.
    pub fn saved(&self, algorithm: Algorithm, saved_ns: u64) {
        add(&self.algorithms[algorithm.index()].saved_ns, saved_ns);
    }

    /// Counts queued operations for which the original function ran; also count the reason, [`Reason::Alone`] or
    /// [`Reason::BelowBreakEven`].
    pub fn scalar(&self, algorithm: Algorithm, n: u64) {
        add(&self.algorithms[algorithm.index()].scalar, n);
    }

    /// Counts lanes of a batch whose result was rejected and redone by the original.
    pub fn failed(&self, algorithm: Algorithm, n: u64) {
        add(&self.algorithms[algorithm.index()].failed, n);
    }

    /// Counts an operation that took the original path.
    pub fn bypass(&self, reason: Reason) {
        self.bypass_n(reason, 1);
    }

    pub fn bypass_n(&self, reason: Reason, n: u64) {
        add(&self.bypassed[reason.index()], n);
    }

    pub fn event(&self, event: Event) {
        self.event_n(event, 1);
    }

    pub fn event_n(&self, event: Event, n: u64) {
        add(&self.events[event.index()], n);
    }

    /// Counts operations of an engine, how long it was busy with them, and the bytes if it works on bytes.
    pub fn engine_ran(&self, engine: Engine, work: &EngineWork) {
        let cells = &self.engines[engine.index()];
        let add_some = |counter, n| {
            if n > 0 {
                add(counter, n);
            }
        };
        add_some(&cells.ok, work.ok);
        add_some(&cells.failed, work.failed);
        add_some(&cells.bytes_in, work.bytes_in);
        add_some(&cells.bytes_out, work.bytes_out);
        add_some(&cells.busy_ns, work.busy_ns);
        add_some(&cells.opened, work.opened);
    }

    /// Reports whether the engine is in service, as this writer sees it. Called with every operation: as long as
    /// nothing changes, it only reads. `probe_ns` is when an open breaker will try again, on `CLOCK_BOOTTIME`.
    #[inline]
    pub fn engine_state(&self, engine: Engine, state: BreakerState, fault: Option<Fault>, probe_ns: u64) {
        let cells = &self.engines[engine.index()];
        let word = state.index() as u64 | fault.map_or(0, |fault| u64::from(fault.number())) << 8;
        // The timestamp is 0 only until the first report.
        if cells.state.load(Relaxed) != word
            || cells.probe_ns.load(Relaxed) != probe_ns
            || cells.since_ns.load(Relaxed) == 0
        {
            self.change_engine_state(engine, word, probe_ns);
        }
    }

    #[cold]
    fn change_engine_state(&self, engine: Engine, word: u64, probe_ns: u64) {
        let cells = &self.engines[engine.index()];
        let before = cells.state.swap(word, Relaxed);
        cells.probe_ns.store(probe_ns, Relaxed);
        if before & 0xff != word & 0xff || cells.since_ns.load(Relaxed) == 0 {
            cells.since_ns.store(moment(), Relaxed);
        }
    }

    /// Reports whether this process suspends handshakes, and if no longer, why. Cheap enough for every handshake:
    /// repeating a report changes nothing.
    pub fn suspension(&self, suspension: Suspension, doubt: Option<Doubt>) {
        let word = u64::from(suspension.number()) | doubt.map_or(0, |doubt| u64::from(doubt.number())) << 8;
        if self.suspension.load(Relaxed) != word {
            self.suspension_since_ns.store(moment(), Relaxed);
            self.suspension.store(word, Relaxed);
        }
    }

    fn try_claim(&self, writer: u64, is_gone: fn(u64) -> bool) -> bool {
        let owner = self.owner.load(Relaxed);
        if owner == writer {
            return true;
        }
        if owner != 0 && !is_gone(owner) {
            return false;
        }
        match self.owner.compare_exchange(owner, writer, Relaxed, Relaxed) {
            Ok(_) => {
                // The last writer's view of the engines and of itself ended with it.
                self.engines.iter().for_each(|cells| cells.since_ns.store(0, Relaxed));
                self.suspension.store(0, Relaxed);
                self.tiers.target.store(0, Relaxed);
                add(&self.owners, 1);
                true
            }
            // A signal handler of this very thread may have been faster.
            Err(now) => now == writer,
        }
    }
}

/// Time since boot, or a placeholder once the program may have given up its clocks.
fn moment() -> u64 {
    if SEALED.load(Relaxed) { 1 } else { boot_ns() }
}

#[inline]
fn add(counter: &AtomicU64, n: u64) {
    // Counters of different slots never share a cache line: this is an uncontended add unless more than SLOT_COUNT
    // threads count.
    counter.fetch_add(n, Relaxed);
}

/// `pid << 32 | tid`, never 0.
fn current_writer() -> u64 {
    u64::from(process()) << 32 | u64::from(number(rustix::thread::gettid()))
}

fn process() -> u32 {
    number(rustix::process::getpid())
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Whether the writer's thread no longer exists. Wrong answers (another PID namespace, a reused number) cost
/// attribution, never counts.
fn writer_is_gone(writer: u64) -> bool {
    let (pid, tid) = ((writer >> 32) as libc::pid_t, writer as libc::pid_t);
    errno_neutral(|| {
        // SAFETY: signal 0 only asks whether the thread exists.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
        // SAFETY: errno is always readable.
        answer != 0 && unsafe { *libc::__errno_location() } == libc::ESRCH
    })
}

/// Counting may happen between a server's failed call and its check of errno.
fn errno_neutral<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno is thread-local, always readable and writable.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = work();
        *errno = before;
        result
    }
}

/// Last component of the executable's path; empty if /proc is missing.
fn program_name(path: &mut [u8]) -> &[u8] {
    let length = readlinkat_raw(CWD, c"/proc/self/exe", &mut *path).unwrap_or(0);
    let path = &path[..length];
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
