//! RSA on a QAT device, if one is requested: a thread's side of it.
//!
//! The device is a place where operations may wait instead of in a queue. It works on copies, so an operation can be
//! taken back at any time, and its answer is checked before anything uses it. Operations that it does not do are
//! handled as if it did not exist.

mod cost;
mod flights;
mod settings;

use core::cell::{Cell, RefCell};
use std::env;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use hasten_crypto::Algorithm;
use hasten_device::discovery::{Discovery, Service};
use hasten_device::engines::crypto::{Operation as Asked, RsaKey};
use hasten_device::engines::qat::{Crypto, Plan};
use hasten_device::{DeviceKind, Fault, Limits, Refusal, Root, watch};
use hasten_guard::breaker::{Breaker, Settings as BreakerSettings};
use hasten_guard::clock::{boot_ns, thread_cpu_ns};
use hasten_telemetry::{EngineClass, EngineWork, Event, slot};

use self::cost::Costs;
use self::flights::{Flights, MOST};
use self::settings::Settings;
use crate::operation::{Operation, Work};
use crate::queue::Waiting;

/// Its row on the counter page.
const ENGINE: hasten_telemetry::Engine = hasten_telemetry::Engine::Qat;

/// Unless this is set there is no device, and nothing looks any further.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Reads the environment.
pub fn init() {
    if let Some(settings) = Settings::of(|name| env::var(name).ok()) {
        let _ = SETTINGS.set(settings);
        IS_REQUESTED.store(true, Relaxed);
    }
}

#[inline]
pub fn is_requested() -> bool {
    IS_REQUESTED.load(Relaxed)
}

/// State shared by the threads of a process.
struct Found {
    forced: bool,
    plan: Plan,
    breaker: Arc<Breaker>,
    costs: Costs,
    /// How many openings of the breaker have been reported.
    reported: AtomicU32,
}

static FOUND: OnceLock<Option<Found>> = OnceLock::new();

/// One thread looks for devices. No other thread waits for it: a process forked meanwhile would wait for ever.
static LOOKING: AtomicU8 = AtomicU8::new(0);

fn found() -> Option<&'static Found> {
    if FOUND.get().is_none() && LOOKING.swap(1, Relaxed) == 0 {
        let _ = FOUND.set(SETTINGS.get().and_then(find));
    }
    FOUND.get()?.as_ref()
}

fn find(settings: &Settings) -> Option<Found> {
    let discovery = Discovery::read(&Root::new(&settings.root));
    let is_usable = |device: &&hasten_device::Device| {
        let serves = device.qat.as_ref().and_then(|qat| qat.offers(Service::Asymmetric));
        device.kind == DeviceKind::Qat && device.is_up() && serves != Some(false)
    };
    let names: Vec<&str> =
        discovery.devices.iter().filter(is_usable).map(|device| device.address.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let timeout = u64::try_from(settings.timeout.as_nanos()).unwrap_or(u64::MAX);
    hasten_telemetry::page().register(ENGINE, EngineClass::Device, &names.join(" "), timeout);
    watch::when_opened(|| {
        if let Some(Some(found)) = FOUND.get() {
            report(found);
        }
    });
    let (first, longest) = settings.retry;
    let breaker = BreakerSettings { first, longest, ..BreakerSettings::DEFAULT };
    let limits = Limits { operation: settings.timeout, ..Limits::CRYPTO };
    Some(Found {
        forced: settings.forced,
        plan: Plan {
            folder: settings.libraries.clone(),
            root: Root::new(&settings.root),
            limits,
            monitor: Arc::default(),
        },
        breaker: Arc::new(Breaker::new(breaker, u64::from(std::process::id()))),
        costs: Costs::new(),
        reported: AtomicU32::new(0),
    })
}

/// A thread's session with the device.
pub struct Device<W> {
    crypto: RefCell<Option<Crypto>>,
    flights: Flights<W>,
    /// CPU time spent on the device since its last answer.
    spent_ns: Cell<u64>,
    /// The algorithm this server signs with.
    signs: Cell<Option<Algorithm>>,
}

/// Operations that are no longer at the device.
pub(crate) struct Ended<W> {
    /// Those whose answers are in place, but not yet checked.
    pub(crate) answered: List<W>,
    /// Those to be done in software.
    pub(crate) failed: List<W>,
    /// How many were at the device.
    pub(crate) depth: usize,
}

pub(crate) struct List<W> {
    operations: [Waiting<W>; MOST],
    len: usize,
}

impl<W> List<W> {
    pub(crate) const EMPTY: Self = Self { operations: [core::ptr::null_mut(); MOST], len: 0 };

    pub(crate) fn push(&mut self, operation: Waiting<W>) {
        self.operations[self.len] = operation;
        self.len += 1;
    }

    pub(crate) fn operations(&self) -> &[Waiting<W>] {
        &self.operations[..self.len]
    }
}

impl<W> Device<W> {
    pub(crate) fn new() -> Self {
        Self {
            crypto: RefCell::new(None),
            flights: Flights::new(),
            spent_ns: Cell::new(0),
            signs: Cell::new(None),
        }
    }

    /// Whether operations are at the device.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.flights.count() > 0
    }

    /// Whether there is a device that may be used, by the settings and by the operator.
    pub fn is_here(&self) -> bool {
        is_requested() && found().is_some_and(is_in_service)
    }

    /// Whether a lone signature is worth waiting for; `software_ns` is what it costs otherwise.
    pub fn takes_alone(&self, software_ns: impl Fn(Algorithm) -> u64) -> bool {
        let (true, Some(algorithm)) = (is_requested(), self.signs.get()) else { return false };
        let Some(found) = found().filter(|found| is_in_service(found)) else { return false };
        found.breaker.admits(boot_ns())
            && (found.forced || found.costs.is_cheaper(algorithm, 1, software_ns(algorithm)))
    }

    /// Records the algorithm this server signs with.
    pub fn will_sign(&self, algorithm: Algorithm) {
        self.signs.set(Some(algorithm));
    }

    /// Whether the device should take an operation when `queued` of its kind, including itself, wait here.
    pub(crate) fn wants(
        &self,
        operation: &Operation<W>,
        queued: usize,
        software_ns: impl Fn(usize) -> u64,
    ) -> bool {
        let Work::Rsa(_) = operation.work else { return false };
        let Some(found) = found().filter(|found| is_in_service(found)) else { return false };
        let depth = queued + self.flights.count();
        found.forced || found.costs.pays(operation.algorithm(), depth, software_ns(depth))
    }

    /// Hands an operation over. One that the device does not take stays where it is.
    ///
    /// # Safety
    ///
    /// The operation stays where it is until it has ended or is taken back with [`Self::forget`].
    pub(crate) unsafe fn submit(&self, operation: Waiting<W>) -> Result<(), Refusal> {
        let (Some(found), Ok(mut crypto)) = (found(), self.crypto.try_borrow_mut()) else {
            return Err(Refusal::NotNow);
        };
        // SAFETY: as the caller promises.
        let Work::Rsa(lane) = &(unsafe { &*operation }).work else { return Err(Refusal::Declined) };
        let ticket = self.flights.begin(operation).ok_or(Refusal::NotNow)?;
        let start = thread_cpu_ns();
        let crypto =
            crypto.get_or_insert_with(|| Crypto::new(found.plan.clone(), Arc::clone(&found.breaker)));
        let numbers = lane.key.numbers();
        let [p, q, dp, dq, qinv] = numbers.all();
        let asked = Asked::RsaPrivate { key: RsaKey { p, q, dp, dq, qinv }, input: lane.padded };
        let submitted = crypto.submit(&asked, ticket);
        self.spend(start);
        if let Some(known) = crypto.question_ns() {
            found.costs.question_took(known);
        }
        if let Err(refusal) = submitted {
            self.flights.forget(operation);
            let failed = u64::from(matches!(refusal, Refusal::Fault(_)));
            slot().engine_ran(ENGINE, &EngineWork { failed, ..EngineWork::default() });
        }
        report(found);
        submitted
    }

    /// Continues a start of the device, or an attempt to use it again, while no operations are there.
    pub(crate) fn go_on(&self) {
        if let Ok(mut crypto) = self.crypto.try_borrow_mut()
            && let Some(crypto) = crypto.as_mut()
        {
            crypto.poll(&mut |_, _| {});
        }
    }

    /// Takes an operation back; returns whether it was at the device.
    pub(crate) fn forget(&self, operation: Waiting<W>) -> bool {
        self.is_busy() && self.flights.forget(operation)
    }

    /// Polls once for operations that have ended.
    pub(crate) fn poll(&self) -> Ended<W> {
        let mut ended = Ended { answered: List::EMPTY, failed: List::EMPTY, depth: self.flights.count() };
        let (Some(found), Ok(mut crypto)) = (found(), self.crypto.try_borrow_mut()) else { return ended };
        let start = thread_cpu_ns();
        if let Some(crypto) = crypto.as_mut() {
            self.poll_into(crypto, &mut ended);
        }
        // In a child forked meanwhile, no answer will come.
        if crypto.as_ref().is_none_or(|crypto| crypto.in_flight() == 0) {
            while let Some(operation) = self.flights.pop() {
                ended.failed.push(operation);
            }
        }
        self.spend(start);
        report(found);
        ended
    }

    fn poll_into(&self, crypto: &mut Crypto, ended: &mut Ended<W>) {
        crypto.poll(&mut |ticket, result| {
            let Some(operation) = self.flights.end(ticket) else { return };
            // SAFETY: it was at the device, so it is still where it was; nothing else accesses it.
            let work = unsafe { &mut (*operation).work };
            match (result, work) {
                (Ok(result), Work::Rsa(lane)) if result.len() == lane.signature.len() => {
                    lane.signature.copy_from_slice(result);
                    ended.answered.push(operation);
                }
                _ => ended.failed.push(operation),
            }
        });
    }

    /// Handles a wrong answer: the device's other answers are not trusted either.
    pub(crate) fn blame(&self, ended: &mut Ended<W>) {
        if let Ok(mut crypto) = self.crypto.try_borrow_mut()
            && let Some(crypto) = crypto.as_mut()
        {
            crypto.blame(Fault::BadOutput);
            self.poll_into(crypto, ended);
        }
    }

    /// Counts the operations that ended well, and learns from them. `alone_ns` is the cost of one without the device.
    pub(crate) fn account(&self, algorithm: Algorithm, depth: usize, ok: usize, alone_ns: u64) {
        let Some(found) = found() else { return };
        let spent = self.spent_ns.take();
        let each = spent / ok.max(1) as u64;
        if ok > 0 {
            found.costs.took(algorithm, depth, each);
            slot().saved(algorithm, alone_ns.saturating_sub(each) * ok as u64);
        }
        slot().engine_ran(ENGINE, &EngineWork { ok: ok as u64, busy_ns: spent, ..EngineWork::default() });
    }

    pub(crate) fn count_failed(&self, failed: usize) {
        slot().engine_ran(ENGINE, &EngineWork { failed: failed as u64, ..EngineWork::default() });
        if let Some(found) = found() {
            report(found);
        }
    }

    /// Counts the CPU time since `start` as spent on the device.
    pub fn spend(&self, start: u64) {
        self.spent_ns.set(self.spent_ns.get() + thread_cpu_ns().saturating_sub(start));
    }
}

/// Whether it has not been taken out of service by the operator; also publishes that this thread has seen the setting.
fn is_in_service(found: &Found) -> bool {
    let disabled = hasten_telemetry::is_disabled(ENGINE);
    if disabled {
        report(found);
    }
    !disabled
}

/// Publishes on the counter page whether the device is in service.
fn report(found: &Found) {
    let view = found.breaker.view();
    let unreported = view.opened.saturating_sub(found.reported.fetch_max(view.opened, Relaxed));
    if unreported > 0 {
        slot().engine_ran(ENGINE, &EngineWork { opened: unreported.into(), ..EngineWork::default() });
        slot().event_n(Event::BreakerOpened, unreported.into());
    }
    let (state, probe) = view.shown(hasten_telemetry::is_disabled(ENGINE));
    slot().engine_state(ENGINE, state, view.fault, probe);
}
