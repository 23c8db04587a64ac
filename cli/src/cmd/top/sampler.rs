//! Takes samples of the counter pages of this host.

use std::path::Path;
use std::time::{Duration, Instant};

use hasten_telemetry::{Engine, PageHandle, ProcessError, Scan, Snapshot, Unseen, boottime, pages_of};

use super::state::Sample;

/// Looking at every process of a host is expensive; reading known pages is not.
const RESCAN: Duration = Duration::from_secs(3);

pub(super) struct Sampler {
    pages: Vec<PageHandle>,
    missing: Missing,
    scanned: Instant,
    /// Only these pages, by inode; empty: all.
    wanted: Vec<u64>,
}

/// Processes whose counters are unavailable.
#[derive(Default)]
pub(super) struct Missing {
    /// This user may not inspect them.
    pub(super) denied: usize,
    /// They have had nothing to accelerate yet.
    pub(super) standing_by: usize,
    /// They failed to make a page.
    pub(super) failed: Vec<Unseen>,
}

impl Sampler {
    /// Everything on this host, or only the program that one process belongs to.
    pub(super) fn new(pid: Option<u32>) -> Result<Self, ProcessError> {
        let (pages, missing) = match pid {
            Some(pid) => (pages_of(pid)?, Missing::default()),
            None => scan(),
        };
        let wanted = pid.map(|_| pages.iter().map(|page| page.inode).collect()).unwrap_or_default();
        Ok(Self { pages, missing, scanned: Instant::now(), wanted })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(super) fn missing(&self) -> &Missing {
        &self.missing
    }

    pub(super) fn sample(&mut self) -> Vec<Sample> {
        // A page without a process is history: its server has ended.
        if self.scanned.elapsed() >= RESCAN || self.pages.iter().any(|page| !is_alive(page)) {
            self.rescan();
        }
        self.pages.iter().map(sample).collect()
    }

    fn rescan(&mut self) {
        (self.pages, self.missing) = scan();
        if !self.wanted.is_empty() {
            self.pages.retain(|page| self.wanted.contains(&page.inode));
        }
        self.scanned = Instant::now();
    }
}

fn scan() -> (Vec<PageHandle>, Missing) {
    let Scan { pages, denied, standing_by, failed } = Scan::of_host();
    (pages, Missing { denied, standing_by, failed })
}

fn sample(page: &PageHandle) -> Sample {
    let snapshot = page.read();
    Sample {
        inode: page.inode,
        program: page.program.clone(),
        processes: page.processes.clone(),
        uptime: snapshot.as_ref().map(Snapshot::uptime).unwrap_or_default(),
        boottime: boottime(),
        disabled: snapshot.as_ref().map(|snapshot| disabled(page, snapshot)).unwrap_or_default(),
        snapshot,
    }
}

/// Empty if this user may not open the page that says so.
fn disabled(page: &PageHandle, snapshot: &Snapshot) -> Vec<Engine> {
    let Ok(control) = page.control(snapshot) else { return Vec::new() };
    let engines = snapshot.engines.iter().map(|info| info.engine);
    engines.filter(|engine| control.is_disabled(*engine).unwrap_or(false)).collect()
}

fn is_alive(page: &PageHandle) -> bool {
    page.pids().any(|pid| Path::new(&format!("/proc/{pid}")).exists())
}
