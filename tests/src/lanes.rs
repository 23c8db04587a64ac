//! CPUs without lanes (AVX-512 IFMA): tests hold there as well. What is suspended there is answered by the original, so that
//! every way into and out of a wait is still taken; what only lanes do is skipped, and said to be.

use std::env;

use hasten_names::Feature;
use hasten_telemetry::{Algorithm, Counters, Event};

use crate::program::SUSPEND_ONLY;

/// Whether this CPU computes eight operations at once, and may: with `HASTEN_CPU_DISABLE_IFMA=1`, a test program behaves as on
/// one that cannot.
#[must_use]
pub fn exist() -> bool {
    let is_hidden = env::var_os("HASTEN_CPU_DISABLE_IFMA").is_some_and(|value| value == "1");
    !is_hidden && Feature::MULTIBUFFER.into_iter().all(Feature::is_usable)
}

/// What has handshakes wait where there are no lanes to wait for.
#[must_use]
pub fn variable() -> Option<(&'static str, &'static str)> {
    (!exist()).then_some(SUSPEND_ONLY)
}

/// Whether there are none, which is said of the test that is skipped for it.
#[must_use]
pub fn are_missing() -> bool {
    let are_missing = !exist();
    if are_missing {
        eprintln!("skipped: this CPU has no AVX-512 IFMA");
    }
    are_missing
}

/// How many operations of a kind went through lanes; where there are none, how many of any kind have waited.
#[must_use]
pub fn batched(counters: &Counters, algorithm: Algorithm) -> u64 {
    if exist() { counters[algorithm].batched } else { counters[Event::Resumed] }
}

/// The same with those that an engine has done one at a time.
#[must_use]
pub fn accelerated(counters: &Counters, algorithm: Algorithm) -> u64 {
    batched(counters, algorithm) + counters[algorithm].single
}
