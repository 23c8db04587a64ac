//! Deflate by devices, where there are any: whole streams in one call, and no result is used that was not unpacked again and
//! compared.
//!
//! A device is asked before the engines of software, and whatever it does not do, they do. Unless it is named it is asked only
//! where it takes this thread less CPU time than software does, which is measured for each size of input while the process
//! runs: copying, waiting and the comparison count as the device's.

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

    /// As it is counted and switched.
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
    /// Those that are found and pay.
    Auto,
    /// These, whether or not they pay.
    Only(Vec<DeviceEngine>),
}

/// What the process was told about devices.
#[derive(Clone, Debug)]
pub struct Config {
    pub request: Request,
    /// How long one operation may take.
    pub timeout: Duration,
    /// From a fault to the first attempt to use the device again, and the longest that this may become.
    pub retry: (Duration, Duration),
    /// Where libraries are looked for; `None` for the system's own places.
    pub libraries: Option<PathBuf>,
    /// Below which `sys` is looked for.
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

/// A shorter input is done in software before a device has been told of it.
const SHORTEST: usize = 1 << 10;

/// A longer input is not for one call. Streams rarely hold as much.
const LONGEST: usize = 512 << 10;

/// Says of an engine whether somebody has switched it off.
type IsDisabled = fn(DeviceEngine) -> bool;

/// What was said of devices, and those that were found.
#[derive(Debug)]
pub struct Devices {
    config: OnceLock<Config>,
    is_disabled: OnceLock<IsDisabled>,
    active: OnceLock<Vec<Active>>,
    /// One thread looks for devices. Nobody waits for it: a process that was forked meanwhile would wait for ever.
    is_looking: AtomicBool,
    /// Sessions know the breaker that they are behind, so each of these has its own.
    qatzip: Pool<Deflate<QatZip>>,
    qpl: Pool<Deflate<Qpl>>,
}

impl Devices {
    /// None.
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

    /// Without this, no device is asked. The first call counts.
    pub fn configure(&self, config: Config) {
        self.config.get_or_init(|| config);
    }

    /// Whether devices have been named that are asked whatever software could do.
    pub fn is_asked_for(&self) -> bool {
        let is_named = |config: &Config| matches!(&config.request, Request::Only(named) if !named.is_empty());
        self.config.get().is_some_and(is_named)
    }

    /// Has this asked before each operation. The first call counts.
    pub fn consult(&self, is_disabled: IsDisabled) {
        self.is_disabled.get_or_init(|| is_disabled);
    }

    /// The engines that are asked; none before the first input that is for one.
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

    /// Asks one. Its time counts whatever comes of it.
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

    /// The thread's CPU time, if devices are asked at all, so that the time of software is worth knowing.
    pub(crate) fn now(&self) -> Option<u64> {
        self.active.get().is_some_and(|active| !active.is_empty()).then(cpu_ns)
    }

    /// Remembers what software took, since then, for an input that a device might have got.
    pub(crate) fn software_took(&self, settings: &Settings, chunk: &Chunk, started: Option<u64>) {
        let Some(started) = started.filter(|_| is_whole(settings, chunk)) else { return };
        let spent = cpu_ns().saturating_sub(started);
        for active in self.active() {
            active.costs.software(settings.level, chunk.input.len(), spent);
        }
    }
}

/// A stream from its first to its last byte.
fn is_whole(settings: &Settings, chunk: &Chunk) -> bool {
    let is_plain = settings.strategy == Strategy::Default && settings.tuning.is_none() && settings.level > 0;
    let is_alone = chunk.last && chunk.before.is_empty() && chunk.history.is_empty();
    is_plain && is_alone && (SHORTEST..=LONGEST).contains(&chunk.input.len())
}

/// What a device writes: all of a stream.
const fn whole(bytes: usize) -> Written {
    Written { bytes, after: Bits::NONE, synced: false }
}
