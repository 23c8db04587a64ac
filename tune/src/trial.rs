//! A real service as a [`Subject`]: started with a candidate, waited for, warmed up, driven, checked, stopped.

mod warm_up;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::warm_up::WarmUp;
use self::warm_up::{MOST_SLICES, SLICE, Slice};
use crate::guard::{Guard, GuardError, KnownErrors};
use crate::knob::Choices;
use crate::load::{Load, LoadError, LoadResult, Target};
use crate::measure::{Bytes, Counter, Disqualified, Measurement, Outcome, Subject};
use crate::service::{Launch, Limits, Readiness, Service, ServiceError};
use crate::space::Candidate;

/// The scheduler accounts for a slice when the thread sleeps again, and a server still closes connections after the
/// load has seen the end.
const SETTLE: Duration = Duration::from_millis(50);

/// Differences between starts are known after a few.
const STARTS_TO_LEARN_FROM: usize = 2;

/// Connections of the warm-up.
const WARM_CONNECTIONS: usize = 8;

/// The fraction of the budget for each warm-up, and for finding out how long it has to be.
const WARM_UP_SHARE: u32 = 150;
const WARM_UP_SEARCH_SHARE: u32 = 20;

/// The service that is tuned, and how it is measured.
pub struct Trials<'a> {
    pub launch: Launch,
    pub choices: &'a Choices,
    pub readiness: Readiness,
    pub limits: Limits,
    pub load: &'a Load,
    /// How long a run of the load may take.
    pub load_limit: Duration,
    /// Given by the user; otherwise it is found out.
    pub warm_up: Option<Duration>,
    pub budget: Duration,
    /// The folder for logs.
    pub folder: PathBuf,
    pub stop: &'a AtomicBool,
    pub checks: Checks,
}

/// The behaviour of the service as it is, so that a candidate that changes it is caught.
#[derive(Debug, Default)]
pub struct Checks {
    /// Pages whose answers are compared.
    pages: Vec<Target>,
    guard: Option<Guard>,
    known: Known,
}

/// Knowledge that a resumed session would acquire differently, or not at all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    #[serde(default)]
    errors: KnownErrors,
    #[serde(default)]
    warm_up: Option<WarmUp>,
}

/// Why the session cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Service(ServiceError),
    #[error(transparent)]
    Load(LoadError),
    #[error("the answers of the service cannot be compared: {0}")]
    Guard(GuardError),
}

impl TrialError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Interrupted => "go on with --resume".to_owned(),
            Self::Service(error) => error.fix(),
            Self::Guard(_) => {
                "name a page that answers with 2xx and can be fetched again and again with --url".to_owned()
            }
            Self::Load(_) => {
                "run the load by hand against the running service, and see what it says".to_owned()
            }
        }
    }
}

impl Subject for Trials<'_> {
    type Stop = TrialError;

    fn measure(&mut self, candidate: &Candidate) -> Result<Outcome, TrialError> {
        let outcome = self.run(candidate)?;
        // With a short load on a busy machine, one failure may be bad luck.
        if outcome == no_answer() { self.run(candidate) } else { Ok(outcome) }
    }

    fn knowledge(&self) -> Value {
        serde_json::to_value(&self.checks.known).unwrap_or_default()
    }
}

impl Trials<'_> {
    fn run(&mut self, candidate: &Candidate) -> Result<Outcome, TrialError> {
        let is_baseline = candidate.set().next().is_none();
        let mut service = match self.start(candidate) {
            Ok(service) => service,
            Err(error) => return disqualified_by(error),
        };
        let outcome = self.drive(&mut service, is_baseline);
        let log = service.log().to_owned();
        // Whatever happened, the service must be gone before anything is reported.
        let stopped = service.stop();
        let outcome = outcome?;
        if let Err(error) = stopped {
            return disqualified_by(error);
        }
        Ok(self.checks.judge_log(&log, outcome, is_baseline))
    }

    /// Restores what an earlier run of the session has learnt; anything that cannot be parsed is learnt again.
    pub fn remember(&mut self, knowledge: &Value) {
        self.checks.known = Known::deserialize(knowledge).unwrap_or_default();
    }

    /// The warm-up before each measurement.
    #[must_use]
    pub fn warm_up(&self) -> Option<WarmUp> {
        self.warm_up.map(WarmUp::lasting).or(self.checks.known.warm_up)
    }

    /// Learns what the service answers as it is. Before the session, so that all of its measurements take the same
    /// time.
    ///
    /// # Errors
    ///
    /// The service does not start, or its answers cannot be fetched.
    pub fn prepare(&mut self) -> Result<(), TrialError> {
        let baseline = Candidate(vec![0; self.choices.knobs.len()]);
        for start in 1..=STARTS_TO_LEARN_FROM {
            let service = self.start(&baseline).map_err(of_service)?;
            let learnt = self.checks.learn();
            if learnt.is_ok() && start == STARTS_TO_LEARN_FROM && self.warm_up().is_none() {
                self.checks.known.warm_up = self.find_warm_up(&service);
            }
            let log = service.log().to_owned();
            let stopped = service.stop();
            self.checks.learn_log(&log);
            stopped.map_err(of_service)?;
            learnt?;
            if self.stopped() {
                return Err(TrialError::Interrupted);
            }
        }
        Ok(())
    }

    fn start(&self, candidate: &Candidate) -> Result<Service, ServiceError> {
        let launch = self.choices.launch(candidate, &self.launch);
        let log = self.folder.join("service.log");
        Service::start(&launch, &self.readiness, &log, self.limits, &|| self.stopped())
    }

    fn drive(&mut self, service: &mut Service, is_baseline: bool) -> Result<Outcome, TrialError> {
        self.warm()?;
        thread::sleep(SETTLE);
        let before = service.cpu_times();
        let result = self.load.run(Instant::now() + self.load_limit, self.stop);
        thread::sleep(SETTLE);
        let cpu = service.cpu_times().since(&before);
        let memory = service.memory();
        if let Some(status) = service.exited() {
            return Ok(Outcome::Disqualified(Disqualified::Crashed {
                what: format!("it ended with {status}"),
            }));
        }
        let result = match result {
            Ok(result) => result,
            Err(LoadError::Stopped) => return Err(TrialError::Interrupted),
            Err(_) if self.stopped() => return Err(TrialError::Interrupted),
            // wrk and others fail if nobody answers: that is the service's fault.
            Err(error @ LoadError::Failed { .. }) => {
                let what = error.to_string();
                return Ok(Outcome::Disqualified(Disqualified::FailedRequests { what }));
            }
            Err(error) => return Err(TrialError::Load(error)),
        };
        // After the load: what a cache or a pool does to the answers counts as well.
        if let (Some(guard), false) = (&self.checks.guard, is_baseline)
            && let Err(reason) = guard.check()
        {
            return Ok(Outcome::Disqualified(reason));
        }
        let bytes = self.bytes(&result);
        Ok(judge(&result, cpu, memory, bytes))
    }

    /// The size of an answer on the wire: the load's own count, or that of the pages that it requests.
    fn bytes(&self, result: &LoadResult) -> Option<Bytes> {
        if let (Some(received), Some(requests)) = (result.received, result.requests) {
            let per_request = received.bytes / requests;
            return (requests > 0.0).then_some(Bytes {
                per_request,
                rounding: received.rounding,
                by: Counter::Load,
            });
        }
        let per_request = self.checks.guard.as_ref()?.bytes_per_answer()?;
        Some(Bytes { per_request, rounding: 0.0, by: Counter::Pages })
    }

    /// Code compiled and caches filled at run time are not part of a request's cost.
    fn warm(&self) -> Result<(), TrialError> {
        let Some(WarmUp { seconds, requests }) = self.warm_up() else { return Ok(()) };
        let (whole, begun) = (Duration::from_secs_f64(seconds), Instant::now());
        let mut done = self.drive_pages(whole);
        // If the machine is busy meanwhile, the same takes longer.
        while done < requests && begun.elapsed() < 2 * whole && !self.stopped() {
            done += self.drive_pages(whole / 4);
        }
        if self.stopped() { Err(TrialError::Interrupted) } else { Ok(()) }
    }

    /// Drives the service as it is, and observes when a request's cost becomes stable; `None` if the load names no
    /// page.
    fn find_warm_up(&self, service: &Service) -> Option<WarmUp> {
        if self.load.targets().is_empty() {
            return None;
        }
        let end = Instant::now() + self.budget / WARM_UP_SEARCH_SHARE;
        let mut slices = Vec::new();
        while slices.len() < MOST_SLICES && Instant::now() + SLICE < end && !self.stopped() {
            let before = service.cpu_times();
            let requests = self.drive_pages(SLICE);
            thread::sleep(SETTLE);
            slices.push(Slice { cpu: service.cpu_times().since(&before), requests });
        }
        Some(WarmUp::of(&slices, self.budget / WARM_UP_SHARE))
    }

    /// Requests the load's pages for this long in total; returns how many were answered.
    fn drive_pages(&self, time: Duration) -> f64 {
        let pages = self.load.targets();
        if time.is_zero() || pages.is_empty() {
            return 0.0;
        }
        let each = time / u32::try_from(pages.len()).unwrap_or(u32::MAX);
        let drive = |page: &Target| {
            let load = Load::builtin(&page.to_string(), WARM_CONNECTIONS, each).ok()?;
            // What fails here fails again when it counts.
            load.run(Instant::now() + 2 * each + SETTLE, self.stop).ok()?.requests
        };
        pages.iter().filter_map(drive).sum()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Checks {
    #[must_use]
    pub fn of(pages: Vec<Target>) -> Self {
        Self { pages, ..Self::default() }
    }

    fn learn(&mut self) -> Result<(), TrialError> {
        match &mut self.guard {
            None => self.guard = Some(Guard::learn(&self.pages).map_err(TrialError::Guard)?),
            Some(guard) => guard.learn_more().map_err(TrialError::Guard)?,
        }
        Ok(())
    }

    fn learn_log(&mut self, log: &Path) {
        self.known.errors.learn(&text(log));
    }

    /// Looks for an error line that the service does not write as it is.
    fn judge_log(&mut self, log: &Path, outcome: Outcome, is_baseline: bool) -> Outcome {
        if is_baseline {
            self.learn_log(log);
            return outcome;
        }
        match (self.known.errors.first_new(&text(log)), outcome) {
            (Some(line), Outcome::Measured(_)) => Outcome::Disqualified(Disqualified::LoggedError { line }),
            (_, outcome) => outcome,
        }
    }
}

fn text(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

fn judge(result: &LoadResult, cpu: Duration, memory: u64, bytes: Option<Bytes>) -> Outcome {
    if result.failed > 0 {
        let kinds = if result.failures.is_empty() {
            String::new()
        } else {
            format!(": {}", result.failures.join(", "))
        };
        let what = format!("{} requests{kinds}", result.failed);
        return Outcome::Disqualified(Disqualified::FailedRequests { what });
    }
    if result.requests == Some(0.0) {
        return no_answer();
    }
    Outcome::Measured(Measurement {
        requests: result.requests.unwrap_or(0.0),
        seconds: result.seconds,
        cpu_seconds: cpu.as_secs_f64(),
        peak_rss_bytes: memory,
        latency: result.latency,
        metric: result.custom,
        bytes,
    })
}

fn no_answer() -> Outcome {
    Outcome::Disqualified(Disqualified::FailedRequests { what: "no request was answered".to_owned() })
}

/// A candidate may keep a service from starting or stopping; no other error is a candidate's fault.
fn disqualified_by(error: ServiceError) -> Result<Outcome, TrialError> {
    if error.is_of_the_service() {
        return Ok(Outcome::Disqualified(Disqualified::Crashed { what: error.to_string() }));
    }
    Err(of_service(error))
}

fn of_service(error: ServiceError) -> TrialError {
    match error {
        ServiceError::Stopped => TrialError::Interrupted,
        error => TrialError::Service(error),
    }
}
