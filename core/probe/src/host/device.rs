//! Intel's accelerators, by their PCI identity and the state of their driver.

use serde::Serialize;

use crate::root::Root;

const INTEL: u64 = 0x8086;

/// One PCI function of an accelerator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// What the driver says of the device: `up` or `down` for QAT, `enabled` or `disabled` for DSA and IAA.
    pub state: Option<String>,
    /// Work queues that are enabled (DSA and IAA).
    pub queues: Option<usize>,
    pub numa_node: Option<i32>,
    /// Virtual functions that are switched on, and how many there could be.
    pub virtual_functions: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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

    /// The name that people know.
    pub fn label(self) -> &'static str {
        match self {
            Self::Qat => "QAT",
            Self::Dsa => "DSA",
            Self::Iaa => "IAA",
            Self::Dlb => "DLB",
        }
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

    pub(crate) fn read_all(root: &Root) -> Vec<Self> {
        let base = "sys/bus/pci/devices";
        root.names(base).into_iter().filter_map(|address| Self::read(root, base, address)).collect()
    }

    fn read(root: &Root, base: &str, address: String) -> Option<Self> {
        let path = format!("{base}/{address}");
        if root.hex(format!("{path}/vendor"))? != INTEL {
            return None;
        }
        let pci_id = u16::try_from(root.hex(format!("{path}/device"))?).ok()?;
        let (kind, model, virtual_function) = identify(pci_id)?;
        let unit =
            root.names(&path).into_iter().find(|name| name.starts_with("dsa") || name.starts_with("iax"));
        let unit = unit.map(|name| format!("{path}/{name}"));
        let state = match &unit {
            Some(unit) => root.text(format!("{unit}/state")),
            None => root.text(format!("{path}/qat/state")),
        };
        let enabled = root.number(format!("{path}/sriov_numvfs"));
        let possible = root.number(format!("{path}/sriov_totalvfs"));
        Some(Self {
            kind,
            model,
            pci_id,
            virtual_function,
            driver: root.link(format!("{path}/driver")),
            state,
            queues: unit.map(|unit| enabled_queues(root, &unit)),
            numa_node: root.number(format!("{path}/numa_node")),
            virtual_functions: enabled.zip(possible),
            address,
        })
    }
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

fn enabled_queues(root: &Root, unit: &str) -> usize {
    let enabled = |queue: &String| root.text(format!("{unit}/{queue}/state")).as_deref() == Some("enabled");
    root.names(unit).iter().filter(|name| name.starts_with("wq")).filter(|name| enabled(name)).count()
}
