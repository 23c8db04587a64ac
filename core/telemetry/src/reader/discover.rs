//! Finds the counter pages of this host.

use super::proc::{self, Absence, Mapping};
use super::snapshot::page_size;
use super::{PageError, ProcessError, Snapshot};
use crate::HEADER_SIZE;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An open page. It can be read even after the processes have ended.
#[derive(Debug)]
pub struct PageHandle {
    /// Identifies a page on this host; processes that share the page share
    /// this.
    pub inode: u64,
    /// The executable of the first process, without its directory.
    pub program: String,
    /// The processes that share the page, by ascending number; the first is
    /// usually the oldest.
    pub processes: Vec<Process>,
    file: File,
}

/// A process that shares a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number on this host.
    pub pid: u32,
    /// Its number inside its own PID namespace: the one it writes to the page.
    pub namespace_pid: u32,
}

/// A process that works without a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub pid: u32,
    pub program: String,
}

/// The result of examining every process.
#[derive(Debug, Default)]
pub struct Scan {
    pub pages: Vec<PageHandle>,
    /// Processes that this user may not inspect.
    pub denied: usize,
    /// How many have loaded a library but have had nothing to count yet.
    pub standing_by: usize,
    /// Those that failed to create a page.
    pub failed: Vec<Unseen>,
}

/// The counter pages of all processes that this user may inspect.
pub fn discover() -> Vec<PageHandle> {
    Scan::of_host().pages
}

/// The pages that one process shares, one for each accelerator in it, with all
/// the processes they are shared with. If a process has the libraries but has
/// done no work itself, such as a master that executed itself again after
/// forking its workers: the pages of the processes it started.
pub fn pages_of(pid: u32) -> Result<Vec<PageHandle>, ProcessError> {
    let mapped = proc::mappings(pid).map_err(|error| ProcessError::from_io(pid, error))?;
    if mapped.pages.is_empty() {
        return pages_of_started(pid, mapped.absence());
    }
    // Also distinguishes a process that may not be opened from one that has
    // ended.
    for page in &mapped.pages {
        open(pid, page).map_err(|error| ProcessError::from_io(pid, error))?;
    }
    let ours = |page: &PageHandle| mapped.pages.iter().any(|mapping| mapping.inode == page.inode);
    Ok(Scan::of_host().pages.into_iter().filter(ours).collect())
}

fn pages_of_started(pid: u32, absence: Absence) -> Result<Vec<PageHandle>, ProcessError> {
    let program = proc::program(pid);
    if absence == Absence::Foreign {
        return Err(ProcessError::NotAccelerated { pid, program });
    }
    let started = |page: &PageHandle| page.pids().any(|other| proc::is_descendant(other, pid));
    let pages: Vec<_> = Scan::of_host().pages.into_iter().filter(started).collect();
    match (pages.is_empty(), absence) {
        (false, _) => Ok(pages),
        (true, Absence::Failed) => Err(ProcessError::NoPage { pid, program }),
        (true, _) => Err(ProcessError::StandBy { pid, program }),
    }
}

impl Scan {
    pub fn of_host() -> Self {
        let mut scan = Self::default();
        let mut sharers = BTreeMap::<u64, Vec<(u32, Mapping)>>::new();
        for pid in proc::pids() {
            match proc::mappings(pid) {
                Ok(found) if found.pages.is_empty() => scan.note_absence(pid, found.absence()),
                Ok(found) => found
                    .pages
                    .iter()
                    .for_each(|page| sharers.entry(page.inode).or_default().push((pid, *page))),
                Err(error) => scan.denied += usize::from(error.kind() == io::ErrorKind::PermissionDenied),
            }
        }
        let mut closed = BTreeSet::new();
        for sharers in sharers.into_values() {
            match PageHandle::open(&sharers) {
                Some(page) => scan.pages.push(page),
                // Processes that have ended meanwhile were not denied.
                None => closed.extend(sharers.iter().map(|(pid, _)| *pid).filter(|pid| proc::exists(*pid))),
            }
        }
        scan.denied += closed.len();
        scan.pages.sort_by_key(|page| page.processes.first().map(|process| process.pid));
        scan
    }

    fn note_absence(&mut self, pid: u32, absence: Absence) {
        match absence {
            Absence::Foreign => {}
            Absence::StandBy => self.standing_by += 1,
            Absence::Failed => self.failed.push(Unseen { pid, program: proc::program(pid) }),
        }
    }
}

impl Unseen {
    /// The error that describes it.
    pub fn error(&self) -> ProcessError {
        ProcessError::NoPage { pid: self.pid, program: self.program.clone() }
    }
}

impl PageHandle {
    /// A validated copy of the page as it is now.
    pub fn read(&self) -> Result<Snapshot, PageError> {
        let mut bytes = vec![0; HEADER_SIZE];
        let length = self.read_at_most(&mut bytes, 0)?;
        bytes.truncate(length);
        bytes.resize(page_size(&bytes)?, 0);
        let rest = self.read_at_most(&mut bytes[length..], length as u64)?;
        bytes.truncate(length + rest);
        Snapshot::parse(&bytes)
    }

    /// The numbers of the processes that share the page.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.iter().map(|process| process.pid)
    }

    fn open(sharers: &[(u32, Mapping)]) -> Option<Self> {
        let file = sharers.iter().find_map(|(pid, page)| open(*pid, page).ok())?;
        let (first, page) = sharers.first()?;
        let mut pids: Vec<u32> = sharers.iter().map(|(pid, _)| *pid).collect();
        pids.dedup();
        let process = |pid| Process { pid, namespace_pid: proc::namespace_pid(pid) };
        let processes = pids.into_iter().map(process).collect();
        Some(Self { inode: page.inode, program: proc::program(*first), processes, file })
    }

    fn read_at_most(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

fn open(pid: u32, page: &Mapping) -> io::Result<File> {
    open_one(pid, page, proc::PAGE_LINK, false)
}

/// `map_files` works even if the server has closed the descriptor, but needs
/// privileges; `fd` works for the server's own user.
pub(super) fn open_one(pid: u32, page: &Mapping, link: &[u8], write: bool) -> io::Result<File> {
    let mapped = format!("/proc/{pid}/map_files/{:x}-{:x}", page.start, page.end);
    let first = match open_checked(Path::new(&mapped), page.inode, write) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let descriptors: Vec<PathBuf> = proc::descriptors(pid, link)?;
    descriptors.iter().find_map(|path| open_checked(path, page.inode, write).ok()).ok_or(first)
}

/// Opens the file only once it is known to be the page: opening an arbitrary
/// file of a hostile process could block or have side effects.
fn open_checked(path: &Path, inode: u64, write: bool) -> io::Result<File> {
    let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let metadata = handle.metadata()?;
    if !metadata.is_file() || metadata.ino() != inode {
        return Err(io::ErrorKind::NotFound.into());
    }
    OpenOptions::new().read(true).write(write).open(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}
