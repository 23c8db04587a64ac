//! Who is asking, and whether the kernel will let them.
//!
//! Determined from `/proc` and file modes, not by trying: a fake tree can then stand for any user, and looking at a
//! device does not open it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use crate::root::Root;

/// What the kernel says about this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Caller {
    /// `None` if `/proc` does not say; permissions are not judged then.
    pub uid: Option<u32>,
    pub groups: Vec<u32>,
    /// `CAP_DAC_OVERRIDE`: permissions of files do not matter.
    pub overrides_permissions: bool,
    /// How much memory it may lock; `None` for any amount, or unknown.
    pub lockable_bytes: Option<u64>,
}

/// A file in `/dev`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DeviceFile {
    /// From the root of the file system, such as `/dev/iax/wq1.0`.
    pub path: String,
    pub access: Access,
    /// Its group, and whether the group may read and write.
    pub group: Option<(u32, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Access {
    Granted,
    Denied,
    /// There is no such file.
    Missing,
    Unknown,
}

const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_IPC_LOCK: u32 = 14;

impl Caller {
    pub(super) fn read(root: &Root) -> Self {
        let status = root.text("proc/self/status").unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved, file system; the last one counts for files.
        let last = |name: &str| field(name)?.split_whitespace().nth(3)?.parse().ok();
        let capabilities = field("CapEff:").and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        let has = |capability: u32| capabilities.unwrap_or(0) >> capability & 1 == 1;
        let groups = field("Groups:").unwrap_or_default().split_whitespace();
        let groups = groups.filter_map(|group| group.parse().ok()).chain(last("Gid:"));
        Self {
            uid: last("Uid:"),
            groups: groups.take(65_536).collect(),
            overrides_permissions: has(CAP_DAC_OVERRIDE),
            lockable_bytes: if has(CAP_IPC_LOCK) { None } else { lockable(root) },
        }
    }

    fn may_use(&self, file: &Metadata) -> Access {
        let Some(uid) = self.uid else { return Access::Unknown };
        let mode = file.mode();
        let bits = if uid == file.uid() {
            mode >> 6
        } else if self.groups.contains(&file.gid()) {
            mode >> 3
        } else {
            mode
        };
        let granted = self.overrides_permissions || bits & 0o6 == 0o6;
        if granted { Access::Granted } else { Access::Denied }
    }
}

impl DeviceFile {
    pub(super) fn read(root: &Root, caller: &Caller, path: &str) -> Self {
        let file = std::fs::metadata(root.path(path)).ok();
        Self {
            access: file.as_ref().map_or(Access::Missing, |file| caller.may_use(file)),
            group: file.map(|file| (file.gid(), file.mode() & 0o60 == 0o60)),
            path: format!("/{path}"),
        }
    }
}

/// The soft limit of `RLIMIT_MEMLOCK`.
fn lockable(root: &Root) -> Option<u64> {
    let limits = root.text("proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    // `unlimited` is not a number, and means none.
    line.split_whitespace().next()?.parse().ok()
}
