//! Deflate by devices, where there are any: whole streams in one call, and no result is used that was not unpacked again and
//! compared.
//!
//! A device is asked before the engines of software, and whatever it does not do, they do. Unless it is named it is asked only
//! where it takes this thread less CPU time than software does, which is measured for each size of input while the process
//! runs: copying, waiting and the comparison count as the device's.

mod cost;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hasten_device::discovery::Discovery;
use hasten_device::engines::deflate::{Deflate, DeflateDevice, Plan};
use hasten_device::engines::qatzip::QatZip;
use hasten_device::engines::qpl::Qpl;
use hasten_device::{DeviceKind, Fault, Limits, Refusal, Root, worker};
use hasten_guard::breaker::{Breaker, Settings as BreakerSettings, View};
use hasten_names::Engine;

use self::cost::Costs;
use crate::engine::{Bits, Chunk, Settings, Strategy, Written};
use crate::pool::Pool;
use crate::stream::{Tally, Work};
use crate::{stored, verify};
pub(crate) use hasten_guard::clock::thread_cpu_ns as cpu_ns;

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

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Without this, no device is asked. It holds for the life of the process.
pub fn configure(config: Config) {
    CONFIG.get_or_init(|| config);
}

/// Whether devices have been named that are asked whatever software could do.
pub fn is_asked_for() -> bool {
    CONFIG.get().is_some_and(|config| matches!(&config.request, Request::Only(named) if !named.is_empty()))
}

/// Says of an engine whether somebody has switched it off.
type IsDisabled = fn(DeviceEngine) -> bool;

static IS_DISABLED: OnceLock<IsDisabled> = OnceLock::new();

/// Has this asked before each operation.
pub fn consult(is_disabled: IsDisabled) {
    IS_DISABLED.get_or_init(|| is_disabled);
}

/// A device's engine that this process asks.
#[derive(Debug)]
pub struct Active {
    pub engine: DeviceEngine,
    /// The devices behind it, by name.
    pub devices: String,
    pub timeout: Duration,
    breaker: Arc<Breaker>,
    /// How many openings of the breaker were reported.
    reported: AtomicU32,
    costs: Costs,
    /// Whether it is asked without regard to its cost.
    forced: bool,
}

impl Active {
    /// For those who look on; times are of `CLOCK_BOOTTIME`.
    pub fn view(&self) -> View {
        self.breaker.view()
    }

    fn plan(&self, config: &Config) -> (Plan, Arc<Breaker>, Limits) {
        let plan =
            Plan { folder: config.libraries.clone(), root: Root::new(&config.root), inflate: verify::unpack };
        let limits = Limits { operation: config.timeout, ..Limits::DEFLATE };
        (plan, Arc::clone(&self.breaker), limits)
    }

    /// Openings of the breaker that nobody was told of yet.
    pub fn unreported(&self) -> u64 {
        let opened = self.breaker.view().opened;
        opened.saturating_sub(self.reported.fetch_max(opened, Ordering::Relaxed)).into()
    }
}

/// The engines that are asked; none before the first input that is for one.
pub fn active() -> &'static [Active] {
    ACTIVE.get().map_or(&[], Vec::as_slice)
}

static ACTIVE: OnceLock<Vec<Active>> = OnceLock::new();

/// One thread looks for devices. Nobody waits for it: a process that was forked meanwhile would wait for ever.
static LOOKING: AtomicU8 = AtomicU8::new(0);

fn look() -> &'static [Active] {
    if let Some(active) = ACTIVE.get() {
        return active;
    }
    let Some(config) = CONFIG.get().filter(|config| config.request != Request::Off) else { return &[] };
    if LOOKING.swap(1, Ordering::Relaxed) == 0 {
        let _ = ACTIVE.set(find(config));
    }
    active()
}

fn find(config: &Config) -> Vec<Active> {
    let found = Discovery::read(&Root::new(&config.root));
    let active = |engine: DeviceEngine| {
        let forced = match &config.request {
            Request::Off => return None,
            Request::Auto => false,
            Request::Only(named) if named.contains(&engine) => true,
            Request::Only(_) => return None,
        };
        let usable = found.devices.iter().filter(|device| device.kind == engine.device() && device.is_up());
        let devices: Vec<&str> = usable.map(|device| device.address.as_str()).collect();
        if devices.is_empty() {
            return None;
        }
        let seed = u64::from(std::process::id()) << 8 | engine as u64;
        let (first, longest) = config.retry;
        let settings = BreakerSettings { first, longest, ..BreakerSettings::DEFAULT };
        Some(Active {
            engine,
            devices: devices.join(" "),
            timeout: config.timeout,
            breaker: Arc::new(Breaker::new(settings, seed)),
            reported: AtomicU32::new(0),
            costs: Costs::new(),
            forced,
        })
    };
    DeviceEngine::ALL.into_iter().filter_map(active).collect()
}

/// Has a device compress a whole stream. `None` if that is for software, for whatever reason.
pub(crate) fn compress(
    settings: &Settings,
    chunk: &Chunk,
    out: &mut [u8],
    tally: &mut Tally,
) -> Option<Written> {
    if !is_whole(settings, chunk) || worker::is_worker() {
        return None;
    }
    let config = CONFIG.get()?;
    look().iter().find_map(|active| {
        let work = &mut tally.devices[active.engine as usize];
        let verified = &mut tally.verified;
        if !is_asked(active, settings, chunk) {
            return None;
        }
        let started = cpu_ns();
        let written = run(active, config, settings, chunk, out, work);
        let spent = cpu_ns().saturating_sub(started);
        work.busy_ns += spent;
        work.opened += active.unreported();
        let bytes = written?;
        active.costs.device(chunk.input.len(), spent);
        *verified += chunk.input.len() as u64;
        if bytes > stored::plain_len(chunk) {
            return None;
        }
        work.chunks += 1;
        work.bytes_in += chunk.input.len() as u64;
        work.bytes_out += bytes as u64;
        tally.saved_ns += active.costs.saved(settings.level, chunk.input.len(), spent);
        Some(Written { bytes, after: Bits::NONE, synced: false })
    })
}

/// Remembers what software took for an input that a device might have got.
pub(crate) fn software_took(settings: &Settings, chunk: &Chunk, cpu_ns: u64) {
    if is_whole(settings, chunk) {
        for active in active() {
            active.costs.software(settings.level, chunk.input.len(), cpu_ns);
        }
    }
}

/// Whether devices are asked at all, so that the time of software is worth knowing.
pub(crate) fn is_of_interest() -> bool {
    ACTIVE.get().is_some_and(|active| !active.is_empty())
}

/// A stream from its first to its last byte.
fn is_whole(settings: &Settings, chunk: &Chunk) -> bool {
    let is_plain = settings.strategy == Strategy::Default && settings.tuning.is_none() && settings.level > 0;
    let is_alone = chunk.last && chunk.before.is_empty() && chunk.history.is_empty();
    is_plain && is_alone && (SHORTEST..=LONGEST).contains(&chunk.input.len())
}

fn is_asked(active: &Active, settings: &Settings, chunk: &Chunk) -> bool {
    let Active { engine, costs, forced, .. } = active;
    let reach = engine.window().min(chunk.input.len());
    let is_disabled = || IS_DISABLED.get().is_some_and(|is_disabled| is_disabled(*engine));
    reach <= settings.window() && !is_disabled() && (*forced || costs.pays(settings.level, chunk.input.len()))
}

static QATZIP: Pool<Deflate<QatZip>> = Pool::of_sessions();
static QPL: Pool<Deflate<Qpl>> = Pool::of_sessions();

fn run(
    active: &Active,
    config: &Config,
    settings: &Settings,
    chunk: &Chunk,
    out: &mut [u8],
    work: &mut Work,
) -> Option<usize> {
    match active.engine {
        DeviceEngine::Qatzip => run_on(&QATZIP, active, config, settings, chunk, out, work),
        DeviceEngine::Qpl => run_on(&QPL, active, config, settings, chunk, out, work),
    }
}

fn run_on<D: DeflateDevice>(
    pool: &Pool<Deflate<D>>,
    active: &Active,
    config: &Config,
    settings: &Settings,
    chunk: &Chunk,
    out: &mut [u8],
    work: &mut Work,
) -> Option<usize> {
    let make = || {
        let (plan, breaker, limits) = active.plan(config);
        Some(Deflate::new(plan, breaker, limits, LONGEST))
    };
    pool.with(make, |device| match device.compress(settings.level, chunk.input, out) {
        Ok(bytes) => {
            let written = Written { bytes, after: Bits::NONE, synced: false };
            if verify::check(settings, chunk, out, &written)? {
                return Some(bytes);
            }
            device.blame(Fault::BadOutput);
            work.wrong += 1;
            None
        }
        Err(Refusal::Fault(_)) => {
            work.wrong += 1;
            None
        }
        Err(Refusal::NotNow | Refusal::Declined) => None,
    })
}
