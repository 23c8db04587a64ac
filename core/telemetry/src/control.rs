//! The control page: a word for each engine by which an operator takes it out
//! of service while the program runs.
//!
//! It lies beside the counter page, but everybody who may open it may write it.
//! So the program believes nothing of it but one bit for each engine: 0, or not.

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
    /// How many of the words are looked at.
    pub(crate) engine_count: AtomicU32,
    reserved: [AtomicU64; 6],
    /// By [`Engine::index`]; anything but 0: disabled by hand.
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

/// Makes the page, if shared memory is to be had: where it is not, nobody can disable anything.
pub(crate) fn map() -> Option<Mapped<ControlPage>> {
    let mapped = map_new::<ControlPage>()?;
    mapped.page.version.store(CONTROL_VERSION, Relaxed);
    mapped.page.engine_count.store(Engine::COUNT as u32, Relaxed);
    mapped.page.magic.store(MAGIC_CONTROL, Release);
    Some(mapped)
}

/// From now on this page is asked.
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
