//! Where processes have their sockets: the folders of plugins/node/src/gc/runtime.ts.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::process;

/// The possible sockets of one process: where its environment says, then where ours would be.
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

/// Where the plugin of a process would open its channel; the rules are those of plugins/node/src/gc/runtime.ts.
pub(super) fn home(pid: u32) -> PathBuf {
    let environment = process::environment(pid).unwrap_or_default();
    home_by(|variable| environment.get(OsStr::new(variable)).cloned())
}

/// The same for a process that has our environment.
pub(super) fn own_home() -> PathBuf {
    home_by(|variable| std::env::var_os(variable))
}

fn home_by(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let user = process::own_user();
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let sessions = [absolute("XDG_RUNTIME_DIR"), Some(format!("/run/user/{user}").into())];
    let is_own = |folder: &PathBuf| {
        fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
    };
    absolute("HASTEN_RUNTIME_DIR")
        .or_else(|| Some(sessions.into_iter().flatten().find(is_own)?.join("hasten")))
        .unwrap_or_else(|| format!("/tmp/hasten-{user}").into())
}

/// Why no process of ours can open a channel in this folder, if so.
pub(super) fn obstacle(folder: &Path) -> Option<String> {
    /// A socket has a name of 108 bytes, the zero at its end included.
    const LONGEST_NAME: usize = 107;
    let parent = folder.parent().unwrap_or(folder);
    if !is_safe_parent(parent) {
        return Some(format!("others may write to {}, in which it is", parent.display()));
    }
    for folder in [folder, &folder.join("node")] {
        match fs::symlink_metadata(folder) {
            Ok(_) if is_private_alone(folder) => {}
            Ok(_) => {
                return Some(format!("{} is not its user's own, or is open to others", folder.display()));
            }
            // It is made on demand.
            Err(_) => break,
        }
    }
    let longest = folder.join("node/4194304.sock");
    (longest.as_os_str().len() > LONGEST_NAME).then(|| "its name is too long for a socket".to_owned())
}

fn is_safe_parent(parent: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    fs::metadata(parent).is_ok_and(|metadata| {
        let is_trusted = [0, process::own_user()].contains(&metadata.uid());
        let mode = metadata.mode();
        metadata.is_dir() && is_trusted && (mode & 0o022 == 0 || mode & STICKY != 0)
    })
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
    is_private_alone(folder) && is_private_alone(&folder.join("node"))
}

fn is_private_alone(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == process::own_user() && metadata.mode() & 0o077 == 0
    })
}

fn is_own_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.file_type().is_socket() && metadata.uid() == process::own_user())
}
