//! Brings logs home: the link in the program's directory becomes the file.
//!
//! At every moment the name leads to the whole log: first the copy is made and synced, then it takes the link's name, then
//! the place on the fast device is given up.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::place;

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("{path}: {source}")]
    System { path: PathBuf, source: io::Error },
    #[error("{log} is open in process {pid}")]
    InUse { log: PathBuf, pid: u32 },
    #[error("{log} was written to while it was copied")]
    Changed { log: PathBuf },
    #[error("{link} leads to {place}, which is not there")]
    Lost { link: PathBuf, place: PathBuf },
}

/// A log away from home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    pub link: PathBuf,
    pub place: PathBuf,
}

/// The logs of a directory, and of those below it, that are away from home.
pub fn away(directory: &Path) -> Result<Vec<Away>, HomeError> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        let failed = |source| HomeError::System { path: directory.clone(), source };
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Not `entry.file_type`, which needs a function that glibc 2.17 does not have.
            let kind = fs::symlink_metadata(entry.path()).map_err(failed)?.file_type();
            if kind.is_dir() {
                open.push(entry.path());
            }
            let place = if kind.is_symlink() { fs::read_link(entry.path()).ok() } else { None };
            let ours = place.filter(|place| place::is_ours(place.as_os_str().as_bytes()));
            found.extend(ours.map(|place| Away { link: entry.path(), place }));
        }
    }
    found.sort_by(|a, b| a.link.cmp(&b.link));
    Ok(found)
}

/// Brings one home.
pub fn bring(away: &Away) -> Result<(), HomeError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| HomeError::System { path, source }
    };
    let facts = match fs::metadata(&away.place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(HomeError::Lost { link: away.link.clone(), place: away.place.clone() });
        }
        facts => facts.map_err(failed(&away.place))?,
    };
    unused(away, &facts)?;
    let directory = away.link.parent().unwrap_or(Path::new("/"));
    let name = away.link.file_name().unwrap_or_default().to_string_lossy();
    let copy = directory.join(format!(".{name}.coming-home"));
    let done = copied(&away.place, &copy, &facts).map_err(failed(&away.link));
    // Whoever opened it since then writes to what is about to go.
    let done = done.and_then(|()| unused(away, &facts)).and_then(|()| {
        fs::rename(&copy, &away.link)
            .and_then(|()| File::open(directory)?.sync_all())
            .map_err(failed(&away.link))
    });
    if let Err(error) = done {
        // The link is as it was, or the copy has taken its place.
        let _ = fs::remove_file(&copy);
        return Err(error);
    }
    if let Err(error) = unused(away, &facts) {
        let _ = symlink(&away.place, &copy).and_then(|()| fs::rename(&copy, &away.link));
        return Err(error);
    }
    fs::remove_file(&away.place).map_err(failed(&away.place))
}

/// Whether nobody has the log open, or has written to it since `before`.
fn unused(away: &Away, before: &fs::Metadata) -> Result<(), HomeError> {
    if let Some(pid) = user_of(before.dev(), before.ino()) {
        return Err(HomeError::InUse { log: away.link.clone(), pid });
    }
    let system = |source| HomeError::System { path: away.place.clone(), source };
    let now = fs::metadata(&away.place).map_err(system)?;
    let state = |facts: &fs::Metadata| (facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec());
    if state(&now) == state(before) { Ok(()) } else { Err(HomeError::Changed { log: away.link.clone() }) }
}

fn copied(from: &Path, to: &Path, facts: &fs::Metadata) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    io::copy(&mut from, &mut to)?;
    to.set_permissions(fs::Permissions::from_mode(facts.mode() & 0o7777))?;
    rustix::fs::fchown(
        &to,
        Some(rustix::fs::Uid::from_raw(facts.uid())),
        Some(rustix::fs::Gid::from_raw(facts.gid())),
    )?;
    to.set_modified(facts.modified()?)?;
    to.sync_all()
}

/// A process that has the file open, among those that this user may look into.
fn user_of(device: u64, inode: u64) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let open = fs::read_dir(process.path().join("fd")).ok()?;
        let is_it = |facts: fs::Metadata| (facts.dev(), facts.ino()) == (device, inode);
        open.flatten().any(|fd| fs::metadata(fd.path()).is_ok_and(is_it)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().expect("a directory");
        let (home, fast) = (top.path().join("db"), place::directory(&top.path().join("fast")));
        fs::create_dir_all(home.join("wal")).expect("made");
        fs::create_dir_all(&fast).expect("made");
        (top, home, fast)
    }

    #[test]
    fn a_log_comes_home_with_its_bytes_and_its_mode() {
        let (_top, home, fast) = scene();
        let place = place::of(&fast, b"000001.log", 1, 1);
        fs::write(&place, vec![7; 100_000]).expect("written");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).expect("permitted");
        symlink(&place, home.join("wal/000001.log")).expect("linked");
        symlink("elsewhere", home.join("other")).expect("linked");
        let found = away(&home).expect("readable");
        assert_eq!(found.len(), 1);
        bring(&found[0]).expect("it comes home");
        let facts = fs::symlink_metadata(home.join("wal/000001.log")).expect("it is there");
        assert!(facts.is_file() && facts.len() == 100_000 && facts.mode() & 0o777 == 0o640);
        assert!(!place.exists() && away(&home).expect("readable").is_empty());
    }

    #[test]
    fn a_log_in_use_or_lost_stays_as_it_is() {
        let (_top, home, fast) = scene();
        let place = place::of(&fast, b"000001.log", 1, 1);
        let open = File::create(&place).expect("made");
        let away = Away { link: home.join("000001.log"), place };
        symlink(&away.place, &away.link).expect("linked");
        assert!(matches!(bring(&away), Err(HomeError::InUse { .. })));
        drop(open);
        fs::remove_file(&away.place).expect("removed");
        assert!(matches!(bring(&away), Err(HomeError::Lost { .. })));
        assert!(fs::symlink_metadata(&away.link).expect("the link").is_symlink());
    }
}
