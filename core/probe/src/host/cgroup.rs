//! The resource limits of the control group that we run in, and our descendants will.

use std::path::Path;

use serde::Serialize;

use crate::root::Root;

const MOUNT: &str = "sys/fs/cgroup";
/// Version 1 writes "no limit" as a number near this one.
const V1_UNLIMITED: u64 = 1 << 60;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cgroup {
    pub version: CgroupVersion,
    /// CPUs' worth of time; `None` without a limit.
    pub cpu_limit: Option<f64>,
    pub memory_limit_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupVersion {
    V1,
    /// Version 1 controllers beside a version 2 tree that has none.
    Hybrid,
    V2,
    #[default]
    None,
}

impl Cgroup {
    pub(crate) fn read(root: &Root) -> Self {
        let groups = root.text("proc/self/cgroup").unwrap_or_default();
        if root.exists(format!("{MOUNT}/cgroup.controllers")) {
            return Self::v2(root, &groups);
        }
        let hybrid = root.exists(format!("{MOUNT}/unified/cgroup.controllers"));
        let version =
            match (hybrid, root.exists(format!("{MOUNT}/memory")) || root.exists(format!("{MOUNT}/cpu"))) {
                (true, _) => CgroupVersion::Hybrid,
                (false, true) => CgroupVersion::V1,
                (false, false) => return Self::default(),
            };
        Self::v1(root, &groups, version)
    }

    fn v2(root: &Root, groups: &str) -> Self {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
        let cpu = levels(MOUNT, own).filter_map(|level| {
            let text = root.text(format!("{level}/cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            share(quota.parse().ok()?, period.parse().ok()?)
        });
        let memory = levels(MOUNT, own).filter_map(|level| root.number(format!("{level}/memory.max")));
        Self { version: CgroupVersion::V2, cpu_limit: cpu.reduce(f64::min), memory_limit_bytes: memory.min() }
    }

    fn v1(root: &Root, groups: &str, version: CgroupVersion) -> Self {
        let own = |controller: &str| {
            let of = |line: &&str| {
                line.split(':').nth(1).is_some_and(|list| list.split(',').any(|c| c == controller))
            };
            groups.lines().find(of).and_then(|line| line.splitn(3, ':').nth(2)).unwrap_or("/")
        };
        let cpu_mount = format!("{MOUNT}/cpu");
        let memory_mount = format!("{MOUNT}/memory");
        let cpu = levels(&cpu_mount, own("cpu")).filter_map(|level| {
            let quota = root.number(format!("{level}/cpu.cfs_quota_us"))?;
            share(quota, root.number(format!("{level}/cpu.cfs_period_us"))?)
        });
        let memory = levels(&memory_mount, own("memory"))
            .filter_map(|level| root.number(format!("{level}/memory.limit_in_bytes")))
            .filter(|limit| *limit < V1_UNLIMITED);
        Self { version, cpu_limit: cpu.reduce(f64::min), memory_limit_bytes: memory.min() }
    }
}

/// The group's directory and those above it, up to the mount: each level may set a limit.
fn levels<'a>(mount: &'a str, group: &'a str) -> impl Iterator<Item = String> + 'a {
    Path::new(group).ancestors().map(move |level| format!("{mount}{}", level.display()))
}

fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}
