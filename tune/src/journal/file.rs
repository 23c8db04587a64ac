//! The file: a line of JSON for each note, and one for each settled note.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::place;
use crate::service::process::{self, Process};

/// Longer than any session writes.
const MAX_BYTES: u64 = 1 << 20;

/// The journal of this process.
#[derive(Clone, Debug)]
pub struct Journal {
    file: PathBuf,
}

/// An unsettled note.
#[derive(Debug)]
#[must_use = "a note that nobody settles is undone by the next hasten"]
pub struct Entry(u64);

/// The journal's owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) pid: u32,
    pub(super) start: u64,
    /// The boot of the system, with which its changes end.
    pub(super) boot: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Owner(Owner),
    Note { id: u64, change: Change },
    Settled(u64),
}

/// A process's threads share its file.
static WRITING: Mutex<()> = Mutex::new(());
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Journal {
    /// In the folder of this user.
    pub fn open() -> io::Result<Self> {
        Self::within(&place::make()?)
    }

    /// In another folder.
    pub fn within(folder: &Path) -> io::Result<Self> {
        let own = Process::of(process::own()).ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        Ok(Self { file: folder.join(format!("{}-{}.jsonl", own.pid, own.start)) })
    }

    /// Records a change before it is made; it is on disk when this returns.
    pub fn note(&self, change: &Change) -> io::Result<Entry> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut lines = Vec::new();
        if !self.file.exists() {
            lines.push(Line::Owner(Owner::this()?));
        }
        lines.push(Line::Note { id, change: change.clone() });
        self.append(&lines)?;
        Ok(Entry(id))
    }

    /// Records that a change has been undone. The last one removes the file.
    pub fn settle(&self, entry: &Entry) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(&[Line::Settled(entry.0)])?;
        if read(&self.file)?.changes.is_empty() {
            fs::remove_file(&self.file)?;
        }
        Ok(())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    fn append(&self, lines: &[Line]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(line)?;
            text.push('\n');
        }
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(&self.file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // The name must be on disk, too.
        self.file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

impl Owner {
    pub(super) fn this() -> io::Result<Self> {
        let own = Process::of(process::own()).ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        Ok(Self { pid: own.pid, start: own.start, boot: boot() })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.is_of_this_boot() && Process { pid: self.pid, start: self.start }.alive().is_some()
    }

    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }
}

/// The part of a file that is still to be undone.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) owner: Option<Owner>,
    /// In the order in which they were made.
    pub(super) changes: Vec<Change>,
}

/// An unfinished last line belongs to a change that was not made: changes are made once their line is on disk.
pub(super) fn read(path: &Path) -> io::Result<Content> {
    let mut text = String::new();
    let options = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(options).open(path)?;
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    let (mut owner, mut changes) = (None, BTreeMap::new());
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        match serde_json::from_str(line).map_err(io::Error::from)? {
            Line::Owner(found) => owner = Some(found),
            Line::Note { id, change } => {
                changes.insert(id, change);
            }
            Line::Settled(id) => {
                changes.remove(&id);
            }
        }
    }
    Ok(Content { owner, changes: changes.into_values().collect() })
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
