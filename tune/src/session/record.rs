//! `session.json`: the measurements, written after each one, and read again by `--resume`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::allotment::Allotment;
use super::{Phase, Trial};
use crate::space::Candidate;

const FORMAT: u32 = 1;

/// The trials of a session in a file, or in memory only.
#[derive(Debug, Default)]
pub struct Record {
    path: Option<PathBuf>,
    /// Everything that determines the course of the session; opaque here.
    setup: Value,
    trials: Vec<Trial>,
    /// The subject's; opaque here.
    knowledge: Value,
    /// Divided once: more time for a resumed session must not change its beginning.
    division: Option<Division>,
    /// How many trials have been replayed.
    replayed: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Division {
    budget: Duration,
    allotment: Allotment,
}

#[derive(Serialize, Deserialize)]
struct Stored<S, T> {
    format: u32,
    setup: S,
    knowledge: Option<S>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    division: Option<Division>,
    trials: T,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot write {}: {error}", .path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot read {}: {error}", .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is no session of `hasten tune`: {what}", .path.display())]
    Format { path: PathBuf, what: String },
    #[error("measurement {number} of the session was of something else than what comes next now")]
    Diverged { number: usize },
}

impl Record {
    /// A new session.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn create(path: &Path, setup: Value) -> Result<Self, RecordError> {
        let record = Self { path: Some(path.to_owned()), setup, ..Self::default() };
        record.save()?;
        Ok(record)
    }

    /// Resumes a session.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be parsed.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let text = fs::read(path).map_err(|error| RecordError::Read { path: path.to_owned(), error })?;
        let format = |what: String| RecordError::Format { path: path.to_owned(), what };
        let stored: Stored<Value, Vec<Trial>> =
            serde_json::from_slice(&text).map_err(|error| format(error.to_string()))?;
        if stored.format != FORMAT {
            return Err(format(format!("its format is {}, and this version reads {FORMAT}", stored.format)));
        }
        let Stored { setup, knowledge, division, trials, .. } = stored;
        let (path, knowledge) = (Some(path.to_owned()), knowledge.unwrap_or_default());
        Ok(Self { path, setup, trials, knowledge, division, replayed: 0 })
    }

    #[must_use]
    pub fn setup(&self) -> &Value {
        &self.setup
    }

    /// The subject's knowledge when the session stopped.
    #[must_use]
    pub fn knowledge(&self) -> &Value {
        &self.knowledge
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    pub(super) fn allotment(&self) -> Option<Allotment> {
        self.division.map(|division| division.allotment)
    }

    /// The budget that was divided.
    pub(super) fn budget(&self) -> Option<Duration> {
        self.division.map(|division| division.budget)
    }

    /// Saved with the next trial.
    pub(super) fn divide(&mut self, budget: Duration, allotment: Allotment) {
        self.division = Some(Division { budget, allotment });
    }

    /// In the state that a resumed session finds.
    #[cfg(test)]
    pub(super) fn again(self) -> Self {
        Self { replayed: 0, ..self }
    }

    /// The next trial to replay.
    fn peek(&self) -> Option<&Trial> {
        self.trials.get(self.replayed)
    }

    /// The earlier measurement at this point, if the session got this far.
    pub(super) fn next(&mut self, phase: Phase, candidate: &Candidate) -> Result<Option<Trial>, RecordError> {
        let Some(trial) = self.peek() else {
            return Ok(None);
        };
        if (trial.phase, &trial.candidate) != (phase, candidate) {
            return Err(RecordError::Diverged { number: self.replayed + 1 });
        }
        let trial = trial.clone();
        self.replayed += 1;
        Ok(Some(trial))
    }

    pub(super) fn keep(&mut self, trial: Trial, knowledge: Value) -> Result<(), RecordError> {
        self.trials.push(trial);
        self.knowledge = knowledge;
        self.replayed = self.trials.len();
        self.save()
    }

    /// Atomic: whatever ends the process, the file is complete.
    fn save(&self) -> Result<(), RecordError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let stored = Stored {
            format: FORMAT,
            setup: &self.setup,
            knowledge: Some(&self.knowledge),
            division: self.division,
            trials: &self.trials,
        };
        let write = || {
            let mut unfinished = path.as_os_str().to_owned();
            unfinished.push(".tmp");
            let mut file = File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec_pretty(&stored)?)?;
            file.write_all(b"\n")?;
            file.sync_data()?;
            fs::rename(&unfinished, path)
        };
        write().map_err(|error| RecordError::Write { path: path.clone(), error })
    }
}
