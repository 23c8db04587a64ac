//! What each thread has: its cache of far memory, and when it looks at the share again.

use core::cell::Cell;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::without_provenance;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::jemalloc;

/// The thread has no cache yet.
const NOT_YET: u32 = 0;
/// The thread cannot have one, or no longer.
const NEVER: u32 = 1;
/// Larger values are the number of a cache.
const FIRST: u32 = 2;

struct Thread {
    cache: Cell<u32>,
    /// Bytes allocated since the last look at the share.
    allocated: Cell<usize>,
    random: Cell<u32>,
}

thread_local! {
    // `const` and without a destructor: no allocation, no registration, and usable until the very end of the thread.
    static THREAD: Thread =
        const { Thread { cache: Cell::new(NOT_YET), allocated: Cell::new(0), random: Cell::new(0) } };
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

/// Whether this thread has allocated `period` bytes since it was last told so.
#[inline]
pub(crate) fn has_allocated(size: usize, period: usize) -> bool {
    THREAD.with(|thread| {
        let allocated = thread.allocated.get().saturating_add(size);
        let is_over = allocated >= period;
        thread.allocated.set(if is_over { 0 } else { allocated });
        is_over
    })
}

/// Sixteen bits that no pattern of allocations follows.
#[inline]
pub(crate) fn random() -> u32 {
    THREAD.with(|thread| {
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
    THREAD.with(|thread| match thread.cache.get() {
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
    THREAD.with(|thread| thread.cache.set(NEVER));
    jemalloc::set(c"tcache.destroy", (value.addr() - 1) as c_uint);
}
