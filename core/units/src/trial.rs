//! A copy of a service that nobody else notices: it sees this system's files, but what it writes is in memory, and it
//! has a network of its own, without a way out.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::copy;
use crate::error::UnitError;
use crate::manager::{Copies, Manager};
use crate::place::{Place, shortage};
use crate::restart::Outcome;
use crate::systemd::Systemd;
use crate::text::{self, Assignment};
use crate::unit::Unit;

/// Where units are that last until the next boot.
pub(crate) const RUNTIME: &str = "/run/systemd/system";
/// A copy that is up for this long has started.
pub(crate) const SETTLED: Duration = Duration::from_secs(2);

/// Why there is no copy; which says nothing about the service.
#[derive(Debug, Error)]
pub enum TrialError {
    #[error("{0}")]
    Objection(String),
    #[error("cannot make a place for it: {0}")]
    Place(String),
    #[error(transparent)]
    Manager(#[from] UnitError),
}

/// The place of copies of one service that systemd starts.
#[derive(Debug)]
pub(crate) struct Sandbox<'a> {
    systemd: &'a Systemd,
    unit: &'a Unit,
    settings: Vec<Assignment>,
    name: String,
    file: PathBuf,
    place: Place,
}

impl<'a> Sandbox<'a> {
    pub(crate) fn new(systemd: &'a Systemd, unit: &'a Unit) -> Result<Self, TrialError> {
        let settings = text::service(&systemd.text(unit)?).map_err(TrialError::Objection)?;
        if let Some(objection) = copy::objection(unit, &settings).or_else(|| shortage(unit)) {
            return Err(TrialError::Objection(objection));
        }
        let place = Place::new().map_err(TrialError::Place)?;
        let name = Place::name() + ".service";
        let file = Path::new(RUNTIME).join(&name);
        Ok(Self { systemd, unit, settings, name, file, place })
    }
}

impl Copies for Sandbox<'_> {
    fn start(&self, variables: &[(String, OsString)]) -> Result<Outcome, TrialError> {
        let text = copy::text(self.unit, &self.settings, &self.place.root(), variables);
        let failed = |error: io::Error| TrialError::Place(error.to_string());
        fs::create_dir_all(RUNTIME).and_then(|()| fs::write(&self.file, text)).map_err(failed)?;
        self.systemd.reload()?;
        Ok(self.systemd.restart_and_watch(&self.name, SETTLED)?)
    }

    fn stop(&self) -> Result<(), UnitError> {
        self.systemd.stop(&self.name)
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = fs::remove_file(&self.file);
        let _ = self.systemd.reload();
    }
}
