//! What devices' drivers show in sysfs, in the hands of somebody who wants to mislead: a container's tree, a bug in a driver.
//! What is read goes to a terminal and into commands that people paste.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use hasten_device::discovery::Discovery;
use hasten_device::health::Health;
use hasten_device::{DeviceKind, Root};
use hasten_plan::findings::findings;
use hasten_probe::Probe;
use libfuzzer_sys::fuzz_target;

const PF: &str = "sys/bus/pci/devices/0000:6b:00.0";
const VF: &str = "sys/bus/pci/devices/0000:6b:00.1";
const DEBUG: &str = "sys/kernel/debug/qat_4xxx_0000:6b:00.0";

/// Where a file may stand. `*` is followed by a name that the input brings.
const PLACES: [(&str, &str); 28] = [
    (PF, "device"),
    (PF, "numa_node"),
    (PF, "sriov_numvfs"),
    (PF, "sriov_totalvfs"),
    (PF, "qat/state"),
    (PF, "qat/cfg_services"),
    (PF, "qat/auto_reset"),
    (PF, "qat_ras/errors_fatal"),
    (PF, "iax1/state"),
    (PF, "iax1/pasid_enabled"),
    (PF, "iax1/max_work_queues_size"),
    (PF, "iax1/group1.0/engines"),
    (PF, "iax1/engine1.0/group_id"),
    (PF, "iax1/wq1.0/state"),
    (PF, "iax1/wq1.0/mode"),
    (PF, "iax1/wq1.0/type"),
    (PF, "iax1/wq1.0/driver_name"),
    (PF, "iax1/wq1.0/group_id"),
    (PF, "iax1/wq1.0/size"),
    (PF, "iax1/wq1.0/occupancy"),
    (PF, "*"),
    (VF, "device"),
    (DEBUG, "heartbeat/status"),
    (DEBUG, "telemetry/control"),
    (DEBUG, "telemetry/device_data"),
    ("proc/self", "status"),
    ("proc/self", "limits"),
    ("dev/iax", "wq1.0"),
];

/// Identities that make the rest be looked at.
const DEVICES: [&str; 6] = ["0x4940", "0x4946", "0x37c8", "0x0cfe", "0x0b25", "0x2710"];

fuzz_target!(|data: &[u8]| {
    let Some((&identity, rest)) = data.split_first() else { return };
    let root = tree();
    let _ = fs::remove_dir_all(root);
    let write = |base: &str, name: &str, content: &[u8]| {
        let path = root.join(base).join(name);
        if path.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok()) {
            let _ = fs::write(path, content);
        }
    };
    for (base, device) in [(PF, DEVICES[usize::from(identity) % DEVICES.len()]), (VF, "0x4941")] {
        write(base, "vendor", b"0x8086");
        write(base, "device", device.as_bytes());
    }
    for driver in [(PF, "4xxx"), (VF, "vfio-pci")].iter().take(usize::from(identity >> 6)) {
        let _ = std::os::unix::fs::symlink(driver.1, root.join(driver.0).join("driver"));
    }
    let _ = std::os::unix::fs::symlink("0000:6b:00.0", root.join(VF).join("physfn"));
    for file in rest.split(|byte| *byte == 0).take(32) {
        let Some((&place, content)) = file.split_first() else { continue };
        let (base, name) = PLACES[usize::from(place) % PLACES.len()];
        if name == "*" {
            let name = String::from_utf8_lossy(content).replace(['/', '.'], "");
            write(base, &format!("{}/state", name.chars().take(32).collect::<String>()), b"enabled");
        } else {
            write(base, name, content);
        }
    }
    check(root);
});

fn check(root: &std::path::Path) {
    let found = Discovery::read(&Root::new(root));
    for device in &found.devices {
        let health = Health::read(&Root::new(root), device);
        assert!(health.utilization.iter().all(|part| (0.0..=1.0).contains(&part.ratio)));
        assert!(!health.up || device.driver.is_some());
        assert!(device.unit.is_none() || matches!(device.kind, DeviceKind::Dsa | DeviceKind::Iaa));
    }
    for finding in findings(&Probe::with_root(root).host()) {
        if !finding.id.starts_with("device.") {
            continue;
        }
        assert!(!finding.detail.contains(char::is_control), "{finding:?}");
        assert!(!finding.id.contains(char::is_control), "{finding:?}");
        // Only names that were looked at, and our own words, get into commands.
        let fix = finding.fix.unwrap_or_default();
        assert!(fix.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '…'), "{fix}");
    }
}

fn tree() -> &'static PathBuf {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| std::env::temp_dir().join(format!("hasten-fuzz-devices-{}", std::process::id())))
}
