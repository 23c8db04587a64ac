//! Whether lanes are in service: one answer for all threads of a process.
//!
//! A signature that fails its verification, or a lane without a result, counts against the engine, since keys are
//! checked when they are read. Everything is then left to the original functions, and after a while groups of
//! signatures are tried again. A shared secret proves nothing either way: the peer chooses the input, and the output is
//! not checked.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hasten_crypto::Algorithm;
use hasten_guard::Fault;
use hasten_guard::breaker::{Breaker, Permit, Settings};
use hasten_guard::clock::boot_ns;
use hasten_telemetry::{EngineWork, Event, Reason, slot};

/// The row of the lanes on the counter page.
pub const ENGINE: hasten_telemetry::Engine = hasten_telemetry::Engine::Multibuffer;

/// More good results than for a device, because nothing reports that software has been reset.
const SETTINGS: Settings = Settings { good: 8, ..Settings::DEFAULT };

/// The breaker of the lanes, and an operator's switch in front of it.
#[derive(Debug)]
pub struct Lanes {
    breaker: Breaker,
    /// How many openings have been reported.
    reported: AtomicU32,
}

impl Lanes {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { breaker: Breaker::new(settings, std::process::id().into()), reported: AtomicU32::new(0) }
    }

    /// Why lanes are out of service at the moment, if they are. Also publishes on the counter page that this thread
    /// knows.
    #[inline]
    pub fn refusal(&self) -> Option<Reason> {
        let is_disabled = hasten_telemetry::is_disabled(ENGINE);
        let view = self.breaker.view();
        let (state, probe) = view.shown(is_disabled);
        slot().engine_state(ENGINE, state, view.fault, probe);
        if is_disabled {
            return Some(Reason::EngineDisabled);
        }
        (!self.breaker.is_closed() && !self.breaker.admits(boot_ns())).then_some(Reason::BreakerOpen)
    }

    /// The same for operations that prove nothing, and so are not tried unless the breaker is closed.
    pub(crate) fn refusal_without_proof(&self) -> Option<Reason> {
        self.refusal().or_else(|| (!self.breaker.is_closed()).then_some(Reason::BreakerOpen))
    }

    /// Asks for a group of operations to be let through.
    pub(crate) fn admit(&self, algorithm: Algorithm) -> Result<Option<Permit>, Reason> {
        if !is_signature(algorithm) {
            return self.refusal_without_proof().map_or(Ok(None), Err);
        }
        if let Some(reason) = self.refusal() {
            return Err(reason);
        }
        let now = if self.breaker.is_closed() { 0 } else { boot_ns() };
        self.breaker.admit(now).map(Some).ok_or(Reason::BreakerOpen)
    }

    /// Reports the outcome of an admitted group.
    pub(crate) fn report(&self, permit: Option<Permit>, is_good: bool) {
        let Some(permit) = permit else { return };
        if is_good {
            if permit.is_probe() {
                self.breaker.succeeded(permit, boot_ns());
            }
            return;
        }
        self.breaker.failed(permit, Fault::BadOutput, boot_ns());
        let opened = self.breaker.view().opened;
        let unreported = u64::from(opened.saturating_sub(self.reported.fetch_max(opened, Relaxed)));
        slot().engine_ran(ENGINE, &EngineWork { opened: unreported, ..EngineWork::default() });
        slot().event_n(Event::BreakerOpened, unreported);
        // Published at once: there may be no next group.
        let _ = self.refusal();
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new(SETTINGS)
    }
}

const fn is_signature(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::Rsa2048Sign
            | Algorithm::Rsa3072Sign
            | Algorithm::Rsa4096Sign
            | Algorithm::P256Sign
            | Algorithm::P384Sign
    )
}
