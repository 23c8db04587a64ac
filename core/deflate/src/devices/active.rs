//! An engine backed by devices that were found, and its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hasten_device::discovery::Discovery;
use hasten_device::engines::deflate::{Deflate, DeflateDevice, Plan};
use hasten_device::{Fault, Limits, Refusal, Root};
use hasten_guard::breaker::{Breaker, Settings as BreakerSettings, View};

use super::cost::Costs;
use super::{Config, DeviceEngine, LONGEST, Request, whole};
use crate::engine::{Chunk, Settings};
use crate::pool::Pool;
use crate::stream::Work;
use crate::verify;

/// A device engine that this process uses.
#[derive(Debug)]
pub struct Active {
    pub engine: DeviceEngine,
    /// The devices behind it, by name.
    pub devices: String,
    pub timeout: Duration,
    /// What its sessions are made from.
    plan: Plan,
    breaker: Arc<Breaker>,
    /// How many openings of the breaker have been reported.
    reported: AtomicU32,
    pub(super) costs: Costs,
    /// Whether it is used regardless of its cost.
    pub(super) forced: bool,
}

/// The engines that are both requested and present.
pub(super) fn find(config: &Config) -> Vec<Active> {
    let root = Root::new(&config.root);
    let found = Discovery::read(&root);
    let plan = Plan { folder: config.libraries.clone(), root, inflate: verify::unpack };
    DeviceEngine::ALL.into_iter().filter_map(|engine| Active::new(engine, config, &found, &plan)).collect()
}

impl Active {
    /// `None` if it was not requested, or has no device that is up.
    fn new(engine: DeviceEngine, config: &Config, found: &Discovery, plan: &Plan) -> Option<Self> {
        let forced = match &config.request {
            Request::Auto => false,
            Request::Only(named) if named.contains(&engine) => true,
            Request::Off | Request::Only(_) => return None,
        };
        let usable = found.devices.iter().filter(|device| device.kind == engine.device() && device.is_up());
        let devices: Vec<&str> = usable.map(|device| device.address.as_str()).collect();
        if devices.is_empty() {
            return None;
        }
        Some(Self {
            engine,
            devices: devices.join(" "),
            timeout: config.timeout,
            plan: plan.clone(),
            breaker: Arc::new(breaker(engine, config)),
            reported: AtomicU32::new(0),
            costs: Costs::new(),
            forced,
        })
    }

    /// A snapshot for monitoring; times are in `CLOCK_BOOTTIME`.
    pub fn view(&self) -> View {
        self.breaker.view()
    }

    /// Breaker openings not yet reported.
    pub fn unreported(&self) -> u64 {
        let opened = self.breaker.view().opened;
        opened.saturating_sub(self.reported.fetch_max(opened, Ordering::Relaxed)).into()
    }

    /// The length of the stream that one of the sessions made of the chunk, if the stream is right.
    pub(super) fn run_on<D: DeflateDevice>(
        &self,
        sessions: &Pool<Deflate<D>>,
        settings: &Settings,
        chunk: &Chunk,
        out: &mut [u8],
        work: &mut Work,
    ) -> Option<usize> {
        sessions.with(
            || Some(self.session()),
            |device| match device.compress(settings.level, chunk.input, out) {
                Ok(bytes) if verify::check(settings, chunk, out, &whole(bytes))? => Some(bytes),
                Ok(_) => {
                    device.blame(Fault::BadOutput);
                    work.wrong += 1;
                    None
                }
                Err(Refusal::Fault(_)) => {
                    work.wrong += 1;
                    None
                }
                Err(Refusal::NotNow | Refusal::Declined) => None,
            },
        )
    }

    fn session<D: DeflateDevice>(&self) -> Deflate<D> {
        let limits = Limits { operation: self.timeout, ..Limits::DEFLATE };
        Deflate::new(self.plan.clone(), Arc::clone(&self.breaker), limits, LONGEST)
    }
}

fn breaker(engine: DeviceEngine, config: &Config) -> Breaker {
    let seed = u64::from(std::process::id()) << 8 | engine as u64;
    let (first, longest) = config.retry;
    Breaker::new(BreakerSettings { first, longest, ..BreakerSettings::DEFAULT }, seed)
}
