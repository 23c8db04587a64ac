//! What this host starts its services with, whichever it is.

use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::drop_in::DropIn;
use crate::error::UnitError;
use crate::openrc::{self, OpenRc};
use crate::restart::{Outcome, fall};
use crate::systemd::{self, Systemd};
use crate::trial::TrialError;
use crate::unit::Unit;

/// A manager of services.
pub trait Manager {
    /// The service of that name.
    fn unit(&self, name: &str) -> Result<Unit, UnitError>;

    /// Every service that it has loaded, and those with a drop-in of ours.
    fn services(&self) -> Result<Vec<Unit>, UnitError>;

    /// The services with a drop-in of ours, whether or not they still exist.
    fn enabled(&self) -> Vec<String>;

    /// The drop-in of a service, which may be gone.
    fn drop_in(&self, unit: &str) -> DropIn;

    /// Has it look at the drop-ins again.
    fn reload(&self) -> Result<(), UnitError>;

    /// Restarts it, and waits until the manager says that it is up.
    fn restart(&self, unit: &str) -> Result<(), UnitError>;

    /// A line in the log of a service.
    fn note(&self, unit: &str, line: &str);

    /// The last lines that it wrote to the log; empty if they cannot be had.
    fn last_words(&self, unit: &str, lines: usize) -> Vec<String>;

    /// A place for copies of the service. Refuses where one could reach what is not its own.
    fn copies<'a>(&'a self, unit: &'a Unit) -> Result<Box<dyn Copies + 'a>, TrialError>;

    /// The commands that people type.
    fn phrases(&self) -> &'static Phrases;

    /// Restarts a service and watches it for a while.
    fn restart_and_watch(&self, name: &str, while_: Duration) -> Result<Outcome, UnitError> {
        match self.restart(name) {
            Ok(()) => self.watch(name, while_),
            Err(UnitError::Refused { said, .. }) => Ok(self.down(name, said)),
            Err(error) => Err(error),
        }
    }

    fn watch(&self, name: &str, while_: Duration) -> Result<Outcome, UnitError> {
        const PAUSE: Duration = Duration::from_millis(200);
        let first = self.unit(name)?;
        let start = Instant::now();
        loop {
            let unit = self.unit(name)?;
            if let Some(why) = fall(&first, &unit) {
                return Ok(self.down(name, why));
            }
            if start.elapsed() >= while_ {
                return Ok(Outcome::Up(Box::new(unit)));
            }
            thread::sleep(PAUSE);
        }
    }

    fn down(&self, name: &str, why: String) -> Outcome {
        const LINES: usize = 5;
        Outcome::Down { why, last_words: self.last_words(name, LINES) }
    }
}

/// A place for copies of one service. Dropping it removes everything.
pub trait Copies {
    /// Starts a copy with these variables, and watches it for a while.
    fn start(&self, variables: &[(String, OsString)]) -> Result<Outcome, TrialError>;

    fn stop(&self) -> Result<(), UnitError>;
}

/// What people type; `{}` is the name of a service.
#[derive(Debug)]
pub struct Phrases {
    pub(crate) restart: &'static str,
    pub(crate) show: &'static str,
    pub(crate) log: &'static str,
}

impl Phrases {
    /// `systemctl restart nginx`
    #[must_use]
    pub fn restart(&self, name: &str) -> String {
        self.restart.replace("{}", name)
    }

    /// What prints its settings.
    #[must_use]
    pub fn show(&self, name: &str) -> String {
        self.show.replace("{}", name)
    }

    /// What prints what it wrote.
    #[must_use]
    pub fn log(&self, name: &str) -> String {
        self.log.replace("{}", name)
    }
}

/// The one that manages this host.
pub fn of_host() -> Result<Box<dyn Manager>, UnitError> {
    if Path::new(openrc::BOOTED).exists() && !Path::new(systemd::BOOTED).is_dir() {
        return Ok(Box::new(OpenRc::of_host()));
    }
    Ok(Box::new(Systemd::of_host()?))
}
