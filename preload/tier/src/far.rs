//! Far memory: addresses that are reserved once and bound to a node, from which one arena of jemalloc takes its extents.
//!
//! It is private and anonymous, so that a forked process has its own copy, as of all memory.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use crate::{config, jemalloc, start, thread};

/// As many addresses as any machine has memory. They cost nothing before they are used.
pub(crate) const LENGTH: usize = 1 << 40;

static BASE: AtomicUsize = AtomicUsize::new(0);
/// 0 until there is an arena: then no address is far.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static ARENA: AtomicU32 = AtomicU32::new(0);

/// Makes the arena; false if this process cannot have one.
pub(crate) fn open(node: Option<u32>) -> bool {
    if !may_reserve() {
        return false;
    }
    let Some(base) = reserve() else { return false };
    BASE.store(base.addr(), Relaxed);
    let is_bound = node.is_none_or(|node| bind(base, node));
    // SAFETY: the table is a static.
    let arena = if is_bound { unsafe { jemalloc::create_arena((&raw const HOOKS).cast()) } } else { None };
    let Some(arena) = arena else {
        // SAFETY: this reservation, of which nobody knows.
        unsafe { libc::munmap(base, LENGTH) };
        return false;
    };
    ARENA.store(arena, Relaxed);
    RESERVED.store(LENGTH, Release);
    true
}

/// Whether reserved addresses count against nothing in this process.
fn may_reserve() -> bool {
    /// With no more than this, a program cannot lock its memory anyway.
    const SMALL: libc::rlim_t = 64 << 20;
    let limit = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel writes one limit.
        (unsafe { libc::getrlimit(resource, &raw mut limit) } == 0).then_some(limit.rlim_cur)
    };
    let is_free = |limit: Option<libc::rlim_t>| limit == Some(libc::RLIM_INFINITY);
    let locked = limit(libc::RLIMIT_MEMLOCK);
    is_free(limit(libc::RLIMIT_AS)) && (is_free(locked) || locked.is_some_and(|locked| locked <= SMALL))
}

fn reserve() -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory at an address of the kernel's choice.
    let base = unsafe { libc::mmap(null_mut(), LENGTH, libc::PROT_NONE, flags, -1, 0) };
    (base != libc::MAP_FAILED).then_some(base)
}

/// Prefers the node for the whole reservation: when it is full, the kernel takes memory of another, where a strict
/// policy would end the program.
fn bind(base: *mut c_void, node: u32) -> bool {
    const BITS: usize = u64::BITS as usize;
    let mut mask = [0_u64; config::NODES as usize / BITS];
    mask[node as usize / BITS] = 1 << (node as usize % BITS);
    // SAFETY: mbind reads the mask, whose length in bits it takes one too high, and sets the policy of the reservation.
    let error = unsafe {
        let bits = config::NODES as usize + 1;
        libc::syscall(libc::SYS_mbind, base, LENGTH, libc::MPOL_PREFERRED, mask.as_ptr(), bits, 0)
    };
    error == 0
}

/// Whether an address is of far memory.
#[inline]
pub(crate) fn has(address: *const c_void) -> bool {
    address.addr().wrapping_sub(BASE.load(Relaxed)) < RESERVED.load(Relaxed)
}

/// The arena, as jemalloc numbers it.
pub(crate) fn arena() -> u32 {
    ARENA.load(Relaxed)
}

/// jemalloc's flags for this thread and far memory.
#[inline]
pub(crate) fn flags() -> c_int {
    jemalloc::of_arena(arena()) | thread::cache()
}

type Extent = *mut c_void;

/// jemalloc's `extent_hooks_t`, the same since its release 5.0.
#[repr(C)]
struct Hooks {
    alloc: unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, *mut bool, *mut bool, c_uint) -> Extent,
    dalloc: Option<unsafe extern "C" fn()>,
    destroy: Option<unsafe extern "C" fn()>,
    commit: Option<unsafe extern "C" fn()>,
    decommit: Option<unsafe extern "C" fn()>,
    purge_lazy: Option<unsafe extern "C" fn()>,
    purge_forced: unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, usize, c_uint) -> bool,
    split: unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, usize, bool, c_uint) -> bool,
    merge: unsafe extern "C" fn(*mut Hooks, Extent, usize, Extent, usize, bool, c_uint) -> bool,
}

/// What is missing is declined: jemalloc keeps addresses for later, and gives their memory back with `purge_forced`.
static HOOKS: Hooks = Hooks {
    alloc: take,
    dalloc: None,
    destroy: None,
    commit: None,
    decommit: None,
    purge_lazy: None,
    purge_forced: purge,
    split,
    merge,
};

/// The place in the reservation, from its start and to its end, if there is one.
fn place(base: usize, used: usize, wanted: usize, size: usize, alignment: usize) -> Option<(usize, usize)> {
    let start = (base + used).checked_next_multiple_of(alignment)? - base;
    let end = start.checked_add(size)?;
    let is_wanted = wanted == 0 || wanted == base + start;
    (is_wanted && end <= LENGTH).then_some((start, end))
}

/// # Safety
///
/// Called by jemalloc, for an extent of the far arena; the two flags are valid.
unsafe extern "C" fn take(
    _: *mut Hooks,
    wanted: Extent,
    size: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    _: c_uint,
) -> Extent {
    // The program may no longer make all system calls.
    if start::is_sandboxed() {
        return null_mut();
    }
    let base = BASE.load(Acquire);
    let place = |used| place(base, used, wanted.addr(), size, alignment);
    let mut used = USED.load(Relaxed);
    let (first, last) = loop {
        let Some((first, last)) = place(used) else { return null_mut() };
        match USED.compare_exchange_weak(used, last, Relaxed, Relaxed) {
            Ok(_) => break (first, last),
            Err(now) => used = now,
        }
    };
    debug_assert_eq!(last - first, size);
    let extent = core::ptr::with_exposed_provenance_mut::<c_void>(base + first);
    // SAFETY: this part of the reservation belongs to this extent from now on, or to nobody; errno is the thread's own,
    // and the flags are jemalloc's to be set. The memory has never been written to.
    unsafe {
        let errno = *libc::__errno_location();
        if libc::mprotect(extent, size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            *libc::__errno_location() = errno;
            return null_mut();
        }
        *zero = true;
        *commit = true;
    }
    extent
}

/// # Safety
///
/// Called by jemalloc, for an extent of the far arena, in whose pages it keeps nothing.
unsafe extern "C" fn purge(
    _: *mut Hooks,
    extent: Extent,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    // SAFETY: the contract; errno is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let has_failed = libc::madvise(extent.byte_add(offset), length, libc::MADV_DONTNEED) != 0;
        *libc::__errno_location() = errno;
        has_failed
    }
}

/// Any extent can be split: the reservation is one mapping.
///
/// # Safety
///
/// Called by jemalloc, for an extent of the far arena.
unsafe extern "C" fn split(
    _: *mut Hooks,
    _: Extent,
    _: usize,
    _: usize,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// Neighbours can be merged, likewise.
///
/// # Safety
///
/// Called by jemalloc, for extents of the far arena.
unsafe extern "C" fn merge(
    _: *mut Hooks,
    _: Extent,
    _: usize,
    _: Extent,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_and_end_with_the_reservation() {
        let base = 0x7000_0000_1000;
        assert_eq!(place(base, 0, 0, 4096, 4096), Some((0, 4096)));
        assert_eq!(place(base, 4096, 0, 4096, 1 << 21), Some(((1 << 21) - 0x1000, 1 << 21)));
        assert_eq!(place(base, 4096, base + 4096, 8192, 4096), Some((4096, 12288)));
        assert_eq!(place(base, 4096, base, 8192, 4096), None, "taken");
        assert_eq!(place(base, 0, 0, LENGTH, 4096), Some((0, LENGTH)));
        assert_eq!(place(base, 4096, 0, LENGTH, 4096), None, "too long");
        assert_eq!(place(base, 4096, 0, usize::MAX, 4096), None, "far too long");
    }
}
