//! Deflate by devices, where there are any: whole streams in one call, and no result is used before it has been
//! unpacked and compared.
//!
//! A device is asked before the software engines, which do whatever it does not. Unless it is named explicitly, it is
//! asked only where it costs this thread less CPU time than software does. That is measured at run time for each input
//! size: copying, waiting and the comparison are charged to the device.

mod active;
mod cost;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hasten_device::engines::deflate::{Deflate, DeflateDevice};
use hasten_device::engines::qatzip::QatZip;
use hasten_device::engines::qpl::Qpl;
use hasten_device::{DeviceKind, Limits, worker};
use hasten_guard::breaker::Settings as BreakerSettings;
use hasten_guard::clock::thread_cpu_ns as cpu_ns;
use hasten_names::Engine;

pub use self::active::Active;
use self::active::find;
use crate::engine::{Bits, Chunk, Settings, Strategy, Written};
use crate::pool::Pool;
use crate::stored;
use crate::stream::{Tally, Work};

/// In the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceEngine {
    /// QAT by QATzip.
    Qatzip,
    /// IAA by QPL.
    Qpl,
}

impl DeviceEngine {
    pub const ALL: [Self; 2] = [Self::Qatzip, Self::Qpl];

    /// The name under which it is counted and switched.
    pub const fn name(self) -> Engine {
        match self {
            Self::Qatzip => Engine::Qatzip,
            Self::Qpl => Engine::Qpl,
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.name().as_str()
    }

    const fn device(self) -> DeviceKind {
        match self {
            Self::Qatzip => QatZip::KIND,
            Self::Qpl => Qpl::KIND,
        }
    }

    /// How far back its matches reach. A decoder with a smaller window could not follow.
    const fn window(self) -> usize {
        match self {
            Self::Qatzip => 32 << 10,
            Self::Qpl => 4 << 10,
        }
    }
}

/// Which devices are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Off,
    /// Those that are found and worth using.
    Auto,
    /// These, whether or not they are worth using.
    Only(Vec<DeviceEngine>),
}

/// The process's device configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub request: Request,
    /// How long one operation may take.
    pub timeout: Duration,
    /// The initial and the longest delay between a fault and the next attempt to use the device.
    pub retry: (Duration, Duration),
    /// Where libraries are looked for; `None` for the system's own places.
    pub libraries: Option<PathBuf>,
    /// The root below which `sys` is looked for.
    pub root: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request: Request::Off,
            timeout: Limits::DEFLATE.operation,
            retry: (BreakerSettings::DEFAULT.first, BreakerSettings::DEFAULT.longest),
            libraries: None,
            root: PathBuf::from("/"),
        }
    }
}

/// Shorter inputs go to software without consulting a device.
const SHORTEST: usize = 1 << 10;

/// Longer inputs do not fit into one call. Streams rarely hold as much.
const LONGEST: usize = 512 << 10;

/// Whether an operator has switched the engine off.
type IsDisabled = fn(DeviceEngine) -> bool;

/// The configuration of devices, and the devices found.
#[derive(Debug)]
pub struct Devices {
    config: OnceLock<Config>,
    is_disabled: OnceLock<IsDisabled>,
    active: OnceLock<Vec<Active>>,
    /// One thread looks for devices and nobody waits for it: a process forked meanwhile would wait for ever.
    is_looking: AtomicBool,
    /// A session knows its breaker, so each `Devices` has its own sessions.
    qatzip: Pool<Deflate<QatZip>>,
    qpl: Pool<Deflate<Qpl>>,
}

impl Devices {
    /// No devices.
    pub(crate) const fn new() -> Self {
        Self {
            config: OnceLock::new(),
            is_disabled: OnceLock::new(),
            active: OnceLock::new(),
            is_looking: AtomicBool::new(false),
            qatzip: Pool::of_sessions(),
            qpl: Pool::of_sessions(),
        }
    }

    /// Without this, no device is asked. Only the first call takes effect.
    pub fn configure(&self, config: Config) {
        self.config.get_or_init(|| config);
    }

    /// Whether devices are named that must be asked however fast software is.
    pub fn is_asked_for(&self) -> bool {
        let is_named = |config: &Config| matches!(&config.request, Request::Only(named) if !named.is_empty());
        self.config.get().is_some_and(is_named)
    }

    /// Sets the check made before each operation. Only the first call takes effect.
    pub fn disable_if(&self, is_disabled: IsDisabled) {
        self.is_disabled.get_or_init(|| is_disabled);
    }

    /// The engines in use; none before the first input that suits a device.
    pub fn active(&self) -> &[Active] {
        self.active.get().map_or(&[], Vec::as_slice)
    }

    fn look(&self) -> &[Active] {
        if let Some(active) = self.active.get() {
            return active;
        }
        let Some(config) = self.config.get().filter(|config| config.request != Request::Off) else {
            return &[];
        };
        if !self.is_looking.swap(true, Ordering::Relaxed) {
            let _ = self.active.set(find(config));
        }
        self.active()
    }

    /// Has a device compress a whole stream. `None` if that is for software, for whatever reason.
    pub(crate) fn compress(
        &self,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
        tally: &mut Tally,
    ) -> Option<Written> {
        if !is_whole(settings, chunk) || worker::is_worker() {
            return None;
        }
        let mut asked = self.look().iter().filter(|active| self.is_asked(active, settings, chunk));
        asked.find_map(|active| self.attempt(active, settings, chunk, out, tally))
    }

    /// Asks one device. Its time counts whether or not it succeeds.
    fn attempt(
        &self,
        active: &Active,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
        tally: &mut Tally,
    ) -> Option<Written> {
        let work = &mut tally.devices[active.engine as usize];
        let started = cpu_ns();
        let bytes = self.run(active, settings, chunk, out, work);
        let spent = cpu_ns().saturating_sub(started);
        work.busy_ns += spent;
        work.opened += active.unreported();
        let (bytes, length) = (bytes?, chunk.input.len());
        active.costs.device(length, spent);
        tally.verified += length as u64;
        if bytes > stored::plain_len(chunk) {
            return None;
        }
        work.used(length, bytes);
        tally.saved_ns += active.costs.saved(settings.level, length, spent);
        Some(whole(bytes))
    }

    fn is_asked(&self, active: &Active, settings: &Settings, chunk: &Chunk) -> bool {
        let Active { engine, costs, forced, .. } = active;
        let reach = engine.window().min(chunk.input.len());
        let is_disabled = || self.is_disabled.get().is_some_and(|is_disabled| is_disabled(*engine));
        reach <= settings.window()
            && !is_disabled()
            && (*forced || costs.pays(settings.level, chunk.input.len()))
    }

    fn run(
        &self,
        active: &Active,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
        work: &mut Work,
    ) -> Option<usize> {
        match active.engine {
            DeviceEngine::Qatzip => active.run_on(&self.qatzip, settings, chunk, out, work),
            DeviceEngine::Qpl => active.run_on(&self.qpl, settings, chunk, out, work),
        }
    }

    /// The thread's CPU time, if devices are in use and software's time is therefore worth knowing.
    pub(crate) fn now(&self) -> Option<u64> {
        self.active.get().is_some_and(|active| !active.is_empty()).then(cpu_ns)
    }

    /// Records what software has taken since `started`, for an input that a device could have had.
    pub(crate) fn software_took(&self, settings: &Settings, chunk: &Chunk, started: Option<u64>) {
        let Some(started) = started.filter(|_| is_whole(settings, chunk)) else { return };
        let spent = cpu_ns().saturating_sub(started);
        for active in self.active() {
            active.costs.software(settings.level, chunk.input.len(), spent);
        }
    }
}

/// Whether the chunk is a stream from its first byte to its last.
fn is_whole(settings: &Settings, chunk: &Chunk) -> bool {
    let is_plain = settings.strategy == Strategy::Default && settings.tuning.is_none() && settings.level > 0;
    let is_alone = chunk.last && chunk.before.is_empty() && chunk.history.is_empty();
    is_plain && is_alone && (SHORTEST..=LONGEST).contains(&chunk.input.len())
}

/// A device's output is a whole stream.
const fn whole(bytes: usize) -> Written {
    Written { bytes, after: Bits::NONE, synced: false }
}
