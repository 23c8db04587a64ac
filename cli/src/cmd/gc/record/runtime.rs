//! Where processes have their sockets: the folders of plugins/node/src/gc/runtime.ts.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::process;

/// The sockets of one process: where it says that they are, then where ours would be.
pub(super) fn sockets(pid: u32) -> Vec<PathBuf> {
    let name = format!("node/{pid}.sock");
    let environment = process::environment(pid).unwrap_or_default();
    let mut folders = folders(|variable| environment.get(OsStr::new(variable)).cloned());
    folders.extend(own_folders());
    let sockets = folders.into_iter().filter(|folder| is_private(folder)).map(|folder| folder.join(&name));
    sockets.filter(|socket| is_own_socket(socket)).collect()
}

/// All sockets of this user, with the processes that they are named after.
pub(super) fn all_sockets() -> HashMap<u32, PathBuf> {
    let mut sockets = HashMap::new();
    for folder in own_folders().into_iter().filter(|folder| is_private(folder)) {
        for entry in fs::read_dir(folder.join("node")).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix(".sock"));
            if let Some(pid) = name.and_then(|name| name.parse().ok())
                && is_own_socket(&path)
            {
                sockets.entry(pid).or_insert(path);
            }
        }
    }
    sockets
}

/// A recording: a file of ours, and nothing else.
pub(super) fn is_own_file(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.uid() == process::own_user()
}

fn own_folders() -> Vec<PathBuf> {
    folders(|variable| std::env::var_os(variable))
}

fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let user = process::own_user();
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut folders = Vec::new();
    folders.extend(absolute("HASTEN_RUNTIME_DIR"));
    folders.extend(absolute("XDG_RUNTIME_DIR").map(|folder| folder.join("hasten")));
    folders.push(format!("/run/user/{user}/hasten").into());
    folders.push(format!("/tmp/hasten-{user}").into());
    folders
}

fn is_private(folder: &Path) -> bool {
    [folder, &folder.join("node")].iter().all(|folder| {
        fs::symlink_metadata(folder).is_ok_and(|metadata| {
            metadata.is_dir() && metadata.uid() == process::own_user() && metadata.mode() & 0o077 == 0
        })
    })
}

fn is_own_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.file_type().is_socket() && metadata.uid() == process::own_user())
}
