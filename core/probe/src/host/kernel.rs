//! Kernel facilities that accelerators, or the tools that measure them, depend on.

use serde::Serialize;

use super::cgroup::Cgroup;
use crate::root::Root;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    /// Major and minor, if the release starts with them.
    pub version: Option<(u32, u32)>,
    pub io_uring: IoUring,
    /// `kernel.perf_event_paranoid`
    pub perf_event_paranoid: Option<i32>,
    /// Whether an unprivileged user may make a user namespace.
    pub unprivileged_userns: Option<bool>,
    /// By version: since 3.17.
    pub memfd: Option<bool>,
    /// By version: since 5.11.
    pub epoll_pwait2: Option<bool>,
    pub ktls: KernelTls,
    pub cgroup: Cgroup,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoUring {
    Enabled,
    /// Only for processes with CAP_SYS_ADMIN or of a certain group.
    Restricted,
    Disabled,
    /// The kernel is too old or built without it.
    Absent,
    #[default]
    Unknown,
}

/// TLS records in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelTls {
    /// Ready to use.
    Loaded,
    /// The module exists and loads on request.
    Available,
    Absent,
    #[default]
    Unknown,
}

impl Kernel {
    pub(crate) fn read(root: &Root) -> Self {
        let release = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let version = version(&release);
        let since = |first: (u32, u32)| version.map(|version| version >= first);
        Self {
            io_uring: io_uring(root, version),
            perf_event_paranoid: root.number("proc/sys/kernel/perf_event_paranoid"),
            unprivileged_userns: unprivileged_userns(root),
            memfd: since((3, 17)),
            epoll_pwait2: since((5, 11)),
            ktls: ktls(root, &release),
            cgroup: Cgroup::read(root),
            release,
            version,
        }
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn io_uring(root: &Root, version: Option<(u32, u32)>) -> IoUring {
    match (root.number::<u32>("proc/sys/kernel/io_uring_disabled"), version) {
        (Some(0), _) => IoUring::Enabled,
        (Some(1), _) => IoUring::Restricted,
        (Some(_), _) => IoUring::Disabled,
        // The switch came with 6.6: a later kernel without it was built without io_uring.
        (None, Some(version)) if !((5, 1)..(6, 6)).contains(&version) => IoUring::Absent,
        (None, Some(_)) => IoUring::Enabled,
        (None, None) => IoUring::Unknown,
    }
}

fn unprivileged_userns(root: &Root) -> Option<bool> {
    let limit: u64 = root.number("proc/sys/user/max_user_namespaces")?;
    // Debian's and Ubuntu's own switches; other kernels have neither.
    let debian = root.number::<u32>("proc/sys/kernel/unprivileged_userns_clone").unwrap_or(1);
    let ubuntu = root.number::<u32>("proc/sys/kernel/apparmor_restrict_unprivileged_userns").unwrap_or(0);
    Some(limit > 0 && debian != 0 && ubuntu == 0)
}

fn ktls(root: &Root, release: &str) -> KernelTls {
    if root.exists("proc/net/tls_stat") || root.exists("sys/module/tls") {
        return KernelTls::Loaded;
    }
    let modules = format!("lib/modules/{release}");
    if !root.exists(&modules) {
        // Containers and minimal systems do not carry the host's modules.
        return KernelTls::Unknown;
    }
    let directory = format!("{modules}/kernel/net/tls");
    let module = root.names(directory).iter().any(|name| name.starts_with("tls.ko"));
    if module { KernelTls::Available } else { KernelTls::Absent }
}
