//! Envoy's buffers, through their own virtual functions.

use core::marker::PhantomData;
use core::mem::transmute;
use core::ptr::NonNull;
use core::slice;
use std::sync::OnceLock;

use hasten_envoy_builds::Class;
use hasten_envoy_builds::buffer::{ADD, DRAIN, FRONT_SLICE, LENGTH};

/// The class of all buffers, or their base.
static CLASS: OnceLock<&'static Class> = OnceLock::new();

/// Must come before the first buffer. `class` is verified.
pub(crate) fn prepare(class: &'static Class) {
    let _ = CLASS.set(class);
}

/// An object that begins with a pointer to its class's virtual functions.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    functions: *const usize,
}

impl Object {
    /// The address of its table.
    pub(crate) fn table(&self) -> usize {
        self.functions.addr()
    }

    /// A function of its class.
    ///
    /// # Safety
    ///
    /// The class has so many.
    pub(crate) unsafe fn function(&self, slot: usize) -> usize {
        // SAFETY: as the contract says.
        unsafe { self.functions.add(slot).read() }
    }
}

/// An `Envoy::Buffer::Instance`, borrowed during a call.
#[derive(Debug)]
pub(crate) struct Buffer<'a> {
    object: NonNull<Object>,
    lent: PhantomData<&'a mut Object>,
}

/// `Envoy::Buffer::RawSlice`.
#[repr(C)]
struct RawSlice {
    memory: *const u8,
    length: usize,
}

impl Buffer<'_> {
    /// # Safety
    ///
    /// `object` is a buffer that nobody else uses as long as this value lives.
    pub(crate) unsafe fn new(object: NonNull<Object>) -> Self {
        Self { object, lent: PhantomData }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> usize {
        // SAFETY: the prototype of this function, and the object that it is of.
        unsafe {
            let length: unsafe extern "C" fn(NonNull<Object>) -> u64 = transmute(self.function(LENGTH));
            length(self.object) as usize
        }
    }

    /// The bytes at the beginning that are contiguous in memory.
    pub(crate) fn front(&self) -> &[u8] {
        // SAFETY: as `length`; a `RawSlice` is returned in two registers. It is memory of the buffer, which stays as it
        // is while it is borrowed.
        unsafe {
            let front: unsafe extern "C" fn(NonNull<Object>) -> RawSlice =
                transmute(self.function(FRONT_SLICE));
            let RawSlice { memory, length } = front(self.object);
            if length == 0 { &[] } else { slice::from_raw_parts(memory, length) }
        }
    }

    /// Removes `length` bytes from the beginning; there are as many.
    pub(crate) fn drain(&mut self, length: usize) {
        // SAFETY: as `length`.
        unsafe {
            let drain: unsafe extern "C" fn(NonNull<Object>, u64) = transmute(self.function(DRAIN));
            drain(self.object, length as u64);
        }
    }

    /// Copies bytes to the end.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
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
