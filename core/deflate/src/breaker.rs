//! Which engines are in service. An engine caught with wrong output is taken out for a while, then tried again, and
//! returns after a few correct results: one flipped bit is no reason to do without it for months. While it is on trial
//! its results are verified, even if the process verifies no others.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hasten_guard::Fault;
use hasten_guard::breaker::{Breaker, Permit, Settings, View};

use crate::engine::EngineKind;

/// Requires more good results than a device does: nothing signals that software has been reset.
const SETTINGS: Settings = Settings { good: 8, ..Settings::DEFAULT };

/// A monotonic clock, in nanoseconds.
pub(crate) type Clock = fn() -> u64;

/// An engine's breaker, and how many of its openings have been reported.
#[derive(Debug)]
struct Guard {
    breaker: Breaker,
    reported: AtomicU32,
}

impl Guard {
    const fn new(seed: u64) -> Self {
        Self { breaker: Breaker::new(SETTINGS, seed), reported: AtomicU32::new(0) }
    }
}

/// One for each engine.
#[derive(Debug)]
pub struct Breakers {
    /// By [`EngineKind`]. The original's never records a fault: there is nothing to fall back to.
    guards: [Guard; EngineKind::ALL.len()],
    has_opened: AtomicBool,
    clock: Clock,
}

impl Breakers {
    /// All closed.
    pub(crate) const fn new(clock: Clock) -> Self {
        Self {
            guards: [
                Guard::new(0x15a1),
                Guard::new(0x11bd),
                Guard::new(0xb0c4),
                Guard::new(0x2112),
                Guard::new(0x0419),
            ],
            has_opened: AtomicBool::new(false),
            clock,
        }
    }

    /// Whether an engine may be asked now. A probe that comes to nothing, because the engine turned out not to suit
    /// this chunk, is not reported and makes room for the next after a while.
    pub fn admit(&self, kind: EngineKind) -> Option<Permit> {
        // A closed breaker does not read the clock, and nearly all are closed.
        let breaker = self.of(kind);
        breaker.admit(if breaker.is_closed() { 0 } else { (self.clock)() })
    }

    /// Whether any of them ever opened.
    pub fn has_opened(&self) -> bool {
        self.has_opened.load(Ordering::Relaxed)
    }

    /// The engine's result was right, or was not checked.
    pub fn succeeded(&self, kind: EngineKind, permit: Permit) {
        if permit.is_probe() {
            self.of(kind).succeeded(permit, (self.clock)());
        }
    }

    /// The engine's result was wrong. Returns the number of breaker openings not yet reported.
    pub fn failed(&self, kind: EngineKind, permit: Permit) -> u64 {
        if kind == EngineKind::Original {
            return 0;
        }
        self.has_opened.store(true, Ordering::Relaxed);
        self.of(kind).failed(permit, Fault::BadOutput, (self.clock)());
        let opened = self.view(kind).opened;
        let reported = &self.guards[kind as usize].reported;
        opened.saturating_sub(reported.fetch_max(opened, Ordering::Relaxed)).into()
    }

    /// A snapshot for monitoring.
    pub fn view(&self, kind: EngineKind) -> View {
        self.of(kind).view()
    }

    pub fn is_closed(&self, kind: EngineKind) -> bool {
        self.of(kind).is_closed()
    }

    fn of(&self, kind: EngineKind) -> &Breaker {
        &self.guards[kind as usize].breaker
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn an_engine_comes_back_after_good_results_and_waits_longer_after_bad_ones() {
        static NOW: AtomicU64 = AtomicU64::new(1_000_000_000);
        let now = || NOW.load(Ordering::Relaxed);
        let breakers = Breakers::new(|| NOW.load(Ordering::Relaxed));
        let wait = |times: u64| NOW.fetch_add(SETTINGS.longest.as_nanos() as u64 * times, Ordering::Relaxed);
        let kind = EngineKind::ZlibRs;

        let permit = breakers.admit(kind).expect("it is in service");
        assert!(!permit.is_probe() && breakers.is_closed(kind) && !breakers.has_opened());
        assert_eq!(breakers.failed(kind, permit), 1);
        assert_eq!(breakers.view(kind).fault, Some(Fault::BadOutput));
        assert!(breakers.admit(kind).is_none(), "not at once");
        let first = breakers.view(kind).probe_ns - breakers.view(kind).since_ns;

        wait(1);
        let probe = breakers.admit(kind).expect("it is tried again");
        assert!(probe.is_probe() && breakers.admit(kind).is_none(), "one at a time");
        assert_eq!(breakers.failed(kind, probe), 0, "it had not closed");
        assert!(breakers.has_opened() && breakers.view(kind).probe_ns - now() > first, "it waits longer");

        wait(2);
        for _ in 0..SETTINGS.good {
            assert!(!breakers.is_closed(kind));
            let probe = breakers.admit(kind).expect("tried again, one after the other");
            breakers.succeeded(kind, probe);
        }
        assert!(breakers.is_closed(kind));
        assert_eq!(breakers.view(kind).opened, 1);
    }

    #[test]
    fn there_is_nobody_behind_the_original() {
        let breakers = Breakers::new(|| 0);
        let permit = breakers.admit(EngineKind::Original).expect("always");
        assert_eq!(breakers.failed(EngineKind::Original, permit), 0);
        assert!(breakers.is_closed(EngineKind::Original));
    }
}
