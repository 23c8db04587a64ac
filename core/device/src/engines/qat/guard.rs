//! A QAT session behind its breaker.
//!
//! Other threads start and stop sessions, since that involves drivers; submitting and polling touch rings in memory and
//! are left to the caller. When anything goes wrong, every pending operation comes back as failed and is done in
//! software.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use super::super::crypto::{CryptoDevice, Done, Operation};
use super::super::{Failure, Folder};
use super::monitor::Monitor;
use super::session::{Qat, is_known};
use crate::Fault;
use crate::guard::{Limits, Refusal};
use crate::root::Root;
use crate::worker::{Serve, Worker};
use hasten_guard::breaker::{Breaker, Permit, View};
use hasten_guard::clock::boot_ns;

/// The ticket of the known question. Callers use smaller ones.
const QUESTION: u64 = u64::MAX;

#[derive(Clone)]
pub struct Plan {
    pub folder: Folder,
    /// Where drivers report the state of their devices.
    pub root: Root,
    pub limits: Limits,
    /// Sessions that share a breaker share it, too.
    pub monitor: Arc<Monitor>,
}

/// One thread's public-key operations.
pub struct Crypto {
    breaker: Arc<Breaker>,
    plan: Plan,
    session: Session,
    /// The monitor's count of losses when the session began.
    losses: u32,
    process: u32,
    /// A probe in progress in an open session, and its question.
    probe: Option<(Permit, usize)>,
    questions: usize,
    /// Operations lost with a session, until their owner is told.
    lost: Vec<u64>,
    why: Fault,
}

enum Session {
    None,
    Starting { worker: Worker<Starter>, permit: Permit, since_ns: u64 },
    Open(Box<Qat>),
}

impl Crypto {
    /// Starts nothing yet.
    pub fn new(plan: Plan, breaker: Arc<Breaker>) -> Self {
        Self {
            breaker,
            plan,
            session: Session::None,
            losses: 0,
            process: std::process::id(),
            probe: None,
            questions: 0,
            lost: Vec::with_capacity(64),
            why: Fault::Error,
        }
    }

    /// Submits an operation. [`Self::poll`] delivers its result, with the ticket.
    pub fn submit(&mut self, operation: &Operation, ticket: u64) -> Result<(), Refusal> {
        let permit = self.admit()?;
        let Session::Open(qat) = &mut self.session else { return Err(Refusal::NotNow) };
        match qat.submit(operation, ticket) {
            Ok(()) => Ok(()),
            Err(Failure::Declined) => Err(Refusal::Declined),
            // As long as results are due, a full ring is not a fault.
            Err(Failure::Fault(Fault::QueueFull)) if qat.in_flight() > 0 => Err(Refusal::NotNow),
            Err(Failure::Fault(fault)) => {
                self.fail(permit, fault);
                Err(Refusal::Fault(fault))
            }
        }
    }

    /// Checks for completed operations. Never blocks.
    pub fn poll(&mut self, done: &mut Done) {
        self.leave_the_parent();
        self.settle();
        self.heed();
        let mut fault = None;
        if let Session::Open(qat) = &mut self.session {
            let mut answer = None;
            let question = self.probe.map(|(_, question)| question);
            let polled = qat.poll(&mut |ticket, result| {
                if ticket == QUESTION {
                    let is_right =
                        |result: &[u8]| question.is_some_and(|question| is_known(question, result));
                    answer =
                        Some(result.and_then(|r| if is_right(r) { Ok(()) } else { Err(Fault::BadOutput) }));
                    return;
                }
                if let Err(failed) = result {
                    fault = Some(failed);
                }
                done(ticket, result);
            });
            fault = fault.or(polled.err());
            if let (Some(answer), Some((permit, _))) = (answer, self.probe.take_if(|_| answer.is_some())) {
                match answer {
                    Ok(()) => self.breaker.succeeded(permit, boot_ns()),
                    Err(wrong) => self.fail(permit, wrong),
                }
            }
        }
        if let Some(fault) = fault {
            match self.probe.take() {
                Some((permit, _)) => self.fail(permit, fault),
                None => self.blame(fault),
            }
        }
        for ticket in self.lost.drain(..) {
            done(ticket, Err(self.why));
        }
    }

    /// Pending operations, not counting the known question.
    pub fn in_flight(&self) -> usize {
        match &self.session {
            Session::Open(qat) => qat.in_flight() - usize::from(self.probe.is_some()) + self.lost.len(),
            _ => self.lost.len(),
        }
    }

    /// Reports that the caller has found a result wrong.
    pub fn blame(&mut self, fault: Fault) {
        self.breaker.trip(fault, boot_ns());
        self.close(fault);
    }

    /// CPU time of the RSA question, if there is a session.
    pub fn question_ns(&self) -> Option<u64> {
        match &self.session {
            Session::Open(qat) => Some(qat.question_ns()),
            _ => None,
        }
    }

    pub fn view(&self) -> View {
        self.breaker.view()
    }

    /// Advances start and probes, and returns whether an operation would be admitted.
    pub fn is_ready(&mut self) -> bool {
        self.poll(&mut |_, _| {});
        self.admit().is_ok()
    }

    fn admit(&mut self) -> Result<Permit, Refusal> {
        self.leave_the_parent();
        self.settle();
        self.heed();
        if matches!(self.session, Session::Starting { .. }) {
            return Err(Refusal::NotNow);
        }
        let now = boot_ns();
        let permit = self.breaker.admit(now).ok_or(Refusal::NotNow)?;
        match &mut self.session {
            Session::Open(_) if !permit.is_probe() => return Ok(permit),
            Session::Open(qat) => {
                self.questions += 1;
                match qat.ask(self.questions, QUESTION) {
                    Ok(()) => self.probe = Some((permit, self.questions)),
                    Err(fault) => self.fail(permit, fault),
                }
            }
            _ => match self.start() {
                Ok(worker) => self.session = Session::Starting { worker, permit, since_ns: now },
                Err(fault) => self.fail(permit, fault),
            },
        }
        Err(Refusal::NotNow)
    }

    fn start(&mut self) -> Result<Worker<Starter>, Fault> {
        let Plan { folder, root, limits, monitor } = self.plan.clone();
        self.losses = monitor.losses();
        Worker::start(hasten_names::Engine::Qat.as_str(), move || {
            let mut qat = Qat::open(&folder, &root, limits.operation)?;
            qat.known_answers()?;
            Ok(Starter(Some(Box::new(qat))))
        })
    }

    /// Checks on a session that is starting, and takes it over.
    fn settle(&mut self) {
        let Session::Starting { worker, permit, since_ns } = &mut self.session else { return };
        let (permit, now) = (*permit, boot_ns());
        let outcome = match worker.ready() {
            None if now.saturating_sub(*since_ns) > self.plan.limits.start.as_nanos() as u64 => {
                Err(Fault::TimedOut)
            }
            None => return,
            Some(Err(fault)) => Err(fault),
            Some(Ok(())) => {
                // The session exists; handing it over takes no time.
                let _ = worker.post(());
                match worker.reply(Duration::from_millis(100)) {
                    Some(Ok(Some(qat))) => Ok(qat),
                    _ => Err(Fault::Crashed),
                }
            }
        };
        match outcome {
            Ok(qat) => {
                self.session = Session::Open(qat);
                self.breaker.succeeded(permit, now);
                self.plan.monitor.begin(&self.plan.root, &self.breaker);
            }
            Err(fault) => self.fail(permit, fault),
        }
    }

    /// Ends a session whose devices are dead according to their drivers: pending operations need not wait for their
    /// time-out.
    fn heed(&mut self) {
        let Plan { monitor, .. } = &self.plan;
        if matches!(self.session, Session::Open(_)) && monitor.losses() != self.losses {
            let fault = monitor.fault();
            match self.probe.take() {
                Some((permit, _)) => self.fail(permit, fault),
                None => self.close(fault),
            }
        }
    }

    fn fail(&mut self, permit: Permit, fault: Fault) {
        self.breaker.failed(permit, fault, boot_ns());
        self.close(fault);
    }

    fn close(&mut self, fault: Fault) {
        self.probe = None;
        if let Session::Open(qat) = std::mem::replace(&mut self.session, Session::None) {
            let lost = &mut self.lost;
            qat.abandon(&mut |ticket| {
                if ticket != QUESTION {
                    lost.push(ticket);
                }
            });
            self.why = fault;
            stop(qat);
        }
    }

    /// A session does not survive a fork: the rings are the parent's.
    fn leave_the_parent(&mut self) {
        let process = std::process::id();
        if self.process != process {
            self.process = process;
            self.probe = None;
            self.lost.clear();
            std::mem::forget(std::mem::replace(&mut self.session, Session::None));
        }
    }
}

impl Drop for Crypto {
    fn drop(&mut self) {
        self.leave_the_parent();
        self.close(Fault::Gone);
    }
}

/// Runs on its own thread: stopping may hang, too. If no thread can be started, the session is not stopped.
fn stop(qat: Box<Qat>) {
    let mut qat = ManuallyDrop::new(qat);
    let stopped = Worker::<Starter>::start("qat-stop", move || {
        // SAFETY: not used afterwards, and dropped nowhere else.
        unsafe { ManuallyDrop::drop(&mut qat) };
        Err(Fault::Gone)
    });
    drop(stopped);
}

/// A thread that makes a session and hands it over.
struct Starter(Option<Box<Qat>>);

impl Serve for Starter {
    type Request = ();
    type Reply = Option<Box<Qat>>;

    fn serve(&mut self, (): ()) -> Option<Box<Qat>> {
        self.0.take()
    }
}
