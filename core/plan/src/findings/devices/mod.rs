//! Accelerators: a row for each kind, and below it one for each device with what prevents its use.

mod idxd;
mod permission;
mod qat;

use hasten_probe::host::device::{Caller, Device, DeviceKind};

use super::{Finding, Group, State};

pub(super) fn findings(devices: &[Device], caller: &Caller) -> Vec<Finding> {
    DeviceKind::ALL.into_iter().flat_map(|kind| of_kind(kind, devices, caller)).collect()
}

/// What prevents a device from being used, and the command that fixes it.
pub(crate) struct Hindrance {
    pub(crate) why: String,
    pub(crate) fix: String,
}

impl Hindrance {
    fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { why: why.into(), fix: fix.into() }
    }
}

/// Each device of a kind with its hindrance, if it has one.
pub(crate) fn hindrances<'a>(
    kind: DeviceKind,
    devices: &'a [Device],
    caller: &Caller,
) -> Vec<Option<(&'a str, Hindrance)>> {
    let hindered = |device: &'a Device| Some((&*device.address, hindrance(device, devices, caller)?));
    shown(kind, devices).map(hindered).collect()
}

/// Virtual functions are reported with their physical one, if this machine sees it.
fn shown(kind: DeviceKind, devices: &[Device]) -> impl Iterator<Item = &Device> {
    devices.iter().filter(move |device| device.kind == kind && physical(device, devices).is_none())
}

fn of_kind(kind: DeviceKind, devices: &[Device], caller: &Caller) -> Vec<Finding> {
    let id = format!("device.{}", kind.label().to_lowercase());
    let summary = Finding::new(Group::Devices, &id, kind.label(), why(kind));
    let rows: Vec<_> = shown(kind, devices).map(|device| row(&id, device, devices, caller)).collect();
    let usable = rows.iter().filter(|row| row.state == State::Available).count();
    let summary = match (rows.len(), usable) {
        (0, _) => return vec![summary.state(State::Absent, "none")],
        (all, 0) => summary.state(State::Limited, format!("{}, none usable{}", count(all), use_of(kind))),
        (all, usable) if usable < all => {
            summary.state(State::Available, format!("{}, {usable} usable{}", count(all), use_of(kind)))
        }
        (all, _) => summary.state(State::Available, format!("{}{}", count(all), use_of(kind))),
    };
    let fix = rows.iter().find_map(|row| row.fix.clone());
    let summary = if usable == 0 { Finding { fix, ..summary } } else { summary };
    std::iter::once(summary).chain(rows).collect()
}

fn row(kind: &str, device: &Device, devices: &[Device], caller: &Caller) -> Finding {
    let feature = format!("  {}", device.address);
    let finding = Finding::new(Group::Devices, format!("{kind}.{}", device.address), feature, "");
    let description = describe(device);
    match hindrance(device, devices, caller) {
        None => finding.state(State::Available, description),
        Some(Hindrance { why, fix }) => {
            finding.state(State::Limited, format!("{description}: {why}")).fix(fix)
        }
    }
}

fn why(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Qat => "public-key operations and deflate off the CPU",
        DeviceKind::Iaa => "deflate off the CPU",
        DeviceKind::Dsa => "copies and checksums off the CPU",
        DeviceKind::Dlb => "queues between threads in hardware",
    }
}

/// docs/devices.md explains why these are not used.
fn use_of(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Qat | DeviceKind::Iaa => "",
        DeviceKind::Dsa | DeviceKind::Dlb => "; hasten does not use it",
    }
}

fn count(devices: usize) -> String {
    if devices == 1 { "1 device".into() } else { format!("{devices} devices") }
}

fn describe(device: &Device) -> String {
    let function = if device.virtual_function { " VF" } else { "" };
    let services = device.qat.as_ref().and_then(|qat| qat.services.as_ref());
    let parts = [
        device.state.clone(),
        services.map(|services| format!("services {services}")),
        device.unit.as_ref().map(|unit| unit.name.clone()),
        device.queues.map(|queues| format!("{queues} queues enabled")),
        device.virtual_functions.filter(|(on, _)| *on > 0).map(|(on, _)| format!("{on} VFs")),
        device.numa_node.filter(|node| *node >= 0).map(|node| format!("NUMA node {node}")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("{}{function}{}{}", device.model, if parts.is_empty() { "" } else { ", " }, parts.join(", "))
}

fn physical<'a>(device: &Device, devices: &'a [Device]) -> Option<&'a Device> {
    let address = device.qat.as_ref()?.physical_function.as_ref()?;
    devices.iter().find(|other| other.address == *address && !other.virtual_function)
}

fn hindrance(device: &Device, devices: &[Device], caller: &Caller) -> Option<Hindrance> {
    match device.kind {
        DeviceKind::Qat => qat::hindrance(device, devices, caller),
        DeviceKind::Dsa | DeviceKind::Iaa => idxd::hindrance(device, caller),
        DeviceKind::Dlb => dlb(device, caller),
    }
}

fn dlb(device: &Device, caller: &Caller) -> Option<Hindrance> {
    if device.driver.is_none() {
        return Some(Hindrance::new(
            "no driver",
            "build and load Intel's dlb2 driver; Linux has none of its own",
        ));
    }
    let Some(file) = &device.file else {
        return Some(Hindrance::new(
            "its driver has made no device",
            "modprobe -r dlb2 && modprobe dlb2, and look at `dmesg | grep dlb`",
        ));
    };
    permission::hindrance(file, caller, "udevadm trigger --subsystem-match=dlb2")
}
