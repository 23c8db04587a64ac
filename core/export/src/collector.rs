//! Looks at this host: which pages exist, and what they say.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use hasten_device::counters::Traffic;
use hasten_device::discovery::Discovery;
use hasten_device::health::Health;
use hasten_device::{Device, Root};
use hasten_telemetry::{PageError, PageHandle, Scan, Unseen};

use crate::container;
use crate::recent::Recent;
use crate::tally::Tallies;
use crate::totals::{Programs, Reading, Totals};

/// Each costs a descriptor and reading a megabyte. A host has one for each server and accelerator.
const MOST_PAGES: usize = 256;

/// A host has a handful; with all virtual functions of all devices there may be hundreds.
const MOST_DEVICES: usize = 1024;

/// Finds and reads pages, and remembers what it has read.
#[derive(Debug)]
pub struct Collector {
    root: Root,
    totals: Totals,
    recent: Recent,
    /// By inode. An open page can be read after its last process has ended, so its last counts are not lost.
    open: HashMap<u64, Open>,
    by_container: bool,
    tallies: Tallies,
}

#[derive(Debug)]
struct Open {
    page: PageHandle,
    /// Read while its processes ran; empty if containers are not told apart.
    container: String,
}

/// What one look at the host has shown.
#[derive(Clone, Debug)]
pub struct Look {
    /// When it began.
    pub at: SystemTime,
    pub programs: Programs,
    pub unreadable: Vec<Unreadable>,
    /// Processes that this one may not inspect.
    pub denied: usize,
    /// Processes that have loaded hasten but not needed it yet.
    pub standing_by: usize,
    pub devices: Vec<DeviceState>,
    /// How long it took.
    pub took: Duration,
}

/// A page that exists but is unusable, or could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub program: String,
    pub pid: u32,
    pub reason: Reason,
    pub message: String,
    pub fix: String,
}

/// Why a page is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Version,
    Damaged,
    Io,
    Limit,
    Missing,
}

/// An accelerator device of this host.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceState {
    pub device: Device,
    pub health: Health,
    /// What it has counted since the exporter began, if it counts, and lets us read it.
    pub traffic: Option<Traffic>,
}

impl Collector {
    /// Looks for devices below this root: `/`, except in tests.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: Root::new(root),
            totals: Totals::default(),
            recent: Recent::default(),
            open: HashMap::new(),
            by_container: false,
            tallies: Tallies::default(),
        }
    }

    /// Tells apart programs of one name in different containers.
    #[must_use]
    pub fn by_container(self, by_container: bool) -> Self {
        Self { by_container, ..self }
    }

    /// Looks at every process of this host, and at what the pages say now.
    pub fn look(&mut self) -> Look {
        let (start, at) = (Instant::now(), SystemTime::now());
        let Scan { pages, denied, standing_by, failed } = Scan::of_host();
        let mut unreadable: Vec<_> = failed.iter().map(Unreadable::missing).collect();
        let mut live = Vec::new();
        let mut open = HashMap::new();
        for page in pages {
            if open.len() == MOST_PAGES {
                unreadable.push(Unreadable::surplus(&page));
                continue;
            }
            let container = self.container(&page);
            match page.read() {
                Ok(snapshot) => live.push(Reading::new(&page, snapshot, container.clone())),
                Err(error) => unreadable.push(Unreadable::new(&page, &error)),
            }
            open.insert(page.inode, Open { page, container });
        }
        let ended = self.open.values().filter(|one| !open.contains_key(&one.page.inode));
        let last_looks = ended.filter_map(|Open { page, container }| {
            Some(Reading::new(page, page.read().ok()?, container.clone()))
        });
        self.totals.update(live, &last_looks.collect::<Vec<_>>());
        self.open = open;
        let devices = self.devices();
        let programs = self.with_recent(Instant::now());
        Look { at, programs, unreadable, denied, standing_by, devices, took: start.elapsed() }
    }

    fn container(&self, page: &PageHandle) -> String {
        if !self.by_container {
            return String::new();
        }
        page.pids().find_map(container::of_process).unwrap_or_default()
    }

    fn devices(&mut self) -> Vec<DeviceState> {
        let found = Discovery::read(&self.root).devices.into_iter().take(MOST_DEVICES);
        let state = |device| {
            let mut health = Health::read(&self.root, &device);
            let traffic = self.tallies.read(&self.root, &device, &mut health);
            DeviceState { device, health, traffic }
        };
        found.map(state).collect()
    }

    fn with_recent(&mut self, now: Instant) -> Programs {
        self.recent.record(now, self.totals.programs());
        let mut programs = self.totals.programs().clone();
        for (key, program) in &mut programs {
            program.recent = self.recent.window(now, key, &program.counters);
        }
        programs
    }
}

impl Default for Look {
    fn default() -> Self {
        Self {
            at: SystemTime::UNIX_EPOCH,
            programs: Programs::default(),
            unreadable: Vec::new(),
            denied: 0,
            standing_by: 0,
            devices: Vec::new(),
            took: Duration::ZERO,
        }
    }
}

impl Look {
    /// The number of unusable pages for each possible reason.
    pub(crate) fn unreadable_by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().map(|reason| {
            let count = self.unreadable.iter().filter(|page| page.reason == reason).count();
            (reason, count as u64)
        })
    }
}

impl Unreadable {
    fn new(page: &PageHandle, error: &PageError) -> Self {
        let reason = match error {
            PageError::WrongVersion { .. } => Reason::Version,
            PageError::Io(_) => Reason::Io,
            PageError::TooShort { .. } | PageError::NotAPage | PageError::Corrupt { .. } => Reason::Damaged,
        };
        Self::of(page, reason, error.to_string(), error.fix().to_owned())
    }

    fn surplus(page: &PageHandle) -> Self {
        let message = format!("there are more than {MOST_PAGES} counter pages on this host");
        let fix = "look for a program that is started under hasten again and again, or for somebody who makes pages by hand";
        Self::of(page, Reason::Limit, message, fix.to_owned())
    }

    fn missing(process: &Unseen) -> Self {
        let (program, error) = (process.program.clone(), process.error());
        Self {
            program,
            pid: process.pid,
            reason: Reason::Missing,
            message: error.to_string(),
            fix: error.fix(),
        }
    }

    fn of(page: &PageHandle, reason: Reason, message: String, fix: String) -> Self {
        let pid = page.pids().next().unwrap_or_default();
        Self { program: page.program.clone(), pid, reason, message, fix }
    }
}

impl Reason {
    pub const ALL: [Self; 5] = [Self::Version, Self::Damaged, Self::Io, Self::Limit, Self::Missing];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Damaged => "damaged",
            Self::Io => "io",
            Self::Limit => "limit",
            Self::Missing => "missing",
        }
    }
}
