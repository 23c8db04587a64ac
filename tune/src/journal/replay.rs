//! Undoes the changes left by a hasten that is gone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::change::{Change, Undone};
use super::file;
use super::place;
use super::system::System;

/// The outcome for one change of a journal.
#[derive(Debug)]
pub enum Replayed {
    Undone(String),
    /// Somebody else has changed it; it stays as it is.
    Left(String),
    /// It could not be undone; the journal is kept.
    Failed {
        journal: PathBuf,
        why: String,
    },
}

/// Undoes what vanished processes have left. If there is nothing, this costs a look at a few folders that do not exist.
pub fn replay() -> Vec<Replayed> {
    let folders = place::folders().into_iter().filter(|folder| folder.exists() && place::is_private(folder));
    folders.flat_map(|folder| replay_within(&folder, &System::default())).collect()
}

/// The same for the journals of one folder.
pub fn replay_within(folder: &Path, system: &System) -> Vec<Replayed> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let journals =
        entries.map(|entry| entry.path()).filter(|path| path.extension() == Some("jsonl".as_ref()));
    journals.flat_map(|journal| undo(&journal, system)).collect()
}

fn undo(journal: &Path, system: &System) -> Vec<Replayed> {
    let failed =
        |error: io::Error| vec![Replayed::Failed { journal: journal.to_owned(), why: error.to_string() }];
    // Held until the end: another hasten that starts now leaves the journal to this one.
    let Some(_lock) = Lock::of(journal) else { return Vec::new() };
    let content = match file::read(journal) {
        Ok(content) => content,
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return failed(error),
    };
    let Some(owner) = content.owner else { return remove(journal, Vec::new()) };
    if owner.is_alive() {
        return Vec::new();
    }
    // After a reboot the changes no longer exist.
    let changes = if owner.is_of_this_boot() { content.changes } else { Vec::new() };
    let mut replayed = Vec::new();
    for change in changes.iter().rev() {
        match change.undo(system) {
            Ok(Undone::Done(what)) => replayed.push(Replayed::Undone(what)),
            Ok(Undone::Already) => {}
            Ok(Undone::Left(what)) => replayed.push(Replayed::Left(what)),
            Err(error) => return with_failure(replayed, journal, change, &error),
        }
    }
    remove(journal, replayed)
}

/// A journal locked against other replays.
struct Lock(File);

impl Lock {
    fn of(journal: &Path) -> Option<Self> {
        let file = File::open(journal).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self(file))
    }
}

impl Drop for Lock {
    /// Closing the file is not enough: a child just forked by another thread keeps it open until it executes its
    /// program.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Earlier entries of the journal wait for the next try: changes are undone in reverse order or not at all.
fn with_failure(
    mut replayed: Vec<Replayed>,
    journal: &Path,
    change: &Change,
    error: &io::Error,
) -> Vec<Replayed> {
    let what = match change {
        Change::Service { pid, .. } => format!("process {pid}"),
        Change::Setting { path, before, .. } => format!("{path}, which was {before}"),
        Change::Unit { name } => format!("{name}, which was active"),
    };
    replayed.push(Replayed::Failed { journal: journal.to_owned(), why: format!("{what}: {error}") });
    replayed
}

fn remove(journal: &Path, mut replayed: Vec<Replayed>) -> Vec<Replayed> {
    if let Err(error) = fs::remove_file(journal) {
        replayed.push(Replayed::Failed { journal: journal.to_owned(), why: error.to_string() });
    }
    replayed
}

impl std::fmt::Display for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Undone(what) => write!(f, "{what}"),
            Self::Left(what) => write!(f, "left as it is: {what}"),
            Self::Failed { journal, why } => {
                write!(f, "cannot undo what {} says: {why}", journal.display())
            }
        }
    }
}
