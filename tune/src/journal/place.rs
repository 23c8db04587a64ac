//! The location of journals: a folder that does not survive a reboot, as the changes do not either.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::getuid;

const FOLDER: &str = "journal";

/// Possible places for this user's journals, the one for new journals first.
pub(super) fn folders() -> Vec<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = getuid();
    let mut folders: Vec<PathBuf> = absolute("HASTEN_RUNTIME_DIR").into_iter().collect();
    if user.is_root() {
        folders.push("/run/hasten".into());
    } else {
        folders.extend(absolute("XDG_RUNTIME_DIR").map(|folder| folder.join("hasten")));
        folders.push(format!("/run/user/{}/hasten", user.as_raw()).into());
    }
    folders.push(format!("/tmp/hasten-{}", user.as_raw()).into());
    folders.into_iter().map(|folder| folder.join(FOLDER)).collect()
}

/// The first of them that can be made private to this user.
pub(super) fn make() -> io::Result<PathBuf> {
    let mut last = io::Error::other("there is no folder for a journal");
    for folder in folders() {
        match DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
            Ok(()) if is_private(&folder) => return Ok(folder),
            Ok(()) => {
                let why = format!("{} can be written by others", folder.display());
                last = io::Error::new(io::ErrorKind::PermissionDenied, why);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether nobody else can have put a journal there: its reader acts on it with his own rights.
pub(super) fn is_private(folder: &Path) -> bool {
    let own = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|metadata| {
            metadata.is_dir() && metadata.uid() == getuid().as_raw() && metadata.mode() & 0o022 == 0
        })
    };
    own(folder) && folder.parent().is_some_and(own)
}
