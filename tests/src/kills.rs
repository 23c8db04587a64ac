//! How often a server is killed in a test of what survives that.

use std::thread;
use std::time::Duration;

/// A few times in `make test`; as often as this says in `make crash`.
const KILLS: &str = "HASTEN_TEST_KILLS";

/// The number of kills, `usual` unless it was asked for another.
#[must_use]
pub fn times(usual: usize) -> usize {
    match std::env::var(KILLS) {
        Ok(kills) => kills.parse().unwrap_or_else(|_| panic!("{KILLS}={kills}: a number of kills is needed")),
        Err(_) => usual,
    }
}

/// Waits between nothing and `most`, differently each time.
pub fn at_some_moment(most: Duration) {
    let seed = std::collections::hash_map::RandomState::new();
    let random = std::hash::BuildHasher::hash_one(&seed, ()) % 1000;
    thread::sleep(most * u32::try_from(random).unwrap_or(0) / 1000);
}
