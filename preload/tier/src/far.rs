//! Far memory: a reservation of addresses, bound to a node, from which one arena of jemalloc takes its extents; and the
//! cache that each thread has of it.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use tikv_jemalloc_sys::{MALLOCX_ARENA, MALLOCX_TCACHE, MALLOCX_TCACHE_NONE, extent_hooks_t};

use crate::{config, jemalloc, share};

/// Run by the dynamic linker, before the program's own constructors. What was allocated before is near.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;

const LARGEST: usize = 1 << 40;
const SMALLEST: usize = 1 << 30;

static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// The arena's index; arena 0 is jemalloc's own, so 0 is "none".
static ARENA: AtomicU32 = AtomicU32::new(0);
/// The thread-specific key of the caches plus one; 0 is "none".
static KEY: AtomicU32 = AtomicU32::new(0);

/// Keys below it are in the thread itself; glibc allocates room for others, which would be recursion.
const KEYS_IN_PLACE: u32 = 32;

extern "C" fn start() {
    let Some(config) = config::read() else { return };
    if !reserve(config.far_node) {
        return;
    }
    let hooks: *const extent_hooks_t = &raw const HOOKS.0;
    let Some(arena) = jemalloc::create(c"arenas.create", hooks).filter(|&arena| arena > 0) else { return };
    let mut key = 0;
    // SAFETY: `destroy_cache` stays loaded, as a preloaded library does.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(destroy_cache)) } == 0 && key < KEYS_IN_PLACE {
        KEY.store(key + 1, Relaxed);
    }
    ARENA.store(arena, Release);
    share::start(config.target);
}

/// Reserves addresses, as many as the process may have, and binds them.
fn reserve(node: u32) -> bool {
    let mut length = LARGEST;
    while length >= SMALLEST {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory at an address of the kernel's choice.
        let base = unsafe { libc::mmap(null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if base != libc::MAP_FAILED {
            return bind(base, length, node);
        }
        length /= 2;
    }
    false
}

/// Prefers the node for the reservation: when it is full, the kernel takes memory of another.
fn bind(base: *mut c_void, length: usize, node: u32) -> bool {
    const MPOL_PREFERRED: c_int = 1;
    let mut mask = [0_u64; 16];
    mask[node as usize / 64] = 1 << (node % 64);
    // SAFETY: mbind reads the mask, one bit less than the number it is given, and changes no memory but the
    // reservation's policy.
    let error =
        unsafe { libc::syscall(libc::SYS_mbind, base, length, MPOL_PREFERRED, mask.as_ptr(), 1025_usize, 0) };
    if error != 0 {
        // SAFETY: this reservation, which nobody knows yet.
        unsafe { libc::munmap(base, length) };
        return false;
    }
    // For /proc/PID/smaps, where the kernel has names for anonymous memory.
    // SAFETY: the name is a C string, and naming changes nothing else.
    unsafe {
        let name = c"hasten-far".as_ptr();
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, base.addr(), length, name.addr());
    }
    LENGTH.store(length, Relaxed);
    BASE.store(base.addr(), Release);
    true
}

/// Whether an address is in far memory.
pub(crate) fn contains(address: *const c_void) -> bool {
    address.addr().wrapping_sub(BASE.load(Relaxed)) < LENGTH.load(Relaxed)
}

/// jemalloc's flags for this thread and far memory.
pub(crate) fn flags() -> c_int {
    MALLOCX_ARENA(ARENA.load(Acquire) as usize) | cache()
}

/// This thread's cache of far memory, as a flag; none if there cannot be one.
pub(crate) fn cache() -> c_int {
    let key = KEY.load(Relaxed);
    if key == 0 {
        return MALLOCX_TCACHE_NONE;
    }
    // SAFETY: the key exists since before it was stored, and is never deleted.
    let value = unsafe { libc::pthread_getspecific(key - 1) }.addr();
    if value != 0 {
        return MALLOCX_TCACHE(value - 1);
    }
    let Some(index) = jemalloc::get::<c_uint>(c"tcache.create") else { return MALLOCX_TCACHE_NONE };
    let value = core::ptr::without_provenance::<c_void>(index as usize + 1);
    // SAFETY: as above; the value is a number.
    if unsafe { libc::pthread_setspecific(key - 1, value) } != 0 {
        jemalloc::set(c"tcache.destroy", index);
        return MALLOCX_TCACHE_NONE;
    }
    MALLOCX_TCACHE(index as usize)
}

/// At the end of a thread; a later destructor that allocates gets a new cache, and this runs again.
///
/// # Safety
///
/// Called by the C library with the value of `cache`.
unsafe extern "C" fn destroy_cache(value: *mut c_void) {
    jemalloc::set(c"tcache.destroy", (value.addr() - 1) as c_uint);
}

struct Hooks(extent_hooks_t);
// SAFETY: the table is only read, and holds functions.
unsafe impl Sync for Hooks {}

/// What is not here is declined: jemalloc keeps extents for reuse, and gives pages back by `purge`.
static HOOKS: Hooks = Hooks(extent_hooks_t {
    alloc: Some(take),
    dalloc: None,
    destroy: None,
    commit: None,
    decommit: None,
    purge_lazy: None,
    purge_forced: Some(purge),
    split: Some(split),
    merge: Some(merge),
});

/// # Safety
///
/// Called by jemalloc only: an extent of the far arena.
unsafe extern "C" fn take(
    _: *mut extent_hooks_t,
    wanted: *mut c_void,
    size: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    _: c_uint,
) -> *mut c_void {
    let (base, length) = (BASE.load(Acquire), LENGTH.load(Relaxed));
    let place = |used: usize| {
        let start = (base + used).checked_next_multiple_of(alignment)? - base;
        let end = start.checked_add(size)?;
        (end <= length && (wanted.is_null() || wanted.addr() == base + start)).then_some((start, end))
    };
    let Ok(used) = USED.fetch_update(Relaxed, Relaxed, |used| place(used).map(|(_, end)| end)) else {
        return null_mut();
    };
    let Some((start, _)) = place(used) else { return null_mut() };
    let extent = core::ptr::with_exposed_provenance_mut::<c_void>(base + start);
    // SAFETY: this part of the reservation is this extent's alone from now on; the two flags are jemalloc's to be set.
    unsafe {
        if libc::mprotect(extent, size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return null_mut();
        }
        *zero = true;
        *commit = true;
    }
    extent
}

/// # Safety
///
/// Called by jemalloc only: an extent of the far arena.
unsafe extern "C" fn purge(
    _: *mut extent_hooks_t,
    extent: *mut c_void,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    // SAFETY: jemalloc has nothing in these pages.
    unsafe { libc::madvise(extent.byte_add(offset), length, libc::MADV_DONTNEED) != 0 }
}

/// Yes: a part of a mapping is a mapping.
///
/// # Safety
///
/// Called by jemalloc only: an extent of the far arena.
unsafe extern "C" fn split(
    _: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: usize,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// Yes: neighbours are in one reservation.
///
/// # Safety
///
/// Called by jemalloc only: an extent of the far arena.
unsafe extern "C" fn merge(
    _: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: *mut c_void,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}
