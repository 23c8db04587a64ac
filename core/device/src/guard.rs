//! A worker behind its breaker: the life of an engine in one process.
//!
//! Nobody waits for an engine to start or to be tried again. Both happen on the worker's thread while operations go to
//! software; the next operation sees the outcome. So a caller waits only for a real operation, and that wait is
//! bounded.

use std::sync::Arc;
use std::time::Duration;

use crate::Fault;
use crate::discovery::DeviceKind;
use crate::root::Root;
use crate::watch::{LOOK, Watch, tell};
use crate::worker::{Serve, Worker};
use hasten_guard::breaker::{Breaker, Permit, View};
use hasten_guard::clock::boot_ns;

/// Why an operation was not done. In each case the caller does it in software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The engine is starting, out of service, disabled or busy.
    NotNow,
    /// Unsuitable for this engine: too large, or data that it does not understand.
    Declined,
    /// It failed just now.
    Fault(Fault),
}

/// How long an engine may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one operation, while the caller waits.
    pub operation: Duration,
    /// To start or to answer the known question, while nobody waits.
    pub start: Duration,
}

impl Limits {
    pub const DEFLATE: Self = Self { operation: Duration::from_millis(50), start: Duration::from_secs(2) };
    pub const CRYPTO: Self = Self { operation: Duration::from_millis(20), start: Duration::from_secs(2) };
}

/// A server that can be asked a question with a known answer.
pub trait Engine: Serve + Sized {
    /// As on the counter page; also the thread's name.
    const NAME: &'static str;
    /// The devices that it uses.
    const KIND: DeviceKind;
    /// What it is made from.
    type Plan: Clone + Send + 'static;

    /// The root below which its devices' drivers are found.
    fn root(_: &Self::Plan) -> Root {
        Root::from_environment()
    }

    /// Opens the library and a session, on the worker's thread.
    fn open(plan: &Self::Plan) -> Result<Self, Fault>;

    /// Asks the known question: before the first real request, and whenever the breaker wants a probe.
    fn known_answer(&mut self) -> Result<(), Fault>;
}

/// One engine of a thread or process.
pub struct Guard<E: Engine> {
    breaker: Arc<Breaker>,
    plan: E::Plan,
    limits: Limits,
    worker: Option<Worker<Server<E>>>,
    pending: Option<Pending>,
}

/// What is in progress while nobody waits.
#[derive(Debug, Clone, Copy)]
struct Pending {
    permit: Permit,
    since_ns: u64,
}

impl<E: Engine> Guard<E> {
    /// Starts nothing yet. Guards of several threads may share a breaker.
    pub fn new(plan: E::Plan, breaker: Arc<Breaker>, limits: Limits) -> Self {
        Self { breaker, plan, limits, worker: None, pending: None }
    }

    /// Asks for admission. Whatever the answer, start and probes advance.
    pub fn admit(&mut self) -> Result<Permit, Refusal> {
        let now = boot_ns();
        if self.worker.as_ref().is_some_and(|worker| !worker.is_here()) {
            self.give_up();
        }
        self.settle(now);
        // The worker has seen its device fail and has opened the breaker.
        if self.worker.as_ref().is_some_and(Worker::is_over) {
            self.give_up();
        }
        if self.pending.is_some() {
            return Err(Refusal::NotNow);
        }
        let permit = self.breaker.admit(now).ok_or(Refusal::NotNow)?;
        match &mut self.worker {
            Some(_) if !permit.is_probe() => return Ok(permit),
            Some(worker) => {
                if worker.post(Asked::Question).is_err() {
                    self.fail(permit, Fault::Crashed);
                    return Err(Refusal::Fault(Fault::Crashed));
                }
            }
            None => match self.start() {
                Ok(worker) => self.worker = Some(worker),
                Err(fault) => {
                    self.fail(permit, fault);
                    return Err(Refusal::Fault(fault));
                }
            },
        }
        self.pending = Some(Pending { permit, since_ns: now });
        Err(Refusal::NotNow)
    }

    /// Executes an admitted request, within the limit.
    pub fn call(&mut self, permit: Permit, request: E::Request) -> Result<E::Reply, Fault> {
        let outcome = match &mut self.worker {
            Some(worker) => match worker.post(Asked::Real(request)) {
                Ok(()) => worker.reply(self.limits.operation).unwrap_or(Err(Fault::TimedOut)),
                Err(_) => Err(Fault::Gone),
            },
            None => Err(Fault::Gone),
        };
        match outcome {
            Ok(Answered::Real(reply)) => Ok(reply),
            Ok(Answered::Question(_)) => Err(self.fail(permit, Fault::Crashed)),
            Err(fault) => Err(self.fail(permit, fault)),
        }
    }

    /// Reports that a reply was good.
    pub fn succeeded(&self, permit: Permit) {
        self.breaker.succeeded(permit, boot_ns());
    }

    /// Reports that it was not. The session ends; the next one begins with the known question.
    pub fn fail(&mut self, permit: Permit, fault: Fault) -> Fault {
        self.breaker.failed(permit, fault, boot_ns());
        self.give_up();
        fault
    }

    /// Ends the session for a reason found later, such as a failed check of the output.
    pub fn blame(&mut self, fault: Fault) {
        self.breaker.trip(fault, boot_ns());
        self.give_up();
    }

    pub fn view(&self) -> View {
        self.breaker.view()
    }

    /// Whether a real operation would be admitted now.
    pub fn is_ready(&mut self) -> bool {
        self.admit().is_ok()
    }

    fn start(&self) -> Result<Worker<Server<E>>, Fault> {
        let (plan, breaker) = (self.plan.clone(), Arc::clone(&self.breaker));
        Worker::start(E::NAME, move || {
            let watch = Watch::new(&E::root(&plan), E::KIND);
            // A session with a dead device would hang.
            watch.look()?;
            let mut engine = E::open(&plan)?;
            engine.known_answer()?;
            Ok(Server { engine, watch, breaker })
        })
    }

    /// Checks on what is in progress.
    fn settle(&mut self, now: u64) {
        let (Some(pending), Some(worker)) = (self.pending, &mut self.worker) else { return };
        let outcome = match worker.ready() {
            None => None,
            Some(Err(fault)) => Some(Err(fault)),
            Some(Ok(())) if !worker.is_busy() => Some(Ok(())),
            Some(Ok(())) => worker.reply(Duration::ZERO).map(|reply| match reply {
                Ok(Answered::Question(answer)) => answer,
                Ok(Answered::Real(_)) => Err(Fault::Crashed),
                Err(fault) => Err(fault),
            }),
        };
        let is_late = now.saturating_sub(pending.since_ns) > self.limits.start.as_nanos() as u64;
        match outcome {
            None if is_late => {
                self.fail(pending.permit, Fault::TimedOut);
            }
            None => {}
            Some(Ok(())) => {
                self.pending = None;
                self.breaker.succeeded(pending.permit, now);
            }
            Some(Err(fault)) => {
                self.fail(pending.permit, fault);
            }
        }
    }

    fn give_up(&mut self) {
        self.worker = None;
        self.pending = None;
    }
}

/// What the thread is asked: a real request, or the known question.
enum Asked<R> {
    Real(R),
    Question,
}

enum Answered<R> {
    Real(R),
    Question(Result<(), Fault>),
}

struct Server<E> {
    engine: E,
    watch: Watch,
    breaker: Arc<Breaker>,
}

impl<E: Engine> Serve for Server<E> {
    type Request = Asked<E::Request>;
    type Reply = Answered<E::Reply>;

    fn serve(&mut self, request: Self::Request) -> Self::Reply {
        match request {
            Asked::Real(request) => Answered::Real(self.engine.serve(request)),
            Asked::Question => Answered::Question(self.engine.known_answer()),
        }
    }

    fn looks_every(&self) -> Option<Duration> {
        (!self.watch.is_empty()).then_some(LOOK)
    }

    fn look(&mut self) -> bool {
        match self.watch.look() {
            Ok(()) => true,
            Err(fault) => {
                self.breaker.trip(fault, boot_ns());
                tell();
                false
            }
        }
    }
}
