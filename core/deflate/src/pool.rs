//! What engines work with, for all streams of the process.
//!
//! A set of tables is used inside one call and then given back, so there are as many as there are threads that compress
//! at the same moment. Taking and giving are atomic exchanges: no thread ever waits, and a process forked at any point
//! finds a usable pool; at worst it lacks what other threads had taken.

use std::alloc::{Layout, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub use crate::engine::bound;
use crate::engine::isal::Isal;
use crate::engine::libdeflate::Libdeflate;
use crate::engine::zlib::Zlib;
use crate::engine::{Chunk, Engine, EngineKind, Settings, Written};
use crate::pages;

/// How many are kept of each kind while somebody works. Whoever comes with none left makes one, and frees one too many
/// afterwards.
const SLOTS: usize = 32;

/// How many are kept while nobody does: what a burst on many threads has left behind would be held for good, and in a
/// process that locks its memory in RAM.
const KEPT: usize = 2;

static ISAL: Pool<Isal> = Pool::new();
static LIBDEFLATE: Pool<Libdeflate> = Pool::new();
static ZLIB_RS: Pool<Zlib> = Pool::new();
static ORIGINAL: Pool<Zlib> = Pool::new();

/// Lets an engine of this kind compress `chunk` into `out`. `None` if it does not fit, or is not for this engine.
pub fn compress(kind: EngineKind, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
    match kind {
        EngineKind::Isal => ISAL.with(Isal::new, |engine| engine.compress(settings, chunk, out)),
        EngineKind::Libdeflate => {
            LIBDEFLATE.with(|| Some(Libdeflate::new()), |engine| engine.compress(settings, chunk, out))
        }
        EngineKind::ZlibRs => {
            ZLIB_RS.with(|| Some(Zlib::zlib_rs()), |engine| engine.compress(settings, chunk, out))
        }
        EngineKind::Original => ORIGINAL.with(Zlib::original, |engine| engine.compress(settings, chunk, out)),
    }
}

/// A buffer of at least `length` bytes that goes back to the process when it is dropped. What is in it is not defined:
/// it may be another stream's.
pub fn scratch(length: usize) -> Scratch {
    let class = SCRATCH.iter().find(|class| length <= class.size);
    let kept = class.and_then(|class| class.buffers.borrow());
    let buffer = kept.unwrap_or_else(|| Box::new(Buffer::new(class.map_or(length, |class| class.size))));
    Scratch { buffer: ManuallyDrop::new(buffer), length, class }
}

/// See [`scratch`].
#[derive(Debug)]
pub struct Scratch {
    buffer: ManuallyDrop<Box<Buffer>>,
    length: usize,
    class: Option<&'static Class>,
}

#[derive(Debug)]
struct Buffer(NonNull<u8>);

// SAFETY: memory that belongs to no thread, and nobody else has a pointer to it.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(length: usize) -> Self {
        let bytes = pages::take(length);
        let out_of_memory =
            || handle_alloc_error(Layout::array::<u8>(length).unwrap_or(Layout::new::<Self>()));
        Self(bytes.unwrap_or_else(out_of_memory))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: from `new`, and nobody uses it afterwards.
        unsafe { pages::give_back(self.0) }
    }
}

/// Buffers of one size.
#[derive(Debug)]
struct Class {
    size: usize,
    buffers: Pool<Buffer>,
}

static SCRATCH: [Class; 3] = [
    Class { size: 64 << 10, buffers: Pool::new() },
    Class { size: 320 << 10, buffers: Pool::new() },
    Class { size: 1280 << 10, buffers: Pool::new() },
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

/// A few values that nobody uses at the moment. Each pointer is a box's, or null.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    slots: [AtomicPtr<T>; SLOTS],
    /// How many are in use. In a child forked meanwhile it stays above zero, and there nothing is freed.
    lent: AtomicUsize,
    /// How many stay when all have been given back.
    kept: usize,
}

impl<T: Send> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self::keeping(KEPT)
    }

    /// For what takes long to make: nothing is freed.
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
        let made = self.borrow().or_else(|| make().map(Box::new));
        let Some(mut value) = made else {
            self.lent.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let result = work(&mut value);
        self.give_back(value);
        result
    }

    /// A value, if one is left. Whether it is this one or one that was made instead, it is to be given back.
    fn borrow(&self) -> Option<Box<T>> {
        self.lent.fetch_add(1, Ordering::Relaxed);
        self.take()
    }

    fn give_back(&self, value: Box<T>) {
        self.put(value);
        if self.lent.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shrink();
        }
    }

    /// Frees what goes beyond. The first slots are filled first.
    fn shrink(&self) {
        for slot in &self.slots[self.kept..] {
            if !slot.load(Ordering::Relaxed).is_null() {
                let value = slot.swap(ptr::null_mut(), Ordering::Acquire);
                // SAFETY: the pointer is null or a box's (`put`), and the exchange made it ours alone.
                drop((!value.is_null()).then(|| unsafe { Box::from_raw(value) }));
            }
        }
    }

    fn take(&self) -> Option<Box<T>> {
        let taken = self.slots.iter().find_map(|slot| {
            // An empty slot is seen without writing to a line that other threads want.
            let seen = !slot.load(Ordering::Relaxed).is_null();
            seen.then(|| slot.swap(ptr::null_mut(), Ordering::Acquire)).filter(|value| !value.is_null())
        })?;
        // SAFETY: the pointer is a box's (`put`), and the exchange made it ours alone.
        Some(unsafe { Box::from_raw(taken) })
    }

    fn put(&self, value: Box<T>) {
        let value = Box::into_raw(value);
        let kept = self.slots.iter().any(|slot| {
            slot.load(Ordering::Relaxed).is_null()
                && slot.compare_exchange(ptr::null_mut(), value, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !kept {
            // SAFETY: the pointer is a box's, and no slot took it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}
