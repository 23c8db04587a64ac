//! The accelerators that the kernel reports: read, typed, never judged.

mod dlb;
mod idxd;
mod permission;
mod qat;

pub use self::dlb::Dlb;
pub use self::idxd::{Group, Queue, QueueMode, QueueType, Unit};
pub use self::permission::{Access, Caller, DeviceFile};
pub use self::qat::{Heartbeat, Qat, Service};
pub(crate) use self::qat::{debugfs as qat_debugfs, heartbeat};

use crate::root::Root;

const INTEL: u64 = 0x8086;
const PCI: &str = "sys/bus/pci/devices";

/// One PCI function of an accelerator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Device {
    pub kind: DeviceKind,
    /// The driver's name for the model, such as `4xxx`.
    pub model: &'static str,
    /// The PCI address, such as `0000:6b:00.0`.
    pub address: String,
    pub pci_id: u16,
    pub virtual_function: bool,
    /// The kernel driver that is bound to it, if any.
    pub driver: Option<String>,
    /// The driver's word for the device's state: `up` or `down` for QAT, `enabled` or `disabled` for DSA and IAA.
    pub state: Option<String>,
    /// Work queues that are enabled (DSA and IAA).
    pub queues: Option<usize>,
    pub numa_node: Option<i32>,
    /// Virtual functions that are enabled, and how many there could be.
    pub virtual_functions: Option<(u32, u32)>,
    /// The file by which a process uses this function: VFIO's, or DLB's. Queues of DSA and IAA have their own.
    pub file: Option<DeviceFile>,
    /// What only a QAT device has.
    pub qat: Option<Qat>,
    /// The DSA or IAA device that the driver has made of it.
    pub unit: Option<Unit>,
    /// What only a DLB has.
    pub dlb: Option<Dlb>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum DeviceKind {
    /// QuickAssist: public-key cryptography, ciphers, deflate.
    Qat,
    /// Data streaming: copies, fills, checksums.
    Dsa,
    /// In-memory analytics: deflate.
    Iaa,
    /// Dynamic load balancing: queues in hardware.
    Dlb,
}

impl DeviceKind {
    pub const ALL: [Self; 4] = [Self::Qat, Self::Iaa, Self::Dsa, Self::Dlb];

    /// The name by which people know it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Qat => "QAT",
            Self::Dsa => "DSA",
            Self::Iaa => "IAA",
            Self::Dlb => "DLB",
        }
    }
}

/// Every accelerator below `root`, and what this process may do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Discovery {
    pub devices: Vec<Device>,
    pub caller: Caller,
}

impl Discovery {
    pub fn read(root: &Root) -> Self {
        let caller = Caller::read(root);
        let addresses = root.names(PCI).into_iter();
        let devices = addresses.filter_map(|address| Device::read(root, &caller, address)).collect();
        Self { devices, caller }
    }
}

impl Device {
    /// The kernel module for its physical function.
    pub fn module(&self) -> &'static str {
        match (self.kind, self.model) {
            (DeviceKind::Qat, "420xx") => "qat_420xx",
            (DeviceKind::Qat, "c6xx") => "qat_c6xx",
            (DeviceKind::Qat, _) => "qat_4xxx",
            (DeviceKind::Dsa | DeviceKind::Iaa, _) => "idxd",
            (DeviceKind::Dlb, _) => "dlb2",
        }
    }

    /// Bound to a driver that reports no trouble.
    pub fn is_up(&self) -> bool {
        let is_silent = self.qat.as_ref().is_some_and(|qat| qat.heartbeat == Some(Heartbeat::Lost));
        self.driver.is_some() && !is_silent && !matches!(self.state.as_deref(), Some("down" | "disabled"))
    }

    fn read(root: &Root, caller: &Caller, address: String) -> Option<Self> {
        let path = format!("{PCI}/{address}");
        if root.hex(format!("{path}/vendor"))? != INTEL || !is_address(&address) {
            return None;
        }
        let pci_id = u16::try_from(root.hex(format!("{path}/device"))?).ok()?;
        let (kind, model, virtual_function) = identify(pci_id)?;
        let is_idxd = matches!(kind, DeviceKind::Dsa | DeviceKind::Iaa);
        let unit = if is_idxd { Unit::read(root, caller, &path, kind) } else { None };
        let qat = (kind == DeviceKind::Qat).then(|| Qat::read(root, &path, &address, model));
        let dlb = (kind == DeviceKind::Dlb).then(|| Dlb::read(root, &path));
        let state = match kind {
            DeviceKind::Qat => root.word(format!("{path}/qat/state")),
            DeviceKind::Dsa | DeviceKind::Iaa => unit.as_ref().and_then(|unit| unit.state.clone()),
            DeviceKind::Dlb => None,
        };
        let enabled = root.number(format!("{path}/sriov_numvfs"));
        let possible = root.number(format!("{path}/sriov_totalvfs"));
        let driver = root.link(format!("{path}/driver"));
        Some(Self {
            kind,
            model,
            pci_id,
            virtual_function,
            file: file(root, caller, &path, driver.as_deref(), dlb.as_ref()),
            driver,
            state,
            queues: unit.as_ref().map(Unit::enabled_queues),
            numa_node: root.number(format!("{path}/numa_node")),
            virtual_functions: enabled.zip(possible),
            qat,
            unit,
            dlb,
            address,
        })
    }
}

/// The file through which user space reaches the function.
fn file(
    root: &Root,
    caller: &Caller,
    path: &str,
    driver: Option<&str>,
    dlb: Option<&Dlb>,
) -> Option<DeviceFile> {
    if driver == Some("vfio-pci") {
        let group = root.link(format!("{path}/iommu_group"))?;
        // Without an IOMMU the file is called differently.
        let names = [format!("dev/vfio/{group}"), format!("dev/vfio/noiommu-{group}")];
        let name = names.iter().find(|name| root.exists(name)).unwrap_or(&names[0]);
        return Some(DeviceFile::read(root, caller, name));
    }
    let name = dlb?.name.as_ref()?;
    Some(DeviceFile::read(root, caller, &format!("dev/{name}")))
}

/// `0000:6b:00.0`: checked because addresses go into commands that people paste.
fn is_address(text: &str) -> bool {
    text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.')
}

/// Kind, model, and whether it is a virtual function.
fn identify(pci_id: u16) -> Option<(DeviceKind, &'static str, bool)> {
    use DeviceKind::{Dlb, Dsa, Iaa, Qat};
    Some(match pci_id {
        0x4940 => (Qat, "4xxx", false),
        0x4941 => (Qat, "4xxx", true),
        0x4942 => (Qat, "401xx", false),
        0x4943 => (Qat, "401xx", true),
        0x4944 => (Qat, "402xx", false),
        0x4945 => (Qat, "402xx", true),
        0x4946 => (Qat, "420xx", false),
        0x4947 => (Qat, "420xx", true),
        0x37c8 => (Qat, "c6xx", false),
        0x37c9 => (Qat, "c6xx", true),
        0x0b25 => (Dsa, "dsa", false),
        0x11fb => (Dsa, "dsa-gnrd", false),
        0x1212 => (Dsa, "dsa-dmr", false),
        0x0cfe => (Iaa, "iax", false),
        0x1216 => (Iaa, "iax-dmr", false),
        0x2710 => (Dlb, "dlb2", false),
        0x2711 => (Dlb, "dlb2", true),
        0x2714 => (Dlb, "dlb2.5", false),
        0x2715 => (Dlb, "dlb2.5", true),
        _ => return None,
    })
}
