//! Suspends a function in the middle: its frames on the thread's own stack are copied away, and copied back to the same
//! place to resume it.
//!
//! Why not a stack of its own: the server's callbacks (SNI, ALPN, certificates, Lua, Ruby) run inside a handshake. On
//! the thread's stack they find the limits, the guard page and the depth they know, and garbage collectors that scan it
//! see what they expect. A suspended handshake is two or three kilobytes of frames, all of libssl's, because nothing is
//! suspended in a callback.
//!
//! ```text
//!   frames of the server
//!   base     where the server's flow continues
//!   ...      the gap: later calls may come from frames this much deeper
//!   top      frames of libssl begin
//!   sp       frames of libssl end when it is suspended
//! ```
//!
//! Frames can only be where they were, so a slice belongs to its thread. If the server calls from below `top`, its
//! frames there have to be put aside while the slice runs. Another thread may hold a reference into them (a condition
//! variable that another thread waits on may be on a stack), so that is done only in single-threaded processes. It is
//! rare: if a server goes deeper, its slices are called in before they are covered (`Runtime::keep_clear`).

#[cfg_attr(target_arch = "x86_64", path = "slice/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "slice/aarch64.rs")]
mod arch;

use core::cell::{Cell, UnsafeCell};
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hasten_hook::is_c_library;
use rustix::process::{Resource, getrlimit};

pub(crate) use self::arch::here;
use self::arch::{FRAME_WORDS, abandon, enter, has_shadow_stack, is_signal_frame, leave, resume};

/// How much deeper than the first call a later one may be before frames have to be put aside: a sixteenth of the stack,
/// within these bounds.
const SMALLEST_GAP: usize = 32 << 10;
const LARGEST_GAP: usize = 64 << 10;

/// The stack that must remain for libssl below the gap, as for a thread of a stock server.
const ROOM: usize = 96 << 10;

/// A function that runs on the thread's stack and can be suspended in the middle.
#[repr(C)]
pub(crate) struct Slice {
    base: Cell<*mut u8>,
    top: Cell<*mut u8>,
    sp: Cell<*mut u8>,
    /// Marks its frames on the stack: the number of the call that runs it.
    mark: Cell<u64>,
    /// The middle of the gap.
    near: Cell<usize>,
    /// The frames from `sp` to `top` while they are not on the stack.
    frames: UnsafeCell<Vec<u8>>,
    /// The server's frames from `base` to `top` while those of the slice are in their place.
    aside: UnsafeCell<Vec<u8>>,
}

impl Slice {
    pub(crate) const fn new() -> Self {
        Self {
            base: Cell::new(null_mut()),
            top: Cell::new(null_mut()),
            sp: Cell::new(null_mut()),
            mark: Cell::new(0),
            near: Cell::new(0),
            frames: UnsafeCell::new(Vec::new()),
            aside: UnsafeCell::new(Vec::new()),
        }
    }

    /// Runs `body(argument)` below the current frames, until it returns or leaves.
    ///
    /// # Safety
    ///
    /// `has_room` for this stack, which is the current one; nothing of this slice is on it.
    pub(crate) unsafe fn begin(
        &self,
        stack: &Range<usize>,
        body: unsafe extern "C" fn(usize),
        argument: usize,
    ) {
        const ALIGN: usize = 64;
        let (here, gap) = (here(), gap(stack));
        self.near.set(here - gap / 2);
        self.top.set(((here - gap) & !(ALIGN - 1)) as *mut u8);
        // SAFETY: as the contract says; `top` is within the stack, and 16-aligned.
        unsafe { enter(self, body, argument) }
    }

    /// Resumes the function where it left.
    ///
    /// # Safety
    ///
    /// It has left on this thread, whose stack this is.
    pub(crate) unsafe fn resume(&self) {
        // SAFETY: as the contract says.
        unsafe { resume(self) }
    }

    /// Leaves the running function; returns when it is resumed.
    ///
    /// # Safety
    ///
    /// Called from the function that the slice runs.
    pub(crate) unsafe fn leave(&self) {
        // SAFETY: as the contract says.
        unsafe { leave(self) }
    }

    /// Leaves the running function without ever resuming it.
    ///
    /// # Safety
    ///
    /// As `leave`, and nothing on its frames needs to be dropped.
    pub(crate) unsafe fn abandon(&self) -> ! {
        // SAFETY: as the contract says.
        unsafe { abandon(self) }
    }

    /// Sets the mark for the next step; no other step of this thread may have the same.
    pub(crate) fn mark(&self, mark: u64) {
        self.mark.set(mark);
    }

    /// Whether the code that asks runs in this slice. Coroutines that share the thread's stack put frames of others in
    /// place of its own.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        let top = self.top.get();
        // SAFETY: the word is on the stack of this thread, which stays mapped, below its initial frames.
        here() < top as usize && unsafe { mark_of(top).read_volatile() } == self.mark.get()
    }

    /// Where its frames start: everything that it calls is below.
    pub(crate) fn top(&self) -> usize {
        self.top.get() as usize
    }

    /// Whether resuming here puts frames aside.
    pub(crate) fn is_covered(&self) -> bool {
        here() < self.top.get() as usize + 1024
    }

    /// The stack depth at which it should be resumed, before it is covered.
    pub(crate) fn near(&self) -> usize {
        self.near.get()
    }

    /// Frees its memory.
    pub(crate) fn shrink(&self) {
        // SAFETY: the slice is not in use.
        unsafe {
            *self.frames.get() = Vec::new();
            *self.aside.get() = Vec::new();
        }
    }

    /// Wipes what a function left behind.
    pub(crate) fn forget(&self) {
        // SAFETY: the slice is not in use. The frames of libssl may hold secrets or pointers to them.
        unsafe { hasten_crypto::wipe(&mut *self.frames.get()) };
    }

    /// The size of its frames, for statistics.
    fn len(&self) -> usize {
        self.top.get() as usize - self.sp.get() as usize
    }

    /// The size of the server's frames where those of the slice go.
    fn covered(&self) -> usize {
        (self.top.get() as usize).saturating_sub(self.base.get() as usize)
    }
}

/// The stack that the system gave this thread; empty if it is unknown.
///
/// Any other stack is a fiber's or a signal's, which may be gone by the time the function is resumed.
pub(crate) fn native_stack() -> Range<usize> {
    let initial = initial_stack();
    // musl would look for the end of this stack page by page, and find only the part that has been used so far.
    if cfg!(target_env = "musl") && !initial.is_empty() {
        return initial;
    }
    let (mut start, mut size) = (null_mut(), 0);
    // SAFETY: attributes of the running thread, given back after use.
    unsafe {
        let mut attributes = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return initial;
        }
        let known = libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size) == 0;
        libc::pthread_attr_destroy(&raw mut attributes);
        if !known || has_shadow_stack() {
            return 0..0;
        }
    }
    start as usize..start as usize + size
}

/// Whether a function can be started here: on the thread's own stack, with room.
pub(crate) fn has_room(stack: &Range<usize>) -> bool {
    let here = here();
    stack.contains(&here) && here - stack.start >= gap(stack) + ROOM
}

fn gap(stack: &Range<usize>) -> usize {
    (stack.len() / 16).clamp(SMALLEST_GAP, LARGEST_GAP)
}

/// The C library's code.
static LIBC: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// The initial thread's stack.
static INITIAL: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// The C library reads where this stack is from /proc, which a program that has called chroot(2) does not have.
fn initial_stack() -> Range<usize> {
    let stack = INITIAL.0.load(Relaxed)..INITIAL.1.load(Relaxed);
    if stack.contains(&here()) && !has_shadow_stack() { stack } else { 0..0 }
}

fn note_initial_stack() {
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    if thread == std::process::id() {
        let stack = if cfg!(target_env = "musl") { stack_of_arguments() } else { native_stack() };
        INITIAL.0.store(stack.start, Relaxed);
        INITIAL.1.store(stack.end, Relaxed);
    }
}

/// The initial thread's stack as the kernel gives it: from the arguments down to the limit.
fn stack_of_arguments() -> Range<usize> {
    /// No limit says nothing about what lies below the stack.
    const LONGEST: usize = 8 << 20;
    let limit = getrlimit(Resource::Stack).current.and_then(|limit| limit.try_into().ok());
    // SAFETY: no precondition.
    let top = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    top.saturating_sub(limit.unwrap_or(LONGEST).min(LONGEST))..top
}

/// Learns where the initial thread's stack is, and where a signal handler returns to.
pub(crate) fn init() {
    note_initial_stack();
    /// # Safety
    ///
    /// As for a callback of dl_iterate_phdr(3): `info` describes a loaded object that stays loaded during the call.
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a valid description; names are C strings.
        unsafe {
            let info = &*info;
            if info.dlpi_name.is_null() || !is_c_library(CStr::from_ptr(info.dlpi_name)) {
                return 0;
            }
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            let is_code = |header: &&libc::Elf64_Phdr| {
                header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
            };
            if let Some(code) = headers.iter().find(is_code) {
                let start = info.dlpi_addr as usize + code.p_vaddr as usize;
                LIBC.0.store(start, Relaxed);
                LIBC.1.store(start + code.p_memsz as usize, Relaxed);
            }
        }
        1
    }
    // SAFETY: the callback only writes two statics.
    unsafe { libc::dl_iterate_phdr(Some(look), null_mut()) };
}

/// Whether a signal handler is running on this stack: the code it interrupted, such as an allocator, must not be
/// re-entered.
///
/// The kernel puts a frame on the stack, which is recognised.
#[cold]
pub(crate) fn is_in_signal_handler(stack: &Range<usize>) -> bool {
    let code = LIBC.0.load(Relaxed)..LIBC.1.load(Relaxed);
    let here = here() & !7;
    if !stack.contains(&here) {
        return false;
    }
    // A handler's own frames may be of any size. Other threads may modify data in this thread's frames, so each word is
    // read once.
    let words = (stack.end - here) / 8;
    // SAFETY: frames of this thread, above our own, on its stack.
    let word = |at: usize| unsafe { (here as *const usize).add(at).read_volatile() };
    (0..(words + 1).saturating_sub(FRAME_WORDS)).any(|at| is_signal_frame(word, at, stack, &code))
}

/// Copies the frames of the slice away; called from below them.
///
/// # Safety
///
/// The only caller is [`leave`] of this slice: the stack pointer is below the slice's `sp`, the stack from there to
/// `top` holds its frames, and nothing else uses the slice.
unsafe extern "C" fn save(slice: &Slice) {
    // SAFETY: the frames from `sp` to `top` are on this stack, above our own.
    unsafe {
        let (frames, len) = (&mut *slice.frames.get(), slice.len());
        frames.clear();
        frames.extend_from_slice(core::slice::from_raw_parts(slice.sp.get(), len));
    }
}

/// Puts the server's frames aside and the slice's in their place; called from below both.
///
/// # Safety
///
/// The only caller is [`resume`] of this slice: the stack pointer is below its `sp` and its `base`. The stack between
/// `sp` and `top` is free, or holds frames that nothing accesses until [`uncover`] has restored them.
unsafe extern "C" fn restore(slice: &Slice) {
    // SAFETY: the overwritten stack is free, or put aside; `frames` is what `save` copied from there.
    unsafe {
        put_aside(slice);
        let frames = &*slice.frames.get();
        core::ptr::copy_nonoverlapping(frames.as_ptr(), slice.sp.get(), frames.len());
        mark_of(slice.top.get()).write(slice.mark.get());
    }
}

/// The word that `enter` writes first.
fn mark_of(top: *mut u8) -> *mut u64 {
    top.wrapping_sub(size_of::<u64>()).cast()
}

/// # Safety
///
/// `base` is on the current stack and above the stack pointer, and no other thread writes to the stack between it and
/// `top`.
unsafe fn put_aside(slice: &Slice) {
    // SAFETY: frames of this stack.
    unsafe {
        let aside = &mut *slice.aside.get();
        aside.clear();
        aside.extend_from_slice(core::slice::from_raw_parts(slice.base.get(), slice.covered()));
    }
}

/// Restores the server's frames; called from below them.
///
/// # Safety
///
/// The only caller is [`finish`] of this slice: the stack pointer is below `base`, and nothing uses the slice's frames
/// on the stack any more.
unsafe extern "C" fn uncover(slice: &Slice) {
    // SAFETY: the slice's frames are not needed there any more.
    unsafe {
        let aside = &mut *slice.aside.get();
        core::ptr::copy_nonoverlapping(aside.as_ptr(), slice.base.get(), aside.len());
        aside.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Walk {
        slice: Slice,
        log: Vec<u32>,
        steps: u32,
    }

    /// # Safety
    ///
    /// `walk` is the address of a live [`Walk`], whose slice runs this, and which nothing else uses until the slice is
    /// left.
    unsafe extern "C" fn body(walk: usize) {
        // SAFETY: the test keeps it alive, and only one side runs at a time.
        let walk = unsafe { &mut *(walk as *mut Walk) };
        let kept = [walk.steps; 64];
        for step in 0..walk.steps {
            walk.log.push(step + kept[step as usize % 64] - walk.steps);
            // SAFETY: this is the function that the slice runs.
            unsafe { walk.slice.leave() };
        }
    }

    /// The part of the native stack that gives the smallest gap.
    fn stack() -> Range<usize> {
        here() - SMALLEST_GAP - ROOM - 4096..native_stack().end.min(here() + 4096)
    }

    #[test]
    fn a_signal_handler_is_told_from_other_code() {
        static SEEN: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn handler(_: c_int) {
            // More than a handler usually has.
            let frame = core::hint::black_box([0_u8; 200_000]);
            SEEN.store(1 + usize::from(is_in_signal_handler(&native_stack())), Relaxed);
            core::hint::black_box(frame);
        }
        init();
        let handler: extern "C" fn(c_int) = handler;
        // SAFETY: the handler reads its stack and writes a static; the signal goes to this thread.
        unsafe {
            libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
            libc::raise(libc::SIGUSR2);
        }
        assert_eq!(SEEN.load(Relaxed), 2);
        assert!(!is_in_signal_handler(&native_stack()));
    }

    #[test]
    fn the_initial_stack_ends_at_its_arguments() {
        let stack = stack_of_arguments();
        // SAFETY: no precondition.
        let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        assert!(stack.contains(&random), "the kernel puts both at the end of the stack");
        assert!(!stack.contains(&here()), "tests have threads of their own");
        assert!((64 << 10..=8 << 20).contains(&stack.len()));
    }

    #[test]
    fn the_gap_goes_by_the_stack() {
        let gap_of = |size: usize| gap(&(0x1000..0x1000 + size));
        assert_eq!(gap_of(256 << 10), SMALLEST_GAP);
        assert_eq!(gap_of(1 << 20), 64 << 10);
        assert_eq!(gap_of(8 << 20), LARGEST_GAP);
        assert_eq!(gap_of(1 << 40), LARGEST_GAP);
    }

    fn walk(steps: u32) -> Box<Walk> {
        Box::new(Walk { slice: Slice::new(), log: Vec::new(), steps })
    }

    #[inline(never)]
    fn resume_below(walk: &mut Walk, depth: usize) -> u64 {
        let mut frame = [depth as u64; 128];
        core::hint::black_box(&mut frame);
        let below = if depth > 0 {
            resume_below(walk, depth - 1)
        } else {
            // SAFETY: it has left on this thread.
            unsafe { walk.slice.resume() };
            0
        };
        below + frame.iter().sum::<u64>()
    }

    #[test]
    fn a_function_goes_on_where_it_left() {
        let mut it = walk(3);
        let argument = (&raw mut *it) as usize;
        assert!(has_room(&native_stack()));
        // SAFETY: there is room, and the walk outlives every step.
        unsafe {
            it.slice.begin(&native_stack(), body, argument);
            it.slice.resume();
            it.slice.resume();
            it.slice.resume();
        }
        assert_eq!(it.log, [0, 1, 2]);
    }

    #[test]
    fn frames_in_its_place_are_put_aside() {
        let mut it = walk(4);
        let argument = (&raw mut *it) as usize;
        // SAFETY: as above.
        unsafe { it.slice.begin(&stack(), body, argument) };
        // 1 KiB each: one above the slice, two below its top, one far below.
        for depth in [4, 33, 36, 80] {
            let expected: u64 = (0..=depth as u64).map(|at| at * 128).sum();
            assert_eq!(resume_below(&mut it, depth), expected, "frames of the caller");
        }
        assert_eq!(it.log, [0, 1, 2, 3]);
    }

    #[test]
    fn slices_of_one_place_take_turns() {
        let mut all: Vec<_> = (0..8).map(|_| walk(5)).collect();
        // SAFETY: as above.
        unsafe {
            for it in &mut all {
                let argument = (&raw mut **it) as usize;
                it.slice.begin(&native_stack(), body, argument);
            }
            for _ in 0..5 {
                all.iter().rev().for_each(|it| it.slice.resume());
            }
        }
        assert!(all.iter().all(|it| it.log == [0, 1, 2, 3, 4]));
    }

    #[test]
    fn a_stack_that_is_not_the_threads_is_told() {
        std::thread::spawn(|| {
            let stack = native_stack();
            assert!(has_room(&stack));
            assert!(!has_room(&(stack.start..here() - SMALLEST_GAP)), "somebody else's");
            assert!(!has_room(&(here() - SMALLEST_GAP..stack.end)), "too short");
            assert!(!has_room(&(0..0)));
        })
        .join()
        .unwrap();
    }
}
