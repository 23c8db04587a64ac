//! Well-behaved clients, who must not notice what a test does to their server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hasten_bench::drive::{self, Load, Outcome, Target};

/// The driver works in slices, so that it can be stopped between two of them.
const SLICE: Duration = Duration::from_millis(150);

/// Full handshakes in a closed loop, in the background.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    ops: Arc<AtomicU64>,
    driver: JoinHandle<Outcome>,
}

impl Traffic {
    #[must_use]
    pub fn start(target: &Target, load: &Load) -> Self {
        let (stop, ops) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (target, load) = (target.clone(), Load { duration: SLICE, ..load.clone() });
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&ops));
        let driver = thread::spawn(move || {
            let mut total = Outcome::default();
            while !stopped.load(Relaxed) {
                total.append(&drive::run(&target, &load).expect("the driver has descriptors and memory"));
                counted.store(total.ops, Relaxed);
            }
            total
        });
        Self { stop, ops, driver }
    }

    /// Operations that were correct in every respect, in completed slices.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.ops.load(Relaxed)
    }

    /// Ends after the current slice.
    #[must_use]
    pub fn stop(self) -> Outcome {
        self.stop.store(true, Relaxed);
        self.driver.join().expect("the driver does not panic")
    }
}
