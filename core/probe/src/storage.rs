//! What the kernel says about the storage below a directory.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file system of a directory, and the block device below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Medium {
    /// Such as `ext4`.
    pub file_system: Option<String>,
    /// Its name in `/sys/block`, of a partition that of its disk.
    pub device: Option<String>,
    pub model: Option<String>,
    pub is_rotating: Option<bool>,
    /// Whether the device has a cache that a flush empties; `false`: what is written is durable.
    pub has_write_cache: Option<bool>,
    /// Whether single writes can pass the cache (FUA).
    pub writes_through: Option<bool>,
}

/// What becomes of data that was synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Durability {
    /// The kernel flushes what has a cache.
    Flushed(String),
    /// It is lost with the machine, or with its power.
    Lost(String),
    Unknown,
}

/// Models of disks that a cloud takes back with the machine.
const EPHEMERAL: [(&str, &str); 4] = [
    ("Amazon EC2 NVMe Instance Storage", "an instance store of EC2, whose data ends with the instance"),
    ("Microsoft NVMe Direct Disk", "a local disk of Azure, whose data ends with the machine"),
    ("nvme_card", "a local SSD of Google Cloud, whose data ends with the machine"),
    ("EphemeralDisk", "a local disk of the provider, whose data ends with the machine"),
];

impl Medium {
    /// That of a directory, or of the nearest one above it that exists.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self::below(directory, Path::new("/"))
    }

    /// The same, with the kernel's files below another root.
    #[must_use]
    pub fn below(directory: &Path, root: &Path) -> Self {
        let Some(number) = directory.ancestors().find_map(|path| fs::metadata(path).ok()) else {
            return Self::default();
        };
        let number = number.dev();
        let pair = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
        let file_system = mounts.lines().find_map(|line| kind(line, &pair)).map(str::to_owned);
        let below = fs::canonicalize(root.join("sys/dev/block").join(&pair)).ok();
        let disk = below.map(|path| match path.join("partition").exists() {
            true => path.parent().map(Path::to_owned).unwrap_or(path),
            false => path,
        });
        Self { file_system, ..disk.map(|disk| Self::of_disk(&disk)).unwrap_or_default() }
    }

    fn of_disk(disk: &Path) -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(disk.join(name)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        Self {
            file_system: None,
            device: disk.file_name().map(|name| name.to_string_lossy().into_owned()),
            model: read("device/model"),
            is_rotating: read("queue/rotational").map(|word| word == "1"),
            has_write_cache: read("queue/write_cache").map(|word| word == "write back"),
            writes_through: read("queue/fua").map(|word| word == "1"),
        }
    }

    #[must_use]
    pub fn durability(&self) -> Durability {
        let file_system = self.file_system.as_deref().unwrap_or_default();
        if matches!(file_system, "tmpfs" | "ramfs") {
            return Durability::Lost(format!("it is in memory ({file_system})"));
        }
        let device = self.device.as_deref().unwrap_or_default();
        if ["zram", "ram"].iter().any(|name| device.starts_with(name)) {
            return Durability::Lost(format!("{device} is in memory"));
        }
        let model = self.model.as_deref().unwrap_or_default();
        if let Some((_, why)) = EPHEMERAL.iter().find(|(name, _)| model.contains(name)) {
            return Durability::Lost((*why).to_owned());
        }
        let through = if self.writes_through == Some(true) { ", and can write past it (FUA)" } else { "" };
        match self.has_write_cache {
            Some(true) => Durability::Flushed(format!("it has a write cache, which syncs flush{through}")),
            Some(false) => {
                Durability::Flushed("it has no write cache that a failure of power would empty".into())
            }
            None => Durability::Unknown,
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file_system = self.file_system.as_deref().unwrap_or("an unknown file system");
        f.write_str(file_system)?;
        match (&self.device, &self.model) {
            (Some(device), Some(model)) => write!(f, " on {device} ({model})"),
            (Some(device), None) => write!(f, " on {device}"),
            (None, _) => Ok(()),
        }
    }
}

/// The file system in a line of `mountinfo`, if it is that of this device.
fn kind<'line>(line: &'line str, device: &str) -> Option<&'line str> {
    let (mount, system) = line.split_once(" - ")?;
    (mount.split(' ').nth(2)? == device).then(|| system.split(' ').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(change: impl FnOnce(&mut Medium)) -> Durability {
        let mut medium = Medium {
            file_system: Some("ext4".into()),
            device: Some("nvme0n1".into()),
            has_write_cache: Some(true),
            ..Medium::default()
        };
        change(&mut medium);
        medium.durability()
    }

    #[test]
    fn memory_and_disks_of_the_moment_do_not_last() {
        assert!(matches!(medium(|_| ()), Durability::Flushed(how) if how.contains("flush")));
        assert!(matches!(medium(|m| m.file_system = Some("tmpfs".into())), Durability::Lost(_)));
        assert!(matches!(medium(|m| m.device = Some("zram0".into())), Durability::Lost(_)));
        for (model, _) in EPHEMERAL {
            assert!(matches!(medium(|m| m.model = Some(model.into())), Durability::Lost(_)), "{model}");
        }
        assert_eq!(medium(|m| m.has_write_cache = None), Durability::Unknown);
    }

    #[test]
    fn a_line_of_mountinfo_says_the_file_system() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(kind(line, "98:0"), Some("ext3"));
        assert_eq!((kind(line, "8:0"), kind("", "98:0")), (None, None));
    }
}
