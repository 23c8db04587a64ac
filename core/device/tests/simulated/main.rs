//! Every engine against every fault that the simulated libraries can have: a fault is noticed within the limit, nothing
//! wrong gets past the caller's check, and the engine is back once the fault is over.

mod control;
#[cfg(feature = "unused-engines")]
mod copies;
mod crypto;
mod deflate;
#[cfg(feature = "unused-engines")]
mod hand_out;
mod memory;
mod selftest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hasten_device::Limits;
use hasten_guard::breaker::{Breaker, Settings};

use crate::control::Injected;

/// For expected good results: no test fails because the machine is busy.
const PATIENT: Limits = Limits { operation: Duration::from_secs(30), start: Duration::from_secs(30) };

/// For results that will not come.
const SHORT: Limits = Limits { operation: Duration::from_millis(150), start: Duration::from_millis(300) };

fn limits(injected: Injected) -> Limits {
    if matches!(injected, Injected::Hang | Injected::Slow | Injected::HangInit) { SHORT } else { PATIENT }
}

/// Retries quickly, to keep the tests short.
fn breaker() -> Arc<Breaker> {
    let settings = Settings {
        first: Duration::from_millis(5),
        longest: Duration::from_millis(40),
        good: 2,
        lease: Duration::from_secs(2),
    };
    Arc::new(Breaker::new(settings, 1))
}

/// Waits for `condition` for as long as a busy machine may need.
#[track_caller]
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited for a minute: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
