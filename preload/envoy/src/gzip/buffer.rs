//! Envoy's buffers, through their own virtual functions.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, transmute};
use core::ptr::NonNull;
use core::slice;
use std::sync::OnceLock;

use hasten_envoy_builds::Class;
use hasten_envoy_builds::buffer::{ADD, COPY_OUT, DRAIN, FRONT_SLICE, LENGTH, RAW_SLICES};

use crate::object::Object;

/// The class of all buffers, or their base.
static CLASS: OnceLock<&'static Class> = OnceLock::new();

/// Must come before the first buffer. `class` is verified.
pub(super) fn prepare(class: &'static Class) {
    let _ = CLASS.set(class);
}

/// An `Envoy::Buffer::Instance`, borrowed during a call.
#[derive(Debug)]
pub(super) struct Buffer<'a> {
    object: NonNull<Object>,
    lent: PhantomData<&'a mut Object>,
}

/// `Envoy::Buffer::RawSlice`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct RawSlice {
    memory: *const u8,
    length: usize,
}

/// How many slices a `RawSliceVector` has room for without further memory.
const INLINE: usize = 16;

/// `Envoy::Buffer::RawSliceVector`, without further memory.
#[repr(C)]
struct RawSlices {
    /// Twice the number of slices, plus 1 if they are elsewhere.
    count: usize,
    slices: [MaybeUninit<RawSlice>; INLINE],
}

/// The contents of a buffer where they are, as far as they are in the first 16 pieces.
pub(super) struct Slices<'a> {
    raw: RawSlices,
    lent: PhantomData<&'a [u8]>,
}

impl Slices<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let count = (self.raw.count / 2).min(INLINE);
        // SAFETY: the first `count` were written by the buffer. Each is memory of it that stays as it is while the buffer
        // is borrowed; none is empty.
        self.raw.slices[..count].iter().map(|raw| unsafe {
            let RawSlice { memory, length } = raw.assume_init();
            slice::from_raw_parts(memory, length)
        })
    }
}

impl Buffer<'_> {
    /// # Safety
    ///
    /// `object` is a buffer that nobody else uses as long as this value lives.
    pub(super) unsafe fn new(object: NonNull<Object>) -> Self {
        Self { object, lent: PhantomData }
    }

    pub(super) fn object(&self) -> NonNull<Object> {
        self.object
    }

    /// The number of bytes.
    pub(super) fn length(&self) -> usize {
        // SAFETY: the prototype of this function, and the object that it is of.
        unsafe {
            let length: unsafe extern "C" fn(NonNull<Object>) -> u64 = transmute(self.function(LENGTH));
            length(self.object) as usize
        }
    }

    /// The bytes at the beginning that are contiguous in memory.
    fn front(&self) -> &[u8] {
        // SAFETY: as `length`; a `RawSlice` is returned in two registers. It is memory of the buffer, which stays as it
        // is while it is borrowed.
        unsafe {
            let front: unsafe extern "C" fn(NonNull<Object>) -> RawSlice =
                transmute(self.function(FRONT_SLICE));
            let RawSlice { memory, length } = front(self.object);
            if length == 0 { &[] } else { slice::from_raw_parts(memory, length) }
        }
    }

    pub(super) fn slices(&self) -> Slices<'_> {
        let mut raw = RawSlices { count: 0, slices: [MaybeUninit::uninit(); INLINE] };
        // SAFETY: as `length`; the result is written to the first argument. The optional number is passed in two registers.
        // No more slices than have room in it are asked for, so it owns nothing.
        unsafe {
            let slices: unsafe extern "C" fn(*mut RawSlices, NonNull<Object>, u64, bool) -> *mut RawSlices =
                transmute(self.function(RAW_SLICES));
            slices(&raw mut raw, self.object, INLINE as u64, true);
        }
        Slices { raw, lent: PhantomData }
    }

    /// A copy of everything from `start` on, which is not behind the end.
    pub(super) fn copy_from(&self, start: usize) -> Vec<u8> {
        let length = self.length() - start;
        let mut copy = vec![0; length];
        // SAFETY: as `length`; the buffer has as many bytes there.
        unsafe {
            let copy_out: unsafe extern "C" fn(NonNull<Object>, u64, u64, *mut u8) =
                transmute(self.function(COPY_OUT));
            copy_out(self.object, start as u64, length as u64, copy.as_mut_ptr());
        }
        copy
    }

    /// Removes `length` bytes from the beginning, and has them read where they are if they are contiguous there. There are as
    /// many.
    pub(super) fn take(&mut self, length: usize, read: impl FnOnce(&[u8])) {
        let front = self.front();
        if front.len() >= length {
            read(&front[..length]);
            return self.drain(length);
        }
        let mut joined = Vec::with_capacity(length);
        while joined.len() < length {
            let front = self.front();
            let count = front.len().min(length - joined.len());
            joined.extend_from_slice(&front[..count]);
            self.drain(count);
        }
        read(&joined);
    }

    /// Removes `length` bytes from the beginning; there are as many.
    fn drain(&mut self, length: usize) {
        // SAFETY: as `length`.
        unsafe {
            let drain: unsafe extern "C" fn(NonNull<Object>, u64) = transmute(self.function(DRAIN));
            drain(self.object, length as u64);
        }
    }

    /// Copies bytes to the end.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        // SAFETY: as `length`.
        unsafe {
            let add: unsafe extern "C" fn(NonNull<Object>, *const u8, u64) = transmute(self.function(ADD));
            add(self.object, bytes.as_ptr(), bytes.len() as u64);
        }
    }

    fn function(&self, index: usize) -> usize {
        let class = CLASS.get().expect("`prepare` comes before the first buffer");
        // SAFETY: a class of buffers has its base's functions in the same places of its table.
        unsafe { self.object.as_ref().function(class.functions[index].slot) }
    }
}
