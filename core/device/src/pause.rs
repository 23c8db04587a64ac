//! Waiting for a device without a busy loop: a few looks in a row, then growing sleeps.

use std::time::Duration;

use hasten_guard::clock::boot_ns;

const LOOKS: u32 = 32;
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_micros(500);

pub(crate) struct Pause {
    until_ns: u64,
    looks: u32,
    sleep: Duration,
}

impl Pause {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { until_ns: boot_ns().saturating_add(limit.as_nanos() as u64), looks: 0, sleep: SHORTEST }
    }

    /// Waits a little. `false` once the time is up.
    pub(crate) fn wait(&mut self) -> bool {
        if self.looks < LOOKS {
            self.looks += 1;
            std::hint::spin_loop();
            return true;
        }
        if boot_ns() >= self.until_ns {
            return false;
        }
        std::thread::sleep(self.sleep);
        self.sleep = (self.sleep * 2).min(LONGEST);
        true
    }
}
