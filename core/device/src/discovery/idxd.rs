//! DSA and IAA as the idxd driver shows them: a device whose groups join work queues and engines.

use super::DeviceKind;
use super::permission::{Caller, DeviceFile};
use crate::root::Root;

/// A device of the driver, such as `iax1`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Unit {
    pub name: String,
    pub state: Option<String>,
    /// Whether the device understands a process's addresses. User space cannot use it otherwise.
    pub pasid: Option<bool>,
    pub work_queues: Vec<Queue>,
    pub groups: Vec<Group>,
    /// Engines without a group, which do nothing.
    pub idle_engines: Vec<String>,
    /// The number of entries that all work queues share.
    pub total_size: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Queue {
    /// Such as `wq1.0`.
    pub name: String,
    pub enabled: bool,
    pub mode: Option<QueueMode>,
    #[cfg_attr(feature = "serde", serde(rename = "type"))]
    pub queue_type: QueueType,
    /// The driver of the queue: `user`, or one of the kernel's.
    pub driver: Option<String>,
    pub group: Option<u32>,
    pub size: Option<u32>,
    /// How many entries of a shared queue this kind of submission may occupy.
    pub threshold: Option<u32>,
    /// How many processes have it open.
    pub clients: Option<u32>,
    pub file: DeviceFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum QueueMode {
    /// Any number of processes may use it.
    Shared,
    /// One process may use it.
    Dedicated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum QueueType {
    /// Not configured.
    None,
    /// Used by the kernel itself.
    Kernel,
    User,
    Unknown,
}

/// Connects queues and engines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Group {
    pub number: u32,
    pub engines: usize,
}

impl Unit {
    pub(super) fn read(root: &Root, caller: &Caller, path: &str, kind: DeviceKind) -> Option<Self> {
        let prefix = if kind == DeviceKind::Iaa { "iax" } else { "dsa" };
        let name = root.names(path).into_iter().find(|name| is_numbered(name, prefix))?;
        let path = format!("{path}/{name}");
        let names = root.names(&path);
        let of = |prefix: &'static str| names.iter().filter(move |name| is_numbered(name, prefix));
        let group_of = |name: &str| group_number(root, &format!("{path}/{name}"));
        let groups = of("group").filter_map(|name| {
            let number = name.rsplit('.').next()?.parse().ok()?;
            let engines = of("engine").filter(|engine| group_of(engine) == Some(number)).count();
            Some(Group { number, engines })
        });
        Some(Self {
            state: root.word(format!("{path}/state")),
            pasid: root.number::<u32>(format!("{path}/pasid_enabled")).map(|enabled| enabled != 0),
            work_queues: of("wq").map(|name| Queue::read(root, caller, &path, name, prefix)).collect(),
            groups: groups.collect(),
            idle_engines: of("engine").filter(|name| group_of(name).is_none()).cloned().collect(),
            total_size: root.number(format!("{path}/max_work_queues_size")),
            name,
        })
    }

    pub fn enabled_queues(&self) -> usize {
        self.work_queues.iter().filter(|queue| queue.enabled).count()
    }

    /// Whether an engine works through the queue; `None` if its group is not shown.
    pub fn is_served(&self, queue: &Queue) -> Option<bool> {
        let group = self.groups.iter().find(|group| Some(group.number) == queue.group)?;
        Some(group.engines > 0)
    }
}

impl Queue {
    fn read(root: &Root, caller: &Caller, unit: &str, name: &str, folder: &str) -> Self {
        let path = format!("{unit}/{name}");
        let word = |attribute: &str| root.word(format!("{path}/{attribute}"));
        Self {
            enabled: word("state").as_deref() == Some("enabled"),
            mode: match word("mode").as_deref() {
                Some("shared") => Some(QueueMode::Shared),
                Some("dedicated") => Some(QueueMode::Dedicated),
                _ => None,
            },
            queue_type: match word("type").as_deref() {
                Some("none") => QueueType::None,
                Some("kernel") => QueueType::Kernel,
                Some("user") => QueueType::User,
                _ => QueueType::Unknown,
            },
            driver: word("driver_name"),
            group: group_number(root, &path),
            size: root.number(format!("{path}/size")),
            threshold: root.number(format!("{path}/threshold")),
            clients: root.number(format!("{path}/clients")),
            file: DeviceFile::read(root, caller, &format!("dev/{folder}/{name}")),
            name: name.to_owned(),
        }
    }
}

/// −1 stands for no group.
fn group_number(root: &Root, path: &str) -> Option<u32> {
    root.number(format!("{path}/group_id"))
}

/// `wq1.0`, `iax3`: checked because names go into commands that people paste.
fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = |text: &str| (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix(prefix).is_some_and(|rest| match rest.split_once('.') {
        Some((unit, index)) => number(unit) && number(index),
        None => number(rest),
    })
}
