//! A disk that the kernel slows down for the processes of a control group.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a disk cannot be slowed down.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    #[error("{0} is on no block device whose operations could be limited")]
    NoDevice(PathBuf),
    #[error("there is no control group for block devices: neither {0} nor {1} is there")]
    NoController(&'static str, &'static str),
    #[error("cannot set {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

const VERSION_1: &str = "/sys/fs/cgroup/blkio";
const VERSION_2: &str = "/sys/fs/cgroup/cgroup.subtree_control";

/// A control group with a limit, removed at the end.
#[derive(Debug)]
pub(super) struct Limit {
    group: PathBuf,
}

impl Limit {
    /// So many operations a second, reads and writes each, on the device that the directory is on.
    pub(super) fn new(directory: &Path, operations: u32) -> Result<Self, LimitError> {
        let device = device_of(directory).ok_or_else(|| LimitError::NoDevice(directory.to_owned()))?;
        let name = format!("hasten-bench-{}", std::process::id());
        let write = |path: PathBuf, text: String| {
            fs::write(&path, text).map_err(|source| LimitError::Write { path, source })
        };
        let made = |group: PathBuf| {
            fs::create_dir(&group).map_err(|source| LimitError::Write { path: group.clone(), source })?;
            Ok(Self { group })
        };
        if Path::new(VERSION_1).is_dir() {
            let limit = made(Path::new(VERSION_1).join(name))?;
            for kind in ["read", "write"] {
                let file = limit.group.join(format!("blkio.throttle.{kind}_iops_device"));
                write(file, format!("{device} {operations}"))?;
            }
            return Ok(limit);
        }
        if !Path::new(VERSION_2).is_file() {
            return Err(LimitError::NoController(VERSION_1, VERSION_2));
        }
        write(VERSION_2.into(), "+io".to_owned())?;
        let limit = made(Path::new("/sys/fs/cgroup").join(name))?;
        write(limit.group.join("io.max"), format!("{device} riops={operations} wiops={operations}"))?;
        Ok(limit)
    }

    /// The file that takes the numbers of processes.
    pub(super) fn processes(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // All of its processes have ended; an empty group is no harm.
        let _ = fs::remove_dir(&self.group);
    }
}

/// `8:0`, of the whole disk: limits are not for partitions.
fn device_of(directory: &Path) -> Option<String> {
    let device = rustix::fs::stat(directory).ok()?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let entry = PathBuf::from(format!("/sys/dev/block/{major}:{minor}")).canonicalize().ok()?;
    let disk = if entry.join("partition").exists() { entry.parent()?.to_owned() } else { entry };
    Some(fs::read_to_string(disk.join("dev")).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_cannot_be_slowed_down() {
        assert_eq!(device_of(Path::new("/proc")), None);
        let error = Limit::new(Path::new("/proc"), 100).unwrap_err();
        assert!(error.to_string().contains("/proc is on no block device"), "{error}");
    }
}
