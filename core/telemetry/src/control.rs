//! The control page: a word for each engine, with which an operator takes it out of service while
//! the program runs.
//!
//! It accompanies the counter page, but everyone who may open it may write it. So the program
//! trusts only one bit of it per engine: zero or not.

use crate::layout::ENGINE_CAPACITY;
use crate::memory::{Mapped, map_new};
use crate::{Engine, MAGIC_CONTROL};
use std::mem::{offset_of, size_of};
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Name of the memfd; `/proc/PID/maps` shows `/memfd:hasten-control (deleted)`.
pub const CONTROL_NAME: &std::ffi::CStr = c"hasten-control";
pub const CONTROL_VERSION: u32 = 1;
pub const CONTROL_SIZE: usize = 4096;

#[repr(C, align(4096))]
pub(crate) struct ControlPage {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    /// How many of the words are read.
    pub(crate) engine_count: AtomicU32,
    reserved: [AtomicU64; 6],
    /// By [`Engine::index`]; non-zero if disabled by the operator.
    pub(crate) disabled: [AtomicU64; ENGINE_CAPACITY],
    rest: [AtomicU64; 488],
}

/// Whether an operator has taken the engine out of service: one load, for every operation.
#[inline]
pub fn is_disabled(engine: Engine) -> bool {
    // SAFETY: null, or as `publish` stored it: a page of atomics that lives as long as the process.
    let page = unsafe { CONTROL.load(Acquire).as_ref() };
    page.is_some_and(|page| page.disabled[engine.index()].load(Relaxed) != 0)
}

/// Creates the page, if shared memory is available; otherwise engines cannot be disabled.
pub(crate) fn map() -> Option<Mapped<ControlPage>> {
    let mapped = map_new::<ControlPage>()?;
    mapped.page.version.store(CONTROL_VERSION, Relaxed);
    mapped.page.engine_count.store(Engine::COUNT as u32, Relaxed);
    mapped.page.magic.store(MAGIC_CONTROL, Release);
    Some(mapped)
}

/// Makes this page the one that is read from now on.
pub(crate) fn publish(page: &'static ControlPage) {
    CONTROL.store(std::ptr::from_ref(page).cast_mut(), Release);
}

/// Null, or a page that is never unmapped.
static CONTROL: AtomicPtr<ControlPage> = AtomicPtr::new(std::ptr::null_mut());

const _: () = {
    assert!(size_of::<ControlPage>() == CONTROL_SIZE);
    assert!(offset_of!(ControlPage, version) == 8);
    assert!(offset_of!(ControlPage, engine_count) == 12);
    assert!(offset_of!(ControlPage, disabled) == 64);
};
