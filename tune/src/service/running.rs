//! A running service: started, waited for, measured, and stopped when dropped.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, set_child_subreaper};

use super::cost::CpuTimes;
use super::error::ServiceError;
use super::launch::Launch;
use super::memory;
use super::ready::{self, Look, Readiness};
use super::tree::Tree;
use crate::journal::{Change, Entry, Held, Journal, System};
use crate::keeper;

const POLL: Duration = Duration::from_millis(10);
/// How often memory is sampled; also how soon a process must be seen in the tree to be recognised.
const SAMPLE: Duration = Duration::from_millis(50);
/// How much of the log an error quotes.
const QUOTED: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start until it is ready.
    pub start: Duration,
    /// From the request to end until it is killed.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { start: Duration::from_secs(30), stop: Duration::from_secs(10) }
    }
}

/// How a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// On request.
    Politely,
    /// It had to be killed.
    Killed,
}

/// A service that is ready. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Service {
    name: String,
    child: Child,
    /// Set once the first process has ended: many servers continue in the background.
    status: Option<ExitStatus>,
    tree: Arc<Mutex<Tree>>,
    sampler: Sampler,
    address: Option<SocketAddr>,
    log: PathBuf,
    stop_limit: Duration,
    /// Lets the next hasten end what this one could not.
    entries: Vec<Entry>,
    journal: Option<Journal>,
    /// Kernel settings, in the order in which they were made.
    held: Vec<Held>,
    over: bool,
}

impl Service {
    /// Starts it and waits until it is ready; all its output goes to `log`.
    pub fn start(
        launch: &Launch,
        readiness: &Readiness,
        log: &Path,
        limits: Limits,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ServiceError> {
        readiness.check_free()?;
        let held = hold(launch)?;
        adopt_orphans();
        let before = Tree::children_of_this_process();
        let child = launch.spawn(log)?;
        keeper::watch(child.id());
        let tree = Arc::new(Mutex::new(Tree::new(child.id(), before)));
        let mut service = Self {
            name: launch.name(),
            entries: Vec::new(),
            journal: launch.journal.clone(),
            child,
            status: None,
            sampler: Sampler::start(Arc::clone(&tree)),
            tree,
            address: None,
            held,
            log: log.to_owned(),
            stop_limit: limits.stop,
            over: false,
        };
        service.note(&[service.child.id()]);
        service.address = service.wait_until_ready(readiness, limits.start, stopped)?;
        if service.status.is_some() {
            // It is in the background, where the first process no longer leads to it.
            service.note(&service.pids());
        }
        Ok(service)
    }

    /// Its address, if known.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    #[must_use]
    pub fn cpu_times(&self) -> CpuTimes {
        let mut tree = self.tree();
        let (threads, ticks) = tree.cpu_times();
        CpuTimes { threads, ticks, processes: tree.processes().len() }
    }

    /// The peak memory of its processes so far, in bytes; shared memory is counted once.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let pids = self.pids();
        let peak = self.sampler.peak.load(Ordering::Relaxed);
        memory::peak(&pids, peak)
    }

    /// Everything it has written to standard output and error.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its present processes.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.tree().processes().into_iter().map(|process| process.pid).collect()
    }

    /// How it ended, if it did: the first process unsuccessfully, or all of them.
    pub fn exited(&mut self) -> Option<String> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        let status = self.status?;
        let rest = !self.pids().is_empty();
        (!status.success() || !rest).then(|| status.to_string())
    }

    /// Ends it as its owner would, waits until all of it is gone, and checks that its port is free again.
    pub fn stop(mut self) -> Result<Stopped, ServiceError> {
        self.end()
    }

    /// Records which processes the next hasten must end, should this one be killed.
    fn note(&mut self, pids: &[u32]) {
        let Some(journal) = &self.journal else { return };
        let changes = pids.iter().filter_map(|pid| Change::service(*pid));
        self.entries.extend(changes.filter_map(|change| journal.note(&change).ok()));
    }

    fn wait_until_ready(
        &mut self,
        readiness: &Readiness,
        limit: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<SocketAddr>, ServiceError> {
        let deadline = Instant::now() + limit;
        loop {
            let look = readiness.look(&self.pids(), deadline);
            // After the look: the answer may have come from another process while this one ended.
            if let Some(status) = self.exited() {
                return Err(ServiceError::Ended {
                    program: self.name.clone(),
                    status,
                    log: self.quoted_log(),
                });
            }
            let what = match look {
                Look::Ready(address) => return Ok(address),
                Look::NotYet(what) => what,
            };
            if stopped() {
                return Err(ServiceError::Stopped);
            }
            if Instant::now() > deadline {
                let (program, log) = (self.name.clone(), self.quoted_log());
                return Err(ServiceError::NotReady { program, seconds: limit.as_secs(), what, log });
            }
            thread::sleep(POLL);
        }
    }

    fn end(&mut self) -> Result<Stopped, ServiceError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(Stopped::Politely);
        }
        self.sampler.stop();
        let stopped = if self.ends_politely() { Stopped::Politely } else { self.kill()? };
        let _ = self.child.wait();
        for entry in self.entries.drain(..) {
            // A note that stays refers to a process that is gone, which the next reader notices.
            let _ = self.journal.as_ref().map(|journal| journal.settle(&entry));
        }
        while let Some(held) = self.held.pop() {
            // If this fails, its note stays for the next hasten.
            let _ = held.undo();
        }
        match self.address.filter(|address| ready::accepts(*address)) {
            Some(address) => Err(ServiceError::PortKept { program: self.name.clone(), address }),
            None => Ok(stopped),
        }
    }

    /// Asks the first process to end, and then whatever it leaves behind.
    fn ends_politely(&mut self) -> bool {
        let deadline = Instant::now() + self.stop_limit;
        // A launcher that does not forward the signal gets half of the time before the others are asked directly.
        let ask_all = Instant::now() + self.stop_limit / 2;
        self.tree().signal_root(Signal::TERM);
        let mut asked_all = false;
        loop {
            let first_is_gone = !matches!(self.child.try_wait(), Ok(None));
            if self.tree().processes().is_empty() && first_is_gone {
                return true;
            }
            if !asked_all && (first_is_gone || Instant::now() > ask_all) {
                self.tree().signal_all(Signal::TERM);
                asked_all = true;
            }
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(POLL);
        }
    }

    fn kill(&mut self) -> Result<Stopped, ServiceError> {
        let deadline = Instant::now() + self.stop_limit;
        loop {
            // Repeatedly, because processes that are just starting are not seen yet.
            self.tree().signal_all(Signal::KILL);
            let _ = self.child.try_wait();
            let left = self.tree().processes().len();
            if left == 0 {
                return Ok(Stopped::Killed);
            }
            if Instant::now() > deadline {
                return Err(ServiceError::Immortal { program: self.name.clone(), left });
            }
            thread::sleep(POLL);
        }
    }

    fn tree(&self) -> std::sync::MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the log, for an error.
    fn quoted_log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&log[log.len().saturating_sub(QUOTED)..]).trim().to_owned();
        if end.is_empty() { String::new() } else { format!("\n{end}") }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Once per process: what a service moves to the background becomes our child.
fn adopt_orphans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without it a server in the background is lost; its log and its port will show that.
        let _ = set_child_subreaper(Some(getpid()));
    });
}

/// Writes the candidate's kernel settings; each is restored when dropped.
fn hold(launch: &Launch) -> Result<Vec<Held>, ServiceError> {
    let failed = |path: &str, source| ServiceError::System { path: path.to_owned(), source };
    let mut held = Vec::new();
    for (path, value) in &launch.system {
        let journal = launch
            .journal
            .as_ref()
            .ok_or_else(|| failed(path, std::io::Error::other("there is no journal")))?;
        held.push(
            Held::set(&System::default(), journal, path, value).map_err(|source| failed(path, source))?,
        );
    }
    Ok(held)
}

/// Samples memory, and tells the keeper about every new process.
#[derive(Debug)]
struct Sampler {
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    fn start(tree: Arc<Mutex<Tree>>) -> Self {
        let (peak, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (highest, stopped) = (Arc::clone(&peak), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut reported = BTreeSet::new();
            while !stopped.load(Ordering::Relaxed) {
                let processes = tree.lock().unwrap_or_else(PoisonError::into_inner).processes();
                processes
                    .iter()
                    .filter(|process| !reported.contains(*process))
                    .copied()
                    .for_each(keeper::watch_process);
                reported = processes.iter().copied().collect();
                highest.fetch_max(memory::resident(&processes), Ordering::Relaxed);
                thread::park_timeout(SAMPLE);
            }
        });
        Self { peak, stop, thread: Some(thread) }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}
