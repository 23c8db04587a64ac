//! Takes samples of the counter pages of this host.

use std::path::Path;
use std::time::{Duration, Instant};

use hasten_telemetry::{PageHandle, ProcessError, Scan, Snapshot, boottime, pages_of};

use super::state::Sample;

/// Looking at every process of a host is dear; reading known pages is not.
const RESCAN: Duration = Duration::from_secs(3);

pub(super) struct Sampler {
    pages: Vec<PageHandle>,
    denied: usize,
    scanned: Instant,
    /// Only these pages, by inode; empty: all.
    wanted: Vec<u64>,
}

impl Sampler {
    /// Everything on this host, or only what one process belongs to.
    pub(super) fn new(pid: Option<u32>) -> Result<Self, ProcessError> {
        let (pages, denied) = match pid {
            Some(pid) => (pages_of(pid)?, 0),
            None => {
                let scan = Scan::of_host();
                (scan.pages, scan.denied)
            }
        };
        let wanted = pid.map(|_| pages.iter().map(|page| page.inode).collect()).unwrap_or_default();
        Ok(Self { pages, denied, scanned: Instant::now(), wanted })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Processes that this user may not look into.
    pub(super) fn denied(&self) -> usize {
        self.denied
    }

    pub(super) fn sample(&mut self) -> Vec<Sample> {
        // A page without a process is history: its server has ended.
        if self.scanned.elapsed() >= RESCAN || self.pages.iter().any(|page| !is_alive(page)) {
            self.rescan();
        }
        self.pages.iter().map(sample).collect()
    }

    fn rescan(&mut self) {
        let scan = Scan::of_host();
        self.denied = scan.denied;
        self.pages = scan.pages;
        if !self.wanted.is_empty() {
            self.pages.retain(|page| self.wanted.contains(&page.inode));
        }
        self.scanned = Instant::now();
    }
}

fn sample(page: &PageHandle) -> Sample {
    let snapshot = page.read();
    Sample {
        inode: page.inode,
        program: page.program.clone(),
        processes: page.processes.clone(),
        uptime: snapshot.as_ref().map(Snapshot::uptime).unwrap_or_default(),
        boottime: boottime(),
        snapshot,
    }
}

fn is_alive(page: &PageHandle) -> bool {
    page.pids().any(|pid| Path::new(&format!("/proc/{pid}")).exists())
}
