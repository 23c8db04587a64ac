//! One thread per process that watches the devices of all its sessions: those have no thread of their own, and an event
//! loop must not read drivers' files, which may hang.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Fault;
use crate::discovery::DeviceKind;
use crate::root::Root;
use crate::watch::{LOOK, Watch, tell};
use crate::worker::{Serve, Worker};
use hasten_guard::breaker::Breaker;
use hasten_guard::clock::boot_ns;

/// What the sessions that share a breaker know about their devices.
#[derive(Default)]
pub struct Monitor {
    seen: Arc<Seen>,
    /// The process that has the thread; 0 for none.
    process: AtomicU32,
    thread: Mutex<Option<Worker<Watchman>>>,
}

/// What the thread writes.
#[derive(Default)]
struct Seen {
    losses: AtomicU32,
    /// The fault's number.
    fault: AtomicU32,
}

impl Monitor {
    /// How many looks have found the devices dead. A look after a session was made means that the session is dead, too.
    pub(super) fn losses(&self) -> u32 {
        self.seen.losses.load(Ordering::Acquire)
    }

    /// What the last of them found.
    pub(super) fn fault(&self) -> Fault {
        Fault::from_number(self.seen.fault.load(Ordering::Relaxed) as usize).unwrap_or(Fault::Gone)
    }

    /// Starts the thread if this process has none. A caller that arrives at the same moment relies on the first one; a
    /// child forked at that moment does without.
    pub(super) fn begin(&self, root: &Root, breaker: &Arc<Breaker>) {
        let process = std::process::id();
        if self.process.load(Ordering::Relaxed) == process {
            return;
        }
        let Ok(mut thread) = self.thread.try_lock() else { return };
        let (root, breaker, seen) = (root.clone(), Arc::clone(breaker), Arc::clone(&self.seen));
        // A parent's worker is left alone.
        *thread = Worker::start("qat-watch", move || {
            let watch = Watch::new(&root, DeviceKind::Qat);
            Ok(Watchman { watch, breaker, seen })
        })
        .ok();
        self.process.store(if thread.is_some() { process } else { 0 }, Ordering::Relaxed);
    }
}

/// Lives on the thread, until the last session of its [`Monitor`] is gone.
struct Watchman {
    watch: Watch,
    breaker: Arc<Breaker>,
    seen: Arc<Seen>,
}

impl Serve for Watchman {
    type Request = ();
    type Reply = ();

    fn serve(&mut self, (): ()) {}

    fn looks_every(&self) -> Option<Duration> {
        (!self.watch.is_empty()).then_some(LOOK)
    }

    fn look(&mut self) -> bool {
        if let Err(fault) = self.watch.look() {
            self.breaker.trip(fault, boot_ns());
            self.seen.fault.store(fault.number().into(), Ordering::Relaxed);
            // After the breaker, so that whoever ends a session because of this does not make another.
            self.seen.losses.fetch_add(1, Ordering::Release);
        }
        if self.breaker.view().opened > 0 {
            tell();
        }
        true
    }
}
