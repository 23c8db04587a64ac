//! Accelerated programs, as far as their engines are concerned.

use std::path::Path;

use hasten_telemetry::{
    BreakerState, Engine, EngineReport, PageError, PageHandle, Process, Scan, Snapshot, pages_of,
};

use super::EngineError;

/// A counter page with the processes that share it.
pub(super) struct Program {
    pub(super) page: PageHandle,
    pub(super) snapshot: Result<Snapshot, PageError>,
}

/// What was found, and how many processes this user may not look into.
pub(super) struct Found {
    pub(super) programs: Vec<Program>,
    pub(super) denied: usize,
}

/// Everything on this host, or what one process belongs to.
pub(super) fn find(pid: Option<u32>) -> Result<Found, EngineError> {
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

    /// `nginx, process 1234`: with an accelerator where it is known.
    pub(super) fn title(&self) -> String {
        format!("{}, process {}", self.page.program, self.first_pid())
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref().ok()
    }

    /// What each living process that has looked at the engine says, by its number here.
    pub(super) fn reports(&self, engine: Engine) -> Vec<(Process, EngineReport)> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        let reports =
            snapshot.reports(engine, |pid| self.page.processes.iter().any(|one| one.namespace_pid == pid));
        let of = |process: &Process| {
            let is_alive = Path::new(&format!("/proc/{}", process.pid)).exists();
            Some((*process, *reports.get(&process.namespace_pid)?)).filter(|_| is_alive)
        };
        self.page.processes.iter().filter_map(of).collect()
    }

    /// The same without the processes.
    pub(super) fn conditions(&self, engine: Engine) -> Vec<EngineReport> {
        self.reports(engine).into_iter().map(|(_, report)| report).collect()
    }
}

/// The state of an engine over all processes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) struct Condition {
    /// What speaks for all; `None` where no process has looked at the engine yet.
    pub(in crate::cmd) gravest: Option<EngineReport>,
    /// How many processes are in that state, of how many that said anything.
    pub(in crate::cmd) processes: (usize, usize),
}

impl Condition {
    pub(in crate::cmd) fn of(reports: &[EngineReport]) -> Self {
        let gravest = EngineReport::gravest(reports);
        let same = |state: BreakerState| reports.iter().filter(|report| report.state == state).count();
        Self { gravest, processes: (gravest.map_or(0, |report| same(report.state)), reports.len()) }
    }
}
