//! The memory of a stream: exactly what zlib would have asked for.
//!
//! Some programs serve a stream from an arena that they made just large enough, complain about any other request, and
//! drop the arena without ending the stream. A library that asks for more would fail in such programs, and memory from
//! elsewhere would leak. So for each window and memory level, the original is observed once to learn what it allocates.

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr::{self, NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use hasten_deflate::abi::{Alloc, Free, Z_DEFLATED, Z_OK, ZStream};
use hasten_deflate::engine::Settings;

use crate::hooks::original;

/// More calls than any zlib makes for a stream.
const MAX_CALLS: usize = 8;

/// The calls of an allocator that make up a stream, in order, as (items, size).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pattern {
    calls: [(c_uint, c_uint); MAX_CALLS],
    count: usize,
    /// Whether it is one block of the usual size, from those that are kept.
    is_usual: bool,
}

/// The memory allocated for a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions {
    addresses: [Option<NonNull<c_void>>; MAX_CALLS],
    count: usize,
    is_usual: bool,
}

const WINDOWS: usize = 7;
const MEM_LEVELS: usize = 9;
static PATTERNS: [AtomicPtr<Pattern>; WINDOWS * MEM_LEVELS] =
    [const { AtomicPtr::new(null_mut()) }; WINDOWS * MEM_LEVELS];

impl Pattern {
    /// What the original allocates; `None` if that cannot be determined.
    pub(crate) fn of(settings: &Settings) -> Option<&'static Self> {
        let window = usize::from(settings.window_bits).checked_sub(9)?;
        let slot = &PATTERNS[window * MEM_LEVELS + usize::from(settings.mem_level) - 1];
        let mut pattern = slot.load(Ordering::Acquire);
        if pattern.is_null() {
            pattern = Box::into_raw(Box::new(Self::learn(settings)));
            // Two threads may learn the same pattern at the same time; the few bytes of one of them leak.
            slot.store(pattern, Ordering::Release);
        }
        // SAFETY: the slot only ever holds leaked boxes.
        let pattern = unsafe { &*pattern };
        (pattern.count > 0).then_some(pattern)
    }

    /// Has the original open a stream with an allocator that records its calls.
    fn learn(settings: &Settings) -> Self {
        let mut notes = Self::default();
        let mut stream = ZStream::new();
        stream.zalloc = Some(note);
        stream.zfree = Some(release);
        stream.opaque = (&raw mut notes).cast();
        let (window, mem_level) = (-c_int::from(settings.window_bits), settings.mem_level.into());
        // SAFETY: a stream of our own with an allocator that outlives it; the version matches the structure.
        unsafe {
            let init = original::deflateInit2_.get();
            let version = c"1.2.13".as_ptr();
            if init(
                &raw mut stream,
                6,
                Z_DEFLATED,
                window,
                mem_level,
                0,
                version,
                size_of::<ZStream>() as c_int,
            ) != Z_OK
            {
                return Self::default();
            }
            original::deflateEnd.get()(&raw mut stream);
        }
        if notes.count > MAX_CALLS { Self::default() } else { notes }
    }

    /// Makes the calls to the stream's own allocator. Like zlib, makes all of them even after one has failed, except
    /// after the first, for which zlib leaves no message either.
    ///
    /// # Safety
    ///
    /// `alloc` and `free` are an allocator as zlib.h defines it.
    pub(crate) unsafe fn allocate(
        &self,
        alloc: Alloc,
        free: Free,
        opaque: *mut c_void,
    ) -> Result<Regions, &'static CStr> {
        let mut regions = Regions { addresses: [None; MAX_CALLS], count: 0, is_usual: self.is_usual };
        let alloc = if self.is_usual { usual_alloc } else { alloc };
        for (items, size) in self.calls[..self.count].iter().copied() {
            // SAFETY: the caller's promise.
            let address = NonNull::new(unsafe { alloc(opaque, items, size) });
            if address.is_none() && regions.count == 0 {
                return Err(c"");
            }
            regions.addresses[regions.count] = address;
            regions.count += 1;
        }
        if regions.addresses[..regions.count].iter().all(Option::is_some) {
            return Ok(regions);
        }
        // SAFETY: from this allocator, and no longer in use.
        unsafe { regions.free(free, opaque) };
        Err(c"insufficient memory")
    }

    fn size(&self, index: usize) -> usize {
        self.calls[index].0 as usize * self.calls[index].1 as usize
    }

    /// The size of the memory that [`Self::pieces`] will have.
    pub(crate) fn room(&self, head: usize) -> usize {
        let total: usize = (0..self.count).map(|index| self.size(index)).sum();
        match self.count {
            1 => total.saturating_sub(head),
            _ if self.size(0) < head => 0,
            _ => total - self.size(0),
        }
    }

    /// The regions with their sizes. If there is only one, it is split in two: `head` bytes, and the rest.
    pub(crate) fn pieces(&self, regions: &Regions, head: usize) -> Option<(NonNull<u8>, Pieces)> {
        let first = regions.addresses[0]?.cast::<u8>();
        debug_assert!(self.size(0) >= head);
        let mut pieces = Pieces { list: [(first, 0); MAX_CALLS], count: 0 };
        if self.count == 1 {
            // SAFETY: inside the region, which has room for more than the head (`room`).
            pieces.push(unsafe { first.add(head) }, self.size(0) - head);
        }
        for index in 1..self.count {
            pieces.push(regions.addresses[index]?.cast(), self.size(index));
        }
        Some((first, pieces))
    }

    /// One region as large as all calls together, from malloc, where no program observes it.
    pub(crate) fn merged(&self) -> Self {
        let total: usize = (0..self.count).map(|index| self.size(index)).sum();
        let mut merged = Self { count: 1, is_usual: is_usual(total), ..Self::default() };
        merged.calls[0] = (1, total as c_uint);
        merged
    }
}

/// Regions with their sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    list: [(NonNull<u8>, usize); MAX_CALLS],
    count: usize,
}

impl Pieces {
    fn push(&mut self, address: NonNull<u8>, len: usize) {
        self.list[self.count] = (address, len);
        self.count += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        self.list[..self.count].iter().copied()
    }
}

impl Regions {
    /// Frees everything, in reverse order, as zlib does.
    ///
    /// # Safety
    ///
    /// `free` belongs to the allocator that the regions came from; nothing uses them any more.
    pub(crate) unsafe fn free(&self, free: Free, opaque: *mut c_void) {
        // The program may have replaced our function with its own.
        let is_kept = self.is_usual && ptr::fn_addr_eq(free, default_free as Free);
        let free = if is_kept { usual_free } else { free };
        for address in self.addresses[..self.count].iter().rev().flatten() {
            // SAFETY: the caller's promise.
            unsafe { free(opaque, address.as_ptr()) };
        }
    }
}

/// The number of bytes that the original asks for to open an inflate stream; 0 unless it does so in a single call.
pub(crate) fn inflate_state() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(UNKNOWN);
    const UNKNOWN: usize = usize::MAX;
    let mut size = SIZE.load(Ordering::Relaxed);
    if size == UNKNOWN {
        let notes = notes_of_inflate();
        size = if notes.count == 1 && notes.calls[0].0 == 1 { notes.size(0) } else { 0 };
        SIZE.store(size, Ordering::Relaxed);
    }
    size
}

/// Has the original open an inflate stream with an allocator that records its calls.
fn notes_of_inflate() -> Pattern {
    let mut notes = Pattern::default();
    let mut stream = ZStream::new();
    stream.zalloc = Some(note);
    stream.zfree = Some(release);
    stream.opaque = (&raw mut notes).cast();
    // SAFETY: a stream of our own with an allocator that outlives it; the version matches the structure.
    unsafe {
        let (version, size) = (c"1.2.13".as_ptr(), size_of::<ZStream>() as c_int);
        if original::inflateInit2_.get()(&raw mut stream, 15, version, size) == Z_OK {
            original::inflateEnd.get()(&raw mut stream);
        }
    }
    notes
}

/// The allocator of a stream that brings none of its own.
pub(crate) extern "C" fn default_alloc(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: malloc takes any size.
    unsafe { libc::malloc(items as usize * size as usize) }
}

/// # Safety
///
/// `address` is null or came from [`default_alloc`], and nothing uses it any more.
pub(crate) unsafe extern "C" fn default_free(_: *mut c_void, address: *mut c_void) {
    // SAFETY: `address` came from `default_alloc`, and so from malloc.
    unsafe { libc::free(address) };
}

/// As [`default_alloc`], for a merged pattern.
///
/// Freed blocks of the usual size are kept: getting one from the kernel, and giving it back, takes longer than
/// compressing a short text.
extern "C" fn usual_alloc(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    debug_assert!(items == 1 && is_usual(size as usize));
    let kept =
        KEPT.iter().map(|slot| slot.swap(null_mut(), Ordering::Acquire)).find(|block| !block.is_null());
    // SAFETY: malloc takes any size.
    kept.unwrap_or_else(|| unsafe { libc::malloc(USUAL) })
}

/// # Safety
///
/// `address` is a block of [`usual_alloc`] that nothing uses any more.
unsafe extern "C" fn usual_free(_: *mut c_void, address: *mut c_void) {
    let keep = |slot: &AtomicPtr<c_void>| {
        slot.compare_exchange(null_mut(), address, Ordering::Release, Ordering::Relaxed).is_ok()
    };
    if !KEPT.iter().any(keep) {
        // SAFETY: `address` came from `usual_alloc`, and so from malloc.
        unsafe { libc::free(address) };
    }
}

fn is_usual(size: usize) -> bool {
    (USUAL / 4..=USUAL).contains(&size)
}

/// A little more than zlib takes with default parameters.
const USUAL: usize = 272 << 10;

/// Unused blocks of that size.
static KEPT: [AtomicPtr<c_void>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];

/// # Safety
///
/// `notes` points to a [`Pattern`] that nothing else uses meanwhile.
unsafe extern "C" fn note(notes: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: `opaque` of the stream in `learn`, which is alive during the call.
    let notes = unsafe { &mut *notes.cast::<Pattern>() };
    if let Some(call) = notes.calls.get_mut(notes.count) {
        *call = (items, size);
    }
    notes.count += 1;
    // SAFETY: as above. Zeroed memory does no harm, and some zlibs rely on zeros from their own allocator.
    unsafe { libc::calloc(items as usize, size as usize) }
}

/// # Safety
///
/// `address` is null or came from [`note`], and nothing uses it any more.
unsafe extern "C" fn release(_: *mut c_void, address: *mut c_void) {
    // SAFETY: `address` came from `note`.
    unsafe { libc::free(address) }
}

/// Writes `value` to uninitialised memory.
///
/// # Safety
///
/// `place` has room and alignment for it.
pub(crate) unsafe fn put<T>(place: NonNull<u8>, value: T) -> *mut T {
    let place = place.as_ptr().cast::<T>();
    // SAFETY: the caller's promise.
    unsafe { ptr::write(place, value) };
    place
}
