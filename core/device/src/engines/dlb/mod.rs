//! DLB: small messages from one sender to whichever receiver is free, through a queue in hardware.
//!
//! The device carries slot numbers of a table; the messages stay in the table. So a message is taken exactly once: by
//! the receiver that the device chose, or by the sender, which takes it back if it is late or the device has failed.

mod abi;
mod session;
mod table;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use self::abi::LIBRARY;
use self::session::Session;
pub use self::session::look;
use self::table::Table;
use super::Folder;
use crate::Fault;
use crate::guard::{Limits, Refusal};
use crate::worker::{Serve, Worker};
use hasten_guard::breaker::{Breaker, Permit, View};
use hasten_guard::clock::boot_ns;

/// The sending side, which also starts and stops sessions.
pub struct Sender {
    shared: Arc<Shared>,
    folder: Folder,
    receivers: usize,
    breaker: Arc<Breaker>,
    limits: Limits,
    session: Option<Arc<Session>>,
    starting: Option<Starting>,
}

/// One of the receiving sides.
pub struct Receiver {
    shared: Arc<Shared>,
    number: usize,
    session: Option<Arc<Session>>,
    epoch: u32,
}

struct Shared {
    table: Table,
    session: Mutex<Option<Arc<Session>>>,
    /// Changes with the session.
    epoch: AtomicU32,
    /// A receiver has got an error, or something that nobody sent.
    is_broken: AtomicBool,
}

struct Starting {
    worker: Worker<Opener>,
    permit: Permit,
    since_ns: u64,
}

/// A queue for `receivers` threads. Starts nothing yet.
pub fn hand_out(
    folder: Folder,
    receivers: usize,
    breaker: Arc<Breaker>,
    limits: Limits,
) -> (Sender, Vec<Receiver>) {
    let shared = Arc::new(Shared {
        table: Table::new(),
        session: Mutex::new(None),
        epoch: AtomicU32::new(0),
        is_broken: AtomicBool::new(false),
    });
    let receiver = |number| Receiver { shared: Arc::clone(&shared), number, session: None, epoch: 0 };
    let receivers: Vec<_> = (0..receivers.max(1)).map(receiver).collect();
    let count = receivers.len();
    let sender = Sender { shared, folder, receivers: count, breaker, limits, session: None, starting: None };
    (sender, receivers)
}

impl Sender {
    /// Hands out `message`, or refuses and leaves it to the caller.
    pub fn send(&mut self, message: u64) -> Result<(), Refusal> {
        let permit = self.admit()?;
        let Some(session) = &self.session else { return Err(Refusal::NotNow) };
        let Some(place) = self.shared.table.put(message, boot_ns()) else { return Err(Refusal::NotNow) };
        let Err(fault) = session.send(place) else { return Ok(()) };
        if self.shared.table.take(place).is_none() {
            // The device reported a failure and delivered the message all the same.
            return Ok(());
        }
        // Receivers are busy: not a fault as long as they have work.
        if fault == Fault::QueueFull && !self.shared.table.is_empty() {
            return Err(Refusal::NotNow);
        }
        self.fail(permit, fault);
        Err(Refusal::Fault(fault))
    }

    /// Takes back late and lost messages and passes each to `lost`, to be handed out in software. Call it once per
    /// turn.
    pub fn check(&mut self, lost: &mut dyn FnMut(u64)) {
        self.settle();
        let now = boot_ns();
        let late = self
            .shared
            .table
            .oldest()
            .is_some_and(|since| now.saturating_sub(since) > self.limits.operation.as_nanos() as u64);
        let is_broken = self.shared.is_broken.swap(false, Ordering::AcqRel);
        if self.session.is_some() && (late || is_broken) {
            self.breaker.trip(if is_broken { Fault::BadOutput } else { Fault::TimedOut }, now);
            self.close();
        }
        if self.session.is_none() {
            self.shared.table.take_all(lost);
        }
    }

    pub fn view(&self) -> View {
        self.breaker.view()
    }

    /// Advances start and probes, and returns whether a message would be admitted.
    pub fn is_ready(&mut self) -> bool {
        self.admit().is_ok()
    }

    /// A probe is a new session that has carried known messages. A session in use cannot be probed: its receivers would
    /// see them.
    fn admit(&mut self) -> Result<Permit, Refusal> {
        self.settle();
        if self.starting.is_some() {
            return Err(Refusal::NotNow);
        }
        let now = boot_ns();
        let permit = self.breaker.admit(now).ok_or(Refusal::NotNow)?;
        if self.session.is_some() {
            if permit.is_probe() {
                // The session is newer than the fault, and has answered.
                self.breaker.succeeded(permit, now);
                return Err(Refusal::NotNow);
            }
            return Ok(permit);
        }
        let (folder, receivers, limits) = (self.folder.clone(), self.receivers, self.limits);
        let open = move || {
            let session = Session::open(&folder, receivers)?;
            session.known_answer(limits.operation * 4)?;
            Ok(Opener(Some(Arc::new(session))))
        };
        match Worker::start(hasten_names::Engine::Dlb.as_str(), open) {
            Ok(worker) => self.starting = Some(Starting { worker, permit, since_ns: now }),
            Err(fault) => self.fail(permit, fault),
        }
        Err(Refusal::NotNow)
    }

    fn settle(&mut self) {
        let Some(Starting { worker, permit, since_ns }) = &mut self.starting else { return };
        let (permit, now) = (*permit, boot_ns());
        let outcome = match worker.ready() {
            None if now.saturating_sub(*since_ns) > self.limits.start.as_nanos() as u64 => {
                Err(Fault::TimedOut)
            }
            None => return,
            Some(Err(fault)) => Err(fault),
            Some(Ok(())) => {
                let _ = worker.post(());
                match worker.reply(Duration::from_millis(100)) {
                    Some(Ok(Some(session))) => Ok(session),
                    _ => Err(Fault::Crashed),
                }
            }
        };
        self.starting = None;
        match outcome {
            Ok(session) => {
                self.shared.publish(Some(Arc::clone(&session)));
                self.session = Some(session);
                self.breaker.succeeded(permit, now);
            }
            Err(fault) => self.fail(permit, fault),
        }
    }

    fn fail(&mut self, permit: Permit, fault: Fault) {
        self.breaker.failed(permit, fault, boot_ns());
        self.close();
    }

    fn close(&mut self) {
        self.shared.publish(None);
        if let Some(session) = self.session.take() {
            stop(session);
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.close();
    }
}

impl Receiver {
    /// A message, if there is one. Never blocks.
    pub fn receive(&mut self) -> Option<u64> {
        self.follow();
        let session = self.session.as_ref()?;
        match session.receive(self.number) {
            Ok(place) => {
                let place = place?;
                let message = self.shared.table.take(place);
                // The sender may have taken the message back; but a number that was never issued is the device's
                // invention.
                if message.is_none() && !self.shared.table.knows(place) {
                    self.shared.is_broken.store(true, Ordering::Release);
                }
                message
            }
            Err(_) => {
                self.shared.is_broken.store(true, Ordering::Release);
                self.session = None;
                None
            }
        }
    }

    /// Switches to a new session.
    fn follow(&mut self) {
        let epoch = self.shared.epoch.load(Ordering::Acquire);
        if epoch == self.epoch {
            return;
        }
        if let Ok(session) = self.shared.session.try_lock() {
            self.session = session.clone();
            self.epoch = epoch;
        }
    }
}

impl Shared {
    fn publish(&self, session: Option<Arc<Session>>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

/// Runs on its own thread, once the last receiver has let go. If no thread can be started, the session is left as it
/// is.
fn stop(session: Arc<Session>) {
    let session = std::mem::ManuallyDrop::new(session);
    let stopping = Worker::<Opener>::start("dlb-stop", move || {
        let mut session = std::mem::ManuallyDrop::into_inner(session);
        for _ in 0..1_000 {
            match Arc::try_unwrap(session) {
                Ok(last) => {
                    drop(last);
                    return Err(Fault::Gone);
                }
                Err(shared) => session = shared,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // A receiver that never looks again still holds it.
        std::mem::forget(session);
        Err(Fault::Gone)
    });
    drop(stopping);
}

/// A thread that opens a session and hands it over.
struct Opener(Option<Arc<Session>>);

impl Serve for Opener {
    type Request = ();
    type Reply = Option<Arc<Session>>;

    fn serve(&mut self, (): ()) -> Self::Reply {
        self.0.take()
    }
}
