//! Waiting for something to become true: long enough for a busy machine, no longer than needed.

use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// Waits until `condition` yields something; a test that waits in vain says what for.
pub fn for_some<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(POLL);
    }
}

pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for_some(what, || condition().then_some(()));
}
