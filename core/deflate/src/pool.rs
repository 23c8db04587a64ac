//! The tables and buffers of engines, shared by all streams of the process.
//!
//! A set of tables is used inside one call and then given back, so there are as many as threads that compress at the
//! same moment. Taking and giving are atomic exchanges: no thread ever waits, and a process forked at any point finds a
//! usable pool; at worst it lacks what other threads had taken.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

pub use crate::engine::bound;
use crate::engine::bucket::Bucket;
use crate::engine::isal::Isal;
use crate::engine::libdeflate::Libdeflate;
use crate::engine::zlib::Zlib;
use crate::engine::{Bits, Chunk, Engine, EngineKind, Settings, Written};
use crate::pages::{self, Page};
use crate::stack;

/// How many of each kind are kept while any is in use. A caller that finds none left makes one, and the excess is freed
/// afterwards.
const SLOTS: usize = 32;

/// How many are kept while none is in use: what a burst on many threads leaves behind would otherwise stay for ever,
/// and in RAM if the process locks its memory.
const KEPT: usize = 2;

static ISAL: Pool<Isal> = Pool::new();
static LIBDEFLATE: Pool<Libdeflate> = Pool::new();
static BUCKET: Pool<Bucket> = Pool::new();
static ZLIB_RS: Pool<Zlib> = Pool::new();
static ORIGINAL: Pool<Zlib> = Pool::new();

/// Has an engine of this kind compress `chunk` into `out`. `None` if it does not fit or does not suit this engine.
pub fn compress(kind: EngineKind, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
    match kind {
        EngineKind::Isal => ISAL.with(Isal::new, |engine| engine.compress(settings, chunk, out)),
        EngineKind::Libdeflate => {
            LIBDEFLATE.with(|| Some(Libdeflate::new()), |engine| engine.compress(settings, chunk, out))
        }
        EngineKind::Bucket => BUCKET.with(Bucket::new, |engine| engine.compress(settings, chunk, out)),
        EngineKind::ZlibRs => ZLIB_RS.with(Zlib::zlib_rs, |engine| engine.compress(settings, chunk, out)),
        EngineKind::Original => ORIGINAL.with(Zlib::original, |engine| engine.compress(settings, chunk, out)),
    }
}

static IS_RESERVED: AtomicBool = AtomicBool::new(false);

/// Stops all system calls. What open streams still need is made first.
pub fn seal() {
    if IS_RESERVED.load(Ordering::Relaxed)
        && let Some(mut out) = scratch(bound(0))
    {
        let empty = Chunk { before: Bits::NONE, history: &[], input: &[], last: true };
        for kind in [EngineKind::ZlibRs, EngineKind::Original] {
            compress(kind, &Settings::default(), &empty, &mut out);
        }
    }
    pages::seal();
}

/// Makes what one thread needs to compress, and returns whether it is available: `deflate` needs no memory to succeed,
/// so a stream that might lack some later must not be opened. Made once, for the engines allowed at that time.
pub fn reserve(is_allowed: impl Fn(EngineKind) -> bool) -> bool {
    // Asks the kernel now: later it may not be asked either.
    stack::known();
    if IS_RESERVED.load(Ordering::Relaxed) {
        return true;
    }
    let is_there = (!is_allowed(EngineKind::Isal) || ISAL.reserve(1, Isal::new))
        && (!is_allowed(EngineKind::Libdeflate) || LIBDEFLATE.reserve(1, Libdeflate::complete))
        && (!is_allowed(EngineKind::Bucket) || BUCKET.reserve(1, Bucket::new))
        && SCRATCH.iter().all(|class| class.buffers.reserve(class.reserved, || Buffer::new(class.size)));
    IS_RESERVED.fetch_or(is_there, Ordering::Relaxed);
    is_there
}

/// A buffer of at least `length` bytes that returns to the process when dropped; `None` if memory runs out. Its
/// contents are undefined: they may be another stream's.
pub fn scratch(length: usize) -> Option<Scratch> {
    let Some(class) = SCRATCH.iter().find(|class| length <= class.size) else {
        let buffer = Page::new(Buffer::new(length)?)?;
        return Some(Scratch { buffer: ManuallyDrop::new(buffer), length, class: None });
    };
    let buffer = class.buffers.borrow(|| Buffer::new(class.size))?;
    Some(Scratch { buffer: ManuallyDrop::new(buffer), length, class: Some(class) })
}

/// See [`scratch`].
#[derive(Debug)]
pub struct Scratch {
    buffer: ManuallyDrop<Page<Buffer>>,
    length: usize,
    class: Option<&'static Class>,
}

#[derive(Debug)]
struct Buffer(NonNull<u8>);

// SAFETY: memory that is tied to no thread, and nobody else has a pointer to it.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(length: usize) -> Option<Self> {
        pages::take(length).map(Self)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the piece came from `new`, and nobody uses it afterwards.
        unsafe { pages::give_back(self.0) }
    }
}

/// Buffers of one size.
#[derive(Debug)]
struct Class {
    size: usize,
    /// How many are made before the first stream is opened.
    reserved: usize,
    buffers: Pool<Buffer>,
}

static SCRATCH: [Class; 3] = [
    Class { size: 64 << 10, reserved: 1, buffers: Pool::new() },
    // The output, and the input behind its history.
    Class { size: 320 << 10, reserved: 2, buffers: Pool::new() },
    Class { size: 1280 << 10, reserved: 0, buffers: Pool::new() },
];

impl Deref for Scratch {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer is at least this long (`scratch`), was zero at first, and is borrowed with its owner.
        unsafe { slice::from_raw_parts(self.buffer.0.as_ptr(), self.length) }
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.buffer.0.as_ptr(), self.length) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: nobody uses the field after its owner was dropped.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        if let Some(class) = self.class {
            class.buffers.give_back(buffer);
        }
    }
}

/// A few values that nobody uses at the moment. Each pointer is a page's, or null.
pub(crate) struct Pool<T> {
    slots: [AtomicPtr<T>; SLOTS],
    /// How many are in use. In a child forked meanwhile this stays above zero, and nothing is freed there.
    lent: AtomicUsize,
    /// How many stay once all have been given back.
    kept: usize,
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("lent", &self.lent).finish_non_exhaustive()
    }
}

impl<T: Send> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self::keeping(KEPT)
    }

    /// For values that are slow to make: none are freed.
    pub(crate) const fn of_sessions() -> Self {
        Self::keeping(SLOTS)
    }

    const fn keeping(kept: usize) -> Self {
        Self { slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS], lent: AtomicUsize::new(0), kept }
    }

    /// Uses a value, made by `make` if none is left.
    pub(crate) fn with<R>(
        &self,
        make: impl FnOnce() -> Option<T>,
        work: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        let mut value = self.borrow(make)?;
        let result = work(&mut value);
        self.give_back(value);
        result
    }

    /// A value, made by `make` if none is left. The caller must give it back.
    fn borrow(&self, make: impl FnOnce() -> Option<T>) -> Option<Page<T>> {
        self.lent.fetch_add(1, Ordering::Relaxed);
        let value = self.take().or_else(|| make().and_then(Page::new));
        if value.is_none() {
            self.lent.fetch_sub(1, Ordering::Relaxed);
        }
        value
    }

    /// Makes `count` values for later; whether they are available.
    fn reserve(&self, count: usize, make: impl Fn() -> Option<T>) -> bool {
        (0..count).all(|_| make().and_then(Page::new).map(|value| self.put(value)).is_some())
    }

    fn give_back(&self, value: Page<T>) {
        self.put(value);
        if self.lent.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shrink();
        }
    }

    /// Frees the excess. The first slots are filled first.
    fn shrink(&self) {
        for slot in &self.slots[self.kept..] {
            if !slot.load(Ordering::Relaxed).is_null() {
                // SAFETY: the pointer is null or a page's (`put`), and the exchange made it ours alone.
                drop(unsafe { owned(slot.swap(ptr::null_mut(), Ordering::Acquire)) });
            }
        }
    }

    fn take(&self) -> Option<Page<T>> {
        self.slots.iter().find_map(|slot| {
            // Detects an empty slot without writing to a cache line that other threads want.
            let seen = !slot.load(Ordering::Relaxed).is_null();
            // SAFETY: as in `shrink`.
            seen.then(|| unsafe { owned(slot.swap(ptr::null_mut(), Ordering::Acquire)) }).flatten()
        })
    }

    fn put(&self, value: Page<T>) {
        let value = value.into_raw();
        let kept = self.slots.iter().any(|slot| {
            slot.load(Ordering::Relaxed).is_null()
                && slot.compare_exchange(ptr::null_mut(), value, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !kept {
            // SAFETY: the pointer is a page's, and no slot took it.
            drop(unsafe { owned(value) });
        }
    }
}

/// # Safety
///
/// The pointer is null, or came from [`Page::into_raw`] and is used by nobody else.
unsafe fn owned<T>(value: *mut T) -> Option<Page<T>> {
    // SAFETY: the caller's promise.
    NonNull::new(value).map(|value| unsafe { Page::from_raw(value) })
}
