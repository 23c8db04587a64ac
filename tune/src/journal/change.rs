//! One change, and how to undo it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

use super::system::System;
use crate::service::process::{self, Process, Stat};

/// How long an abandoned service may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Change {
    /// A service was started; it must be ended with its group.
    Service { pid: u32, start: u64 },
    /// A kernel setting was written.
    Setting { path: String, before: String, after: String },
    /// A systemd unit was stopped.
    Unit { name: String },
}

/// The outcome of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It was undone; the text says how.
    Done(String),
    /// There was nothing left to undo.
    Already,
    /// Somebody else has changed it since, so it stays.
    Left(String),
}

impl Change {
    /// The service whose first process is `pid`.
    #[must_use]
    pub fn service(pid: u32) -> Option<Self> {
        Process::of(pid).map(|process| Self::Service { pid, start: process.start })
    }

    pub fn undo(&self, system: &System) -> io::Result<Undone> {
        match self {
            Self::Service { pid, start } => Ok(end(Process { pid: *pid, start: *start })),
            Self::Setting { path, before, after } => setting(system, path, before, after),
            Self::Unit { name } => unit(system, name),
        }
    }
}

fn setting(system: &System, path: &str, before: &str, after: &str) -> io::Result<Undone> {
    let now = system.setting(path)?;
    if now == before {
        return Ok(Undone::Already);
    }
    if now != after {
        return Ok(Undone::Left(format!(
            "{path} says {now} by now, which is neither the {after} of hasten nor the {before} from before"
        )));
    }
    system.set(path, before)?;
    Ok(Undone::Done(format!("{path} is {before} again")))
}

fn unit(system: &System, name: &str) -> io::Result<Undone> {
    if system.is_active(name)? {
        return Ok(Undone::Already);
    }
    system.start_unit(name)?;
    Ok(Undone::Done(format!("{name} is started again")))
}

/// Ends the process with its group, if it is still the same one. A service starts in its own group, and leaves it only
/// for another one of its own.
fn end(process: Process) -> Undone {
    let Some(stat) = process.alive() else { return Undone::Already };
    let id = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
    let own = Stat::of(process::own()).map_or(0, |own| own.group);
    let group = id(stat.group).filter(|_| stat.group != own);
    let signal = |signal| match (group, id(process.pid)) {
        (Some(group), _) => kill_process_group(group, signal),
        (None, Some(pid)) => kill_process(pid, signal),
        (None, None) => Ok(()),
    };
    let _ = signal(Signal::TERM);
    let deadline = Instant::now() + PATIENCE;
    while process.alive().is_some() && Instant::now() < deadline {
        thread::sleep(POLL);
    }
    // Also ends what its first process has left in the group.
    let _ = signal(Signal::KILL);
    Undone::Done(format!("process {} of an interrupted `hasten tune` is ended", process.pid))
}
