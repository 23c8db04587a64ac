//! A change that is undone when it is dropped.

use std::io;

use super::change::{Change, Undone};
use super::file::{Entry, Journal};
use super::system::System;

#[derive(Debug)]
pub struct Held {
    system: System,
    journal: Journal,
    /// `None` once undone.
    noted: Option<(Change, Entry)>,
}

impl Held {
    /// Writes a kernel setting.
    pub fn set(system: &System, journal: &Journal, path: &str, value: &str) -> io::Result<Self> {
        let before = system.setting(path)?;
        let change = Change::Setting { path: path.to_owned(), before, after: value.to_owned() };
        Self::make(system, journal, change, || system.set(path, value))
    }

    /// Stops a systemd unit.
    pub fn stop(system: &System, journal: &Journal, unit: &str) -> io::Result<Self> {
        let change = Change::Unit { name: unit.to_owned() };
        Self::make(system, journal, change, || system.stop_unit(unit))
    }

    /// Undoes it, and reports the outcome.
    pub fn undo(mut self) -> io::Result<Undone> {
        self.undone()
    }

    fn make(
        system: &System,
        journal: &Journal,
        change: Change,
        make: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        let entry = journal.note(&change)?;
        let held = Self { system: system.clone(), journal: journal.clone(), noted: Some((change, entry)) };
        // If this fails, `held` is dropped, and finds nothing to undo or half a change.
        make().map(|()| held)
    }

    fn undone(&mut self) -> io::Result<Undone> {
        let Some((change, entry)) = self.noted.take() else { return Ok(Undone::Already) };
        // If this fails, the note stays for the next hasten.
        let undone = change.undo(&self.system)?;
        self.journal.settle(&entry)?;
        Ok(undone)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.undone();
    }
}
