//! Well-behaved clients, who must not notice what a test does to their server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hasten_bench::drive::{self, Load, Outcome, Target};

use crate::effort;

/// The driver works in slices, so that it can be stopped between two of them. In a slice every client of the crowd comes at
/// least once, and they come together, so that batches form.
const SLICE: Duration = Duration::from_millis(20);
/// A slice that a busy machine draws out is not followed by as long a silence.
const LONGEST_PAUSE: Duration = Duration::from_millis(150);

/// Full handshakes in the background, crowd after crowd.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    ops: Arc<AtomicU64>,
    driver: JoinHandle<Outcome>,
}

impl Traffic {
    #[must_use]
    pub fn start(target: &Target, load: &Load) -> Self {
        let (stop, ops) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (target, load) = (target.clone(), load.clone());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&ops));
        let driver = thread::spawn(move || {
            crowds(&target, &load, |total| {
                counted.store(total.ops, Relaxed);
                stopped.load(Relaxed)
            })
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

/// The same, for as long as the load says.
#[must_use]
pub fn drive(target: &Target, load: &Load) -> Outcome {
    let end = Instant::now() + load.duration;
    crowds(target, load, |_| Instant::now() >= end)
}

/// Crowd after crowd, until the outcome so far is enough. Between two of them the CPUs are left to other tests for twice as
/// long; a thorough run leaves them nothing.
fn crowds(target: &Target, load: &Load, is_enough: impl Fn(&Outcome) -> bool) -> Outcome {
    let load = Load { duration: SLICE, ..load.clone() };
    let mut total = Outcome::default();
    while !is_enough(&total) {
        let slice = drive::run(target, &load).expect("the driver has descriptors and memory");
        total.append(&slice);
        thread::sleep(effort((slice.elapsed * 2).min(LONGEST_PAUSE), Duration::ZERO));
    }
    total
}
