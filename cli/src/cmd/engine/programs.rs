//! Accelerated programs, as far as their engines are concerned.

use std::path::Path;

use hasten_telemetry::{
    Engine, EngineCondition, EngineReport, PageError, PageHandle, Process, Scan, Snapshot, boottime, pages_of,
};

use super::EngineError;
use crate::denied;

/// A counter page with the processes that share it.
pub(super) struct Program {
    pub(super) page: PageHandle,
    pub(super) snapshot: Result<Snapshot, PageError>,
}

/// What was found, and how many processes this user may not inspect.
pub(super) struct Found {
    pub(super) programs: Vec<Program>,
    pub(super) denied: usize,
}

/// Everything on this host, or the program that one process belongs to.
pub(super) fn find(pid: Option<u32>) -> Result<Found, EngineError> {
    if !denied::has_proc() {
        return Err(EngineError::NoProc);
    }
    let (pages, denied) = match pid {
        Some(pid) => (pages_of(pid)?, 0),
        None => {
            let scan = Scan::of_host();
            (scan.pages, scan.denied)
        }
    };
    if pages.is_empty() {
        return Err(EngineError::NoneFound { denied });
    }
    let programs = pages.into_iter().map(|page| Program { snapshot: page.read(), page }).collect();
    Ok(Found { programs, denied })
}

impl Program {
    pub(super) fn first_pid(&self) -> u32 {
        self.page.pids().next().unwrap_or(0)
    }

    /// `nginx, process 1234`: with the accelerator if known.
    pub(super) fn title(&self) -> String {
        format!("{}, process {}", self.page.program, self.first_pid())
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref().ok()
    }

    /// The report of each living process that has looked at the engine, by its number here.
    pub(super) fn reports(&self, engine: Engine) -> Vec<(Process, EngineReport)> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        let reports =
            snapshot.reports(engine, |pid| self.page.processes.iter().any(|one| one.namespace_pid == pid));
        let of = |process: &Process| Some((*process, *reports.get(&process.namespace_pid)?));
        self.alive().filter_map(of).collect()
    }

    /// Each engine of the page, according to its living processes.
    pub(super) fn conditions(&self) -> Vec<EngineCondition> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        let is_alive = |pid| self.alive().any(|process| process.namespace_pid == pid);
        EngineCondition::all(snapshot, is_alive, boottime())
    }

    fn alive(&self) -> impl Iterator<Item = &Process> {
        let is_alive = |process: &&Process| Path::new(&format!("/proc/{}", process.pid)).exists();
        self.page.processes.iter().filter(is_alive)
    }
}
