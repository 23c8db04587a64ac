//! What a copy may take: memory of the machine and of the control group, and space on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LiveError;

const MB: u64 = 1 << 20;
/// The copy shares all pages with the service; what the service writes meanwhile exists twice. So much of the resident memory has
/// to be free before, at least so many MB; and so many as long as the copy exists.
const SHARE: u64 = 8;
const FIRST: u64 = 64 * MB;
const LEAST: u64 = 32 * MB;

/// Where memory can run out.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Folders of control groups, from the service's own to the topmost.
    groups: Vec<PathBuf>,
}

impl Memory {
    pub(crate) fn of(pid: i32) -> Self {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let root = Path::new("/sys/fs/cgroup");
        let mut groups = Vec::new();
        let mut folder = root.join(own);
        while folder != root && folder.starts_with(root) {
            groups.push(folder.clone());
            folder.pop();
        }
        Self { groups }
    }

    /// The group of the service itself.
    pub(crate) fn group(&self) -> Option<&Path> {
        self.groups.first().map(PathBuf::as_path)
    }

    #[cfg(test)]
    pub(crate) fn in_group(group: &Path) -> Self {
        Self { groups: vec![group.to_owned()] }
    }

    /// The lowest limit of all groups.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.groups.iter().filter_map(|group| number(group, "memory.max")).min()
    }

    /// Of the group that has least room: its limit, and what is free.
    pub(crate) fn limited(&self) -> Option<(u64, u64)> {
        let groups =
            self.groups.iter().filter_map(|group| Some((number(group, "memory.max")?, free_of(group)?)));
        groups.min_by_key(|(_, free)| *free)
    }

    /// The least that is free, and where.
    fn free(&self) -> (String, u64) {
        let machine = ("the machine".to_owned(), available().unwrap_or(u64::MAX));
        let groups = self.groups.iter().filter_map(|group| {
            Some((format!("the memory limit of control group {}", group.display()), free_of(group)?))
        });
        groups.chain([machine]).min_by_key(|(_, free)| *free).unwrap_or_default()
    }

    pub(crate) fn enough(&self, pid: i32, resident: u64) -> Result<(), LiveError> {
        let needed = needed(resident);
        let (what, free) = self.free();
        if free < needed {
            return Err(LiveError::Short { pid, what, free: free / MB, needed: needed / MB });
        }
        Ok(())
    }

    /// While the copy exists.
    pub(crate) fn still(&self, pid: i32) -> Result<(), LiveError> {
        let (what, free) = self.free();
        if free < LEAST {
            return Err(LiveError::GivenUp { pid, what, least: LEAST / MB });
        }
        Ok(())
    }
}

/// What has to be free for a copy.
pub(crate) fn needed(resident: u64) -> u64 {
    (resident / SHARE).max(FIRST)
}

fn number(group: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
}

fn free_of(group: &Path) -> Option<u64> {
    // Pages of files go first.
    let files = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let files = files.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
    let used = number(group, "memory.current")?.saturating_sub(files.unwrap_or(0));
    Some(number(group, "memory.max")?.saturating_sub(used))
}

/// The memory that is a process's own.
pub(crate) fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    field("RssAnon:") + field("VmSwap:")
}

fn available() -> Option<u64> {
    meminfo("MemAvailable:")
}

/// All memory of the machine.
pub(crate) fn total() -> Option<u64> {
    meminfo("MemTotal:")
}

fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// A packed core file is a small part of the memory, in most cases; of a heap of random bytes it is not.
pub(crate) fn disk(pid: i32, out: &Path, resident: u64) -> Result<(), LiveError> {
    let folder = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let Ok(system) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < resident {
        let what = folder.display().to_string();
        return Err(LiveError::Short { pid, what, free: free / MB, needed: resident / MB });
    }
    Ok(())
}
