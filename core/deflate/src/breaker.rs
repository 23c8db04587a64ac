//! Which engines are asked. One that is caught with wrong output is left alone for a while, then tried again, and comes back
//! after a few results that were right: a flipped bit is no reason to do without it for months. While it is tried its
//! results are verified, whether or not the process verifies the others.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hasten_guard::Fault;
use hasten_guard::breaker::{Breaker, Permit, Settings, View};
use hasten_guard::clock::boot_ns;

use crate::engine::EngineKind;

/// More good results than a device needs: nothing tells that software has been reset.
const SETTINGS: Settings = Settings { good: 8, ..Settings::DEFAULT };

/// An engine's breaker, and how many of its openings were reported.
struct Guard {
    breaker: Breaker,
    reported: AtomicU32,
}

impl Guard {
    const fn new(seed: u64) -> Self {
        Self { breaker: Breaker::new(SETTINGS, seed), reported: AtomicU32::new(0) }
    }

    /// By [`EngineKind`]. The original's is never told of a fault: there is nobody behind it.
    const fn all() -> [Self; EngineKind::ALL.len()] {
        [Self::new(0x15a1), Self::new(0x11bd), Self::new(0x2112), Self::new(0x0419)]
    }
}

static HAS_OPENED: AtomicBool = AtomicBool::new(false);

fn now_ns() -> u64 {
    boot_ns() + skipped().as_nanos() as u64
}

/// Whether an engine may be asked now. A probe that comes to nothing, because the engine was not for this chunk after
/// all, is not reported and makes room for the next after a while.
pub fn admit(kind: EngineKind) -> Option<Permit> {
    // Closed breakers do not look at the time, and nearly always all are.
    let breaker = &guard(kind).breaker;
    breaker.admit(if breaker.is_closed() { 0 } else { now_ns() })
}

/// Whether any breaker of this process ever opened.
pub fn has_opened() -> bool {
    HAS_OPENED.load(Ordering::Relaxed)
}

/// Its result was right, or nobody looked.
pub fn succeeded(kind: EngineKind, permit: Permit) {
    if permit.is_probe() {
        guard(kind).breaker.succeeded(permit, now_ns());
    }
}

/// Its result was wrong. How many openings of its breaker nobody was told of yet.
pub fn failed(kind: EngineKind, permit: Permit) -> u64 {
    if kind == EngineKind::Original {
        return 0;
    }
    HAS_OPENED.store(true, Ordering::Relaxed);
    let Guard { breaker, reported } = guard(kind);
    breaker.failed(permit, Fault::BadOutput, now_ns());
    let opened = breaker.view().opened;
    opened.saturating_sub(reported.fetch_max(opened, Ordering::Relaxed)).into()
}

/// For those who look on.
pub fn view(kind: EngineKind) -> View {
    guard(kind).breaker.view()
}

pub fn is_closed(kind: EngineKind) -> bool {
    guard(kind).breaker.is_closed()
}

#[cfg(not(test))]
fn guard(kind: EngineKind) -> &'static Guard {
    static GUARDS: [Guard; EngineKind::ALL.len()] = Guard::all();
    &GUARDS[kind as usize]
}

#[cfg(not(test))]
const fn skipped() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
pub(crate) use self::tests::skip;
#[cfg(test)]
use self::tests::{guard, skipped};

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        // Tests share a process, and are no business of one another's.
        static GUARDS: &'static [Guard; EngineKind::ALL.len()] = Box::leak(Box::new(Guard::all()));
        static SKIPPED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(super) fn guard(kind: EngineKind) -> &'static Guard {
        GUARDS.with(|guards| &guards[kind as usize])
    }

    pub(super) fn skipped() -> Duration {
        SKIPPED.get()
    }

    /// Time that passes at once.
    pub(crate) fn skip(time: Duration) {
        SKIPPED.set(SKIPPED.get() + time);
    }

    #[test]
    fn an_engine_comes_back_after_good_results_and_waits_longer_after_bad_ones() {
        let kind = EngineKind::ZlibRs;
        let permit = admit(kind).expect("it is in service");
        assert!(!permit.is_probe() && is_closed(kind));
        assert_eq!(failed(kind, permit), 1);
        assert_eq!(view(kind).fault, Some(Fault::BadOutput));
        assert!(admit(kind).is_none(), "not at once");
        let first = view(kind).probe_ns - view(kind).since_ns;

        skip(SETTINGS.longest);
        let probe = admit(kind).expect("it is tried again");
        assert!(probe.is_probe() && admit(kind).is_none(), "one at a time");
        assert_eq!(failed(kind, probe), 0, "it had not closed");
        assert!(has_opened() && view(kind).probe_ns - now_ns() > first, "it waits longer");

        skip(SETTINGS.longest * 2);
        for _ in 0..SETTINGS.good {
            assert!(!is_closed(kind));
            let probe = admit(kind).expect("tried again, one after the other");
            succeeded(kind, probe);
        }
        assert!(is_closed(kind));
        assert_eq!(view(kind).opened, 1);
    }

    #[test]
    fn there_is_nobody_behind_the_original() {
        let permit = admit(EngineKind::Original).expect("always");
        assert_eq!(failed(EngineKind::Original, permit), 0);
        assert!(is_closed(EngineKind::Original));
    }
}
