use hasten_probe::host::device::{Device, DeviceKind};

use super::{Finding, Group, State};

pub(super) fn findings(devices: &[Device]) -> Vec<Finding> {
    DeviceKind::ALL.into_iter().map(|kind| finding(kind, devices)).collect()
}

fn finding(kind: DeviceKind, devices: &[Device]) -> Finding {
    let id = format!("device.{}", kind.label().to_lowercase());
    let finding = Finding::new(Group::Devices, id, kind.label(), why(kind));
    let devices: Vec<_> = devices.iter().filter(|device| device.kind == kind).collect();
    if devices.is_empty() {
        return finding.state(State::Absent, "none");
    }
    let detail = devices.iter().map(|device| describe(device)).collect::<Vec<_>>().join("; ");
    match devices.iter().find_map(|device| hindrance(device)) {
        None => finding.state(State::Available, detail),
        Some(fix) => finding.state(State::Limited, detail).fix(fix),
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

fn describe(device: &Device) -> String {
    let function = if device.virtual_function { " VF" } else { "" };
    let driver = device.driver.as_deref().unwrap_or("no driver");
    let state = device.state.as_ref().map(|state| format!(", {state}")).unwrap_or_default();
    let queues = device.queues.map(|queues| format!(", {queues} queues enabled")).unwrap_or_default();
    format!("{}{function} at {}: {driver}{state}{queues}", device.model, device.address)
}

/// What keeps a device from being used, as the command that removes it.
fn hindrance(device: &Device) -> Option<String> {
    let address = &device.address;
    match (&device.driver, device.state.as_deref(), device.queues) {
        (None, ..) if device.virtual_function => Some(format!("driverctl set-override {address} vfio-pci")),
        (None, ..) if device.kind == DeviceKind::Dlb => {
            Some("build and load Intel's dlb2 driver; Linux has none of its own".into())
        }
        (None, ..) => Some(format!("modprobe {}", device.module())),
        (_, Some("down"), _) => Some(format!("echo up > /sys/bus/pci/devices/{address}/qat/state")),
        (_, Some("disabled"), _) | (_, _, Some(0)) => Some("accel-config load-config -e -c FILE".into()),
        _ => None,
    }
}
