//! Far memory: addresses that are reserved once and bound to a node, from which one arena of jemalloc takes its extents.
//!
//! It is private and anonymous, so that a forked process has its own copy, as of all memory.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use crate::{config, jemalloc, start, thread};

/// As many addresses as any machine has memory. They cost nothing before they are used.
pub(crate) const LENGTH: usize = 1 << 40;

static BASE: AtomicUsize = AtomicUsize::new(0);
/// 0 until there is an arena: then no address is far.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
/// All of them, once the rest was given back.
static USED: AtomicUsize = AtomicUsize::new(0);
static ARENA: AtomicU32 = AtomicU32::new(0);
/// The node that far memory prefers.
static NODE: AtomicU32 = AtomicU32::new(ANY);
const ANY: u32 = u32::MAX;
/// The kernel promises no more memory than there is (`vm.overcommit_memory=2`): what may be written to counts, used or not.
static IS_PROMISED: AtomicBool = AtomicBool::new(false);

/// Makes the arena; false if this process cannot have one.
pub(crate) fn open(node: Option<u32>) -> bool {
    if !may_reserve() {
        return false;
    }
    let Some(base) = reserve() else { return false };
    BASE.store(base.addr(), Relaxed);
    IS_PROMISED.store(config::is_promised(), Relaxed);
    NODE.store(node.unwrap_or(ANY), Relaxed);
    let is_bound = node.is_none_or(|node| bind(base, LENGTH, node));
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

/// Gives back the addresses that are not used: the program is about to limit those that it may have. Far memory grows no more.
pub(crate) fn give_back() {
    if start::is_sandboxed() || RESERVED.load(Acquire) == 0 {
        return;
    }
    let used = USED.swap(LENGTH, Relaxed);
    if used == LENGTH {
        return;
    }
    // From now on they may belong to anybody.
    RESERVED.store(used, Relaxed);
    let rest = core::ptr::with_exposed_provenance_mut::<c_void>(BASE.load(Relaxed) + used);
    // SAFETY: this part of the reservation belongs to no extent, and to none later.
    errno_kept(|| unsafe { libc::munmap(rest, LENGTH - used) });
}

/// The program may be about to look at the errno of a call of its own.
fn errno_kept<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno is the thread's own, and always there.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = work();
        *errno = before;
        result
    }
}

/// Prefers the node for a part of the reservation, or all: when it is full, the kernel takes memory of another, where a strict
/// policy would end the program.
fn bind(base: *mut c_void, length: usize, node: u32) -> bool {
    const BITS: usize = u64::BITS as usize;
    let mut mask = [0_u64; config::NODES as usize / BITS];
    mask[node as usize / BITS] = 1 << (node as usize % BITS);
    // SAFETY: mbind reads the mask, whose length in bits it takes one too high, and sets the policy of our addresses.
    let error = unsafe {
        let bits = config::NODES as usize + 1;
        libc::syscall(libc::SYS_mbind, base, length, libc::MPOL_PREFERRED, mask.as_ptr(), bits, 0)
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

/// A hook for a part of an extent, by its offset and its length: true if nothing was done.
type OfPart = unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, usize, c_uint) -> bool;

/// jemalloc's `extent_hooks_t`, the same since its release 5.0.
#[repr(C)]
struct Hooks {
    alloc: unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, *mut bool, *mut bool, c_uint) -> Extent,
    dalloc: Option<unsafe extern "C" fn()>,
    destroy: Option<unsafe extern "C" fn()>,
    commit: OfPart,
    decommit: OfPart,
    purge_lazy: Option<unsafe extern "C" fn()>,
    purge_forced: OfPart,
    split: unsafe extern "C" fn(*mut Hooks, Extent, usize, usize, usize, bool, c_uint) -> bool,
    merge: unsafe extern "C" fn(*mut Hooks, Extent, usize, Extent, usize, bool, c_uint) -> bool,
}

/// What is missing is declined: jemalloc keeps addresses for later, and gives their memory back with `decommit`, or with
/// `purge_forced` where that is enough.
static HOOKS: Hooks = Hooks {
    alloc: take,
    dalloc: None,
    destroy: None,
    commit,
    decommit,
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
    // SAFETY: this part of the reservation belongs to this extent from now on, or to nobody, and the flags are jemalloc's to be
    // set. The memory has never been written to.
    unsafe {
        *zero = true;
        // It takes more than it needs at a time, and of that it says what it needs.
        if IS_PROMISED.load(Relaxed) && !*commit {
            return extent;
        }
        if !allow(extent, size) {
            return null_mut();
        }
        *commit = true;
    }
    extent
}

/// Whether this part may now be written to.
///
/// # Safety
///
/// A part of the reservation that belongs to the caller.
unsafe fn allow(part: *mut c_void, length: usize) -> bool {
    // SAFETY: the contract: its rights concern nobody else.
    errno_kept(|| unsafe { libc::mprotect(part, length, libc::PROT_READ | libc::PROT_WRITE) == 0 })
}

/// # Safety
///
/// Called by jemalloc, for an extent of the far arena, of which this part was decommitted.
unsafe extern "C" fn commit(
    _: *mut Hooks,
    extent: Extent,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    // SAFETY: the contract: the part is within the extent, which is jemalloc's.
    start::is_sandboxed() || unsafe { !allow(extent.byte_add(offset), length) }
}

/// Takes back the promise of memory, which goes only with the mapping itself.
///
/// # Safety
///
/// Called by jemalloc, for an extent of the far arena, in this part of which it keeps nothing.
unsafe extern "C" fn decommit(
    _: *mut Hooks,
    extent: Extent,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    if !IS_PROMISED.load(Relaxed) || start::is_sandboxed() {
        return true;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the contract: the part is within the extent, nothing is kept there, and nobody else has these addresses.
    errno_kept(|| unsafe {
        let part = extent.byte_add(offset);
        let has_failed = libc::mmap(part, length, libc::PROT_NONE, flags, -1, 0) == libc::MAP_FAILED;
        let node = NODE.load(Relaxed);
        if !has_failed && node != ANY {
            // If that fails, the memory is on the node of who writes to it first.
            bind(part, length, node);
        }
        has_failed
    })
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
    // SAFETY: the contract: the part is within the extent, and nothing is kept there.
    errno_kept(|| unsafe { libc::madvise(extent.byte_add(offset), length, libc::MADV_DONTNEED) != 0 })
}

/// Any extent can be split: no part of the reservation is ever unmapped alone.
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
