//! A place for copies of a service: this system's files, and whatever is written there is in memory.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::trial::RUNTIME;
use crate::unit::Unit;

/// Where they are, and how they are named: by the process that makes them.
const RUN: &str = "/run";
const NAME: &str = "hasten-trial-";

/// Dropping it removes everything.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Result<Self, String> {
        // A copy without a network of its own would be in the host's.
        call("unshare", &["--net", "true"])?;
        sweep();
        let place = Self { folder: Path::new(RUN).join(Self::name()) };
        place.mount()?;
        Ok(place)
    }

    /// That of this process's place.
    pub(crate) fn name() -> String {
        format!("{NAME}{}", std::process::id())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    fn mount(&self) -> Result<(), String> {
        let said = |error: io::Error| error.to_string();
        let mounts = writable(&fs::read_to_string("/proc/self/mountinfo").map_err(said)?);
        fs::create_dir(&self.folder).map_err(said)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).map_err(said)?;
        let folder = self.folder.display().to_string();
        call("mount", &["-t", "tmpfs", "-o", "mode=755,size=256m", "tmpfs", &folder])?;
        fs::create_dir(self.root()).map_err(said)?;
        self.overlay(0, Path::new("/"))?;
        for (at, point) in mounts.iter().enumerate() {
            // One that cannot be had is missing in the copy; the host's own is never in there.
            let _ = self.overlay(at + 1, point);
        }
        forget_processes(&self.root().join("run"));
        Ok(())
    }

    /// A folder of this system as the copy may have it.
    fn overlay(&self, number: usize, point: &Path) -> Result<(), String> {
        let part = |kind: &str| self.folder.join(format!("{kind}-{number}"));
        let [upper, work] = ["upper", "work"].map(part);
        for folder in [&upper, &work] {
            fs::create_dir(folder).map_err(|error| error.to_string())?;
        }
        let options =
            format!("lowerdir={},upperdir={},workdir={}", point.display(), upper.display(), work.display());
        let target = self.root().join(point.strip_prefix("/").unwrap_or(point));
        call("mount", &["-t", "overlay", "-o", &options, "overlay", &target.display().to_string()])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes a place, and the unit of its copy. What fails here is left in memory until the next boot, and does nothing.
fn remove(folder: &Path) {
    let name = folder.file_name().unwrap_or_default().display();
    let _ = fs::remove_file(Path::new(RUNTIME).join(format!("{name}.service")));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split_whitespace().nth(4)).map(Path::new);
    let mut points: Vec<_> = points.filter(|point| point.starts_with(folder)).collect();
    // The last first: one is on another.
    points.reverse();
    for point in points {
        let _ = call("umount", &["-l", &point.display().to_string()]);
    }
    let _ = fs::remove_dir(folder);
}

/// Removes the places of trials that were killed. Their copies end by themselves.
fn sweep() {
    let entries = fs::read_dir(RUN).into_iter().flatten().flatten();
    let is_left = |name: &str| {
        name.strip_prefix(NAME).is_some_and(|pid| !Path::new(&format!("/proc/{pid}/comm")).exists())
    };
    let left = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    left.for_each(|entry| remove(&entry.path()));
}

/// A copy needs as much as the service, and must not take it from others.
pub(crate) fn shortage(unit: &Unit) -> Option<String> {
    const PART: u64 = 2;
    let needed = unit.properties.number("MemoryCurrent")?;
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let available = line.split_whitespace().next()?.parse::<u64>().ok()? << 10;
    (needed > available / PART)
        .then(|| format!("it uses {} MiB, and {} MiB are available", needed >> 20, available >> 20))
}

/// A service that finds the number of a running process would signal it.
fn forget_processes(run: &Path) {
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries(run).filter(|path| path.is_dir() && !path.is_symlink());
    for folder in folders.chain([run.to_owned()]).collect::<Vec<_>>() {
        entries(&folder).filter(|path| path.extension() == Some("pid".as_ref())).for_each(|file| {
            let _ = fs::remove_file(file);
        });
    }
}

/// The mount points of file systems that programs write to, besides the root.
fn writable(mountinfo: &str) -> Vec<PathBuf> {
    const KINDS: [&str; 8] = ["bcachefs", "btrfs", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"];
    let point = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split_whitespace().nth(4)?;
        let is_own = ["/dev", "/proc", "/sys"].iter().any(|own| Path::new(point).starts_with(own));
        let is_trial = point.strip_prefix("/run/").is_some_and(|name| name.starts_with(NAME));
        // Characters that a mount's options cannot carry are escaped there, or separate them.
        let is_plain = !point.contains(['\\', ',', ':']);
        let is_kind = KINDS.contains(&kind.split_whitespace().next()?);
        (is_kind && is_plain && !is_own && !is_trial && point != "/").then(|| PathBuf::from(point))
    };
    mountinfo.lines().filter_map(point).collect()
}

/// A command that must succeed; what it said otherwise.
pub(crate) fn call(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().lines().next().unwrap_or_default().to_owned();
    Err(format!("`{program} {}`: {said}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_programs_write_to_are_found() {
        let table = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
23 21 0:5 / /dev rw - devtmpfs udev rw
24 23 0:21 / /dev/shm rw - tmpfs tmpfs rw
25 21 0:22 / /run rw - tmpfs tmpfs rw
26 21 8:2 / /var rw,relatime master:2 - xfs /dev/sda2 rw
27 21 8:3 / /mnt/a\\040b rw - ext4 /dev/sda3 rw
28 25 0:40 / /run/hasten-trial-7 rw - tmpfs tmpfs rw
";
        assert_eq!(writable(table), [Path::new("/run"), Path::new("/var")]);
    }

    #[test]
    fn numbers_of_processes_are_forgotten() {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join("web")).unwrap();
        let [file, nested, other] = ["a.pid", "web/b.pid", "web/c.sock"].map(|name| run.path().join(name));
        for path in [&file, &nested, &other] {
            fs::write(path, "1").unwrap();
        }
        forget_processes(run.path());
        assert!(!file.exists() && !nested.exists() && other.exists());
    }
}
