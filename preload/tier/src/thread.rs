//! What each thread has: its cache of far memory, and when it looks at the share again.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::without_provenance;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::jemalloc;
use crate::share::PERIOD;

/// The thread has no cache yet.
const NOT_YET: u32 = 0;
/// The thread cannot have one, or no longer.
const NEVER: u32 = 1;
/// Larger values are the number of a cache.
const FIRST: u32 = 2;

/// All zero at the start of a thread.
#[repr(C)]
struct Thread {
    /// Bytes to be allocated before the next look at the share; more than a period for a moment, when they are exceeded.
    left: Cell<usize>,
    cache: Cell<u32>,
    random: Cell<u32>,
    has_begun: Cell<bool>,
}

// A variable of each thread that is found without a call, as no variable of Rust's own can be in a shared library: the
// library is loaded with the program, so its place is known then. Without a destructor it is usable until the very end of
// the thread.
global_asm!(
    r#".pushsection .tbss.hasten_tier_thread, "awT", @nobits"#,
    ".balign 16",
    ".globl hasten_tier_thread",
    ".hidden hasten_tier_thread",
    ".type hasten_tier_thread, @object",
    ".size hasten_tier_thread, {size}",
    "hasten_tier_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Thread>(),
);

/// In assembler: what `fs` has to be added to for `left`, in a register.
macro_rules! left_in {
    ($register:literal) => {
        concat!("mov ", $register, ", qword ptr [rip + hasten_tier_thread@GOTTPOFF]")
    };
}
pub(crate) use left_in;

#[inline]
fn with<T>(body: impl FnOnce(&Thread) -> T) -> T {
    let thread: *const Thread;
    // SAFETY: the first word at `fs` is its own address, and the variable is at the same distance from it in each thread.
    // No other thread knows it, and it lives as long as this one.
    unsafe {
        asm!(
            "mov {thread}, qword ptr fs:[0]",
            "add {thread}, qword ptr [rip + hasten_tier_thread@GOTTPOFF]",
            thread = out(reg) thread,
            options(pure, readonly, nostack),
        );
        body(&*thread)
    }
}

/// The key whose destructor returns the cache, plus one; 0 if there is none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Before any other function here; false if threads cannot have caches.
pub(crate) fn start() -> bool {
    let mut key = 0;
    // SAFETY: the function stays loaded, as every preload library does.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } != 0 {
        return false;
    }
    KEY.store(key + 1, Relaxed);
    true
}

/// Counts a size; whether the thread has allocated a period since it was last told so.
#[inline]
pub(crate) fn has_allocated(size: usize) -> bool {
    with(|thread| match thread.left.get().checked_sub(size) {
        Some(left) => {
            thread.left.set(left);
            false
        }
        None => is_next(thread),
    })
}

/// The same, after a size has been counted in assembler.
#[inline]
pub(crate) fn is_due() -> bool {
    with(|thread| thread.left.get() > PERIOD && is_next(thread))
}

/// A period begins; whether it is not the thread's first.
#[cold]
fn is_next(thread: &Thread) -> bool {
    thread.left.set(PERIOD);
    thread.has_begun.replace(true)
}

/// Sixteen bits that no pattern of allocations follows.
#[inline]
pub(crate) fn random() -> u32 {
    with(|thread| {
        let mut x = thread.random.get();
        if x == 0 {
            // Any start will do, except 0.
            x = (core::ptr::from_ref(thread).addr() >> 4) as u32 | 1;
        }
        // Marsaglia's xorshift.
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        thread.random.set(x);
        x >> 16
    })
}

/// jemalloc's flag for this thread's cache of far memory.
#[inline]
pub(crate) fn cache() -> c_int {
    with(|thread| match thread.cache.get() {
        NOT_YET => open(thread),
        NEVER => jemalloc::NO_CACHE,
        cache => jemalloc::of_cache(cache - FIRST),
    })
}

#[cold]
fn open(thread: &Thread) -> c_int {
    // A signal handler of this thread goes without.
    thread.cache.set(NEVER);
    let key = KEY.load(Relaxed);
    if key == 0 {
        return jemalloc::NO_CACHE;
    }
    let Some(cache) = jemalloc::get::<c_uint>(c"tcache.create") else { return jemalloc::NO_CACHE };
    // SAFETY: the key exists, and is never deleted; the value is a number.
    if unsafe { libc::pthread_setspecific(key - 1, without_provenance(cache as usize + 1)) } != 0 {
        jemalloc::set(c"tcache.destroy", cache);
        return jemalloc::NO_CACHE;
    }
    thread.cache.set(cache + FIRST);
    jemalloc::of_cache(cache)
}

/// At the end of a thread, with what `open` left. Destructors that run later go without a cache.
///
/// # Safety
///
/// Called by the C library.
unsafe extern "C" fn at_end(value: *mut c_void) {
    with(|thread| thread.cache.set(NEVER));
    jemalloc::set(c"tcache.destroy", (value.addr() - 1) as c_uint);
}
