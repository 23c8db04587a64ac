//! Whether the kernel would run a program in secure-execution mode (`AT_SECURE`), in which the dynamic loader
//! ignores and removes `LD_PRELOAD`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getgid, getuid};
use serde::Serialize;

const S_ISUID: u32 = 0o4000;
/// Without group execution the bit means mandatory locking, not set-group-ID.
const S_ISGID_EXECUTABLE: u32 = 0o2010;

/// What a file's mode and attributes add to the rights of the user who runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Privilege {
    pub setuid: bool,
    pub setgid: bool,
    pub capabilities: bool,
    /// Whether running it as the present user is a secure execution.
    pub secure_exec: bool,
}

impl Privilege {
    /// A file that cannot be examined counts as unprivileged: the kernel enforces, not we.
    pub(crate) fn of(path: &Path) -> Self {
        let Ok(metadata) = path.metadata() else { return Self::default() };
        let setuid = metadata.mode() & S_ISUID != 0;
        let setgid = metadata.mode() & S_ISGID_EXECUTABLE == S_ISGID_EXECUTABLE;
        let capabilities = getxattr(path, "security.capability", &mut [0u8; 64]).is_ok_and(|size| size > 0);
        let gains = (setuid && metadata.uid() != getuid().as_raw())
            || (setgid && metadata.gid() != getgid().as_raw())
            || (capabilities && !getuid().is_root());
        Self { setuid, setgid, capabilities, secure_exec: gains && !ignored(path) }
    }
}

/// `nosuid` mounts and `no_new_privs` processes gain nothing from the file.
fn ignored(path: &Path) -> bool {
    let nosuid = statvfs(path).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOSUID));
    let no_new_privs = std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"])));
    nosuid || no_new_privs
}
