//! What may compress in a process: the allowed engines, the operator's switches, the breakers, and the devices in front
//! of them.
//!
//! All of it is one value, which streams are opened with. A preload library keeps one in a static, usable before
//! `main`; a test has its own, isolated from other tests. The tables and buffers that engines work with are not part of
//! it: they belong to the process, whichever value is used (`pool`).

mod job;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hasten_guard::clock::boot_ns;

pub(crate) use self::job::{Job, Serving};
use crate::breaker::{Breakers, Clock};
use crate::devices::Devices;
use crate::engine::{self, Chunk, EngineKind, Settings, Written};
use crate::pool::{self, Scratch};

/// Whether an operator has switched the engine off.
type IsDisabled = fn(EngineKind) -> bool;

/// What compresses, and the resources it needs, as a table of functions: the process's own ([`Backend::PROCESS`]), or a
/// test's, in which an engine is wrong, memory is short or time passes at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backend {
    /// As [`pool::compress`].
    pub(crate) compress: fn(EngineKind, &Settings, &Chunk, &mut [u8]) -> Option<Written>,
    /// As [`pool::scratch`].
    pub(crate) scratch: fn(usize) -> Option<Scratch>,
    pub(crate) clock: Clock,
}

impl Backend {
    pub(crate) const PROCESS: Self =
        Self { compress: pool::compress, scratch: pool::scratch, clock: boot_ns };
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Engines {
    /// One bit for each engine.
    allowed: AtomicU8,
    is_disabled: OnceLock<IsDisabled>,
    /// Whether the engines compress in small windows, too, for which the original is otherwise best.
    has_small_windows: AtomicBool,
    backend: Backend,
    pub breakers: Breakers,
    pub devices: Devices,
}

impl Engines {
    /// All engines in service, and no device.
    pub const fn new() -> Self {
        Self::with(Backend::PROCESS)
    }

    /// The same with the caller's backend.
    pub(crate) const fn with(backend: Backend) -> Self {
        Self {
            allowed: AtomicU8::new(u8::MAX),
            is_disabled: OnceLock::new(),
            has_small_windows: AtomicBool::new(false),
            backend,
            breakers: Breakers::new(backend.clock),
            devices: Devices::new(),
        }
    }

    /// Restricts the choice to these engines and the original, which is always allowed.
    pub fn allow(&self, kinds: &[EngineKind]) {
        let bits = kinds.iter().fold(bit(EngineKind::Original), |bits, kind| bits | bit(*kind));
        self.allowed.store(bits, Ordering::Relaxed);
    }

    /// For a program whose own zlib cannot be called: the engines do its work in small windows, too.
    pub fn serve_small_windows(&self) {
        self.has_small_windows.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_small_windows(&self) -> bool {
        self.has_small_windows.load(Ordering::Relaxed)
    }

    /// Sets the check made before each chunk for each candidate engine. Only the first call takes effect.
    pub fn disable_if(&self, is_disabled: IsDisabled) {
        self.is_disabled.get_or_init(|| is_disabled);
    }

    /// Whether the engine may be used at all.
    pub fn is_allowed(&self, kind: EngineKind) -> bool {
        self.allowed.load(Ordering::Relaxed) & bit(kind) != 0
    }

    /// Whether any engine but the original is in service.
    pub fn has_any(&self) -> bool {
        EngineKind::ALL.into_iter().any(|kind| kind != EngineKind::Original && self.is_usable(kind))
    }

    /// Makes what one thread needs to compress with the allowed engines; whether it is available ([`pool::reserve`]).
    pub fn reserve(&self) -> bool {
        pool::reserve(|kind| self.is_allowed(kind))
    }

    /// A buffer large enough for any engine's output for `length` bytes; `None` if memory runs out.
    pub(crate) fn output(&self, length: usize) -> Option<Scratch> {
        (self.backend.scratch)(engine::bound(length))
    }

    /// Whether the engine is in service.
    pub(crate) fn is_usable(&self, kind: EngineKind) -> bool {
        let is_disabled = || self.is_disabled.get().is_some_and(|is_disabled| is_disabled(kind));
        kind == EngineKind::Original || (self.is_allowed(kind) && !is_disabled())
    }
}

impl Default for Engines {
    fn default() -> Self {
        Self::new()
    }
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
