//! A real service as a [`Subject`]: started with a candidate, waited for, warmed, driven, looked at, stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::guard::{Guard, GuardError, KnownErrors};
use crate::knob::Choices;
use crate::load::{Load, LoadError, LoadResult, Target};
use crate::measure::{Disqualified, Measurement, Outcome, Subject};
use crate::service::{Launch, Limits, Readiness, Service, ServiceError};
use crate::space::Candidate;

/// The scheduler books a slice when the thread sleeps again, and a server still closes connections after the load has
/// seen the end.
const SETTLE: Duration = Duration::from_millis(50);

/// What differs from start to start is known after a few.
const STARTS_TO_LEARN_FROM: usize = 2;

/// Connections of the warm-up.
const WARM_CONNECTIONS: usize = 8;

/// The service that is tuned, and how it is measured.
pub struct Trials<'a> {
    pub launch: Launch,
    pub choices: &'a Choices,
    pub readiness: Readiness,
    pub limits: Limits,
    pub load: &'a Load,
    /// How long a run of the load may take.
    pub load_limit: Duration,
    pub warm_up: Duration,
    /// Where logs are.
    pub folder: PathBuf,
    pub stop: &'a AtomicBool,
    pub checks: Checks,
}

/// What the service does as it is, so that a candidate that does something else is found out.
#[derive(Debug, Default)]
pub struct Checks {
    /// Pages whose answers are compared.
    pages: Vec<Target>,
    guard: Option<Guard>,
    errors: KnownErrors,
}

/// Why the session cannot go on.
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
        // A load that is short and a machine that is busy: once may be bad luck.
        if outcome == no_answer() { self.run(candidate) } else { Ok(outcome) }
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
        // Whatever happened: the service is gone before anything else is said.
        let stopped = service.stop();
        let outcome = outcome?;
        if let Err(error) = stopped {
            return disqualified_by(error);
        }
        Ok(self.checks.judge_log(&log, outcome, is_baseline))
    }
    /// Learns what the service answers as it is. Before the session, so that all of its measurements take as long.
    ///
    /// # Errors
    ///
    /// The service does not start, or its answers cannot be asked for.
    pub fn prepare(&mut self) -> Result<(), TrialError> {
        let baseline = Candidate(vec![0; self.choices.knobs.len()]);
        for _ in 0..STARTS_TO_LEARN_FROM {
            let service = self.start(&baseline).map_err(of_service)?;
            let learnt = self.checks.learn();
            service.stop().map_err(of_service)?;
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
        self.warm_up()?;
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
            // wrk and others end unsuccessfully when nobody answers: that is the service's doing.
            Err(error @ LoadError::Failed { .. }) => {
                let what = error.to_string();
                return Ok(Outcome::Disqualified(Disqualified::FailedRequests { what }));
            }
            Err(error) => return Err(TrialError::Load(error)),
        };
        // After the load: what a cache or a pool has made of the answers counts as well.
        if let (Some(guard), false) = (&self.checks.guard, is_baseline)
            && let Err(reason) = guard.check()
        {
            return Ok(Outcome::Disqualified(reason));
        }
        Ok(judge(&result, cpu, memory))
    }

    /// Code that is compiled and caches that are filled while the service runs are no part of what a request costs.
    fn warm_up(&self) -> Result<(), TrialError> {
        if self.warm_up.is_zero() {
            return Ok(());
        }
        for target in self.load.targets() {
            let Ok(load) = Load::builtin(&target.to_string(), WARM_CONNECTIONS, self.warm_up) else {
                continue;
            };
            // What goes wrong here goes wrong again when it counts.
            let _ = load.run(Instant::now() + 2 * self.warm_up + SETTLE, self.stop);
        }
        if self.stopped() { Err(TrialError::Interrupted) } else { Ok(()) }
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

    /// A line of error that the service does not write as it is.
    fn judge_log(&mut self, log: &Path, outcome: Outcome, is_baseline: bool) -> Outcome {
        let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
        if is_baseline {
            self.errors.learn(&text);
            return outcome;
        }
        match (self.errors.first_new(&text), outcome) {
            (Some(line), Outcome::Measured(_)) => Outcome::Disqualified(Disqualified::LoggedError { line }),
            (_, outcome) => outcome,
        }
    }
}

fn judge(result: &LoadResult, cpu: Duration, memory: u64) -> Outcome {
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
    })
}

fn no_answer() -> Outcome {
    Outcome::Disqualified(Disqualified::FailedRequests { what: "no request was answered".to_owned() })
}

/// A service that does not start or stop may do so because of a candidate; all else is nobody's fault but ours.
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
