//! Devices and their telemetry from trees that look like sysfs and debugfs.

use std::path::Path;

use hasten_device::counters::Counters;
use hasten_device::discovery::{Discovery, Heartbeat};
use hasten_device::health::{Health, heartbeat_of};
use hasten_device::{DeviceKind, Fault, Root};

const PCI: &str = "sys/bus/pci/devices/0000:6b:00.0";
const DEBUG: &str = "sys/kernel/debug/qat_4xxx_0000:6b:00.0";

fn write(root: &Path, base: &str, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(base).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => std::fs::write(path, format!("{content}\n")).unwrap(),
        }
    }
}

fn health(root: &Path) -> Health {
    let root = Root::new(root);
    Health::read(&root, &Discovery::read(&root).devices[0])
}

fn qat(root: &Path) {
    let files =
        [("vendor", "0x8086"), ("device", "0x4940"), ("driver", "-> ../drivers/4xxx"), ("qat/state", "up")];
    write(root, PCI, &files);
}

#[test]
fn slices_of_qat_are_read_where_telemetry_is_on() {
    let root = tempfile::tempdir().unwrap();
    qat(root.path());
    write(root.path(), DEBUG, &[("heartbeat/status", "0"), ("telemetry/control", "0")]);
    let off = health(root.path());
    assert!(off.up && off.utilization.is_empty());
    assert!(off.hint.unwrap().contains(&format!("echo 1 > /{DEBUG}/telemetry/control")));
    let data = "sample_cnt 12\nutil_pke0            37\nutil_cpr0   250\nutil_dcpr1 x\nutil_ 3\nutil_a\u{1b}b 3\nexec_pke0 9";
    write(root.path(), DEBUG, &[("telemetry/control", "2"), ("telemetry/device_data", data)]);
    let on = health(root.path());
    let parts: Vec<_> = on.utilization.iter().map(|slice| (slice.part.as_str(), slice.ratio)).collect();
    assert_eq!(parts, [("pke0", 0.37), ("cpr0", 1.0)]);
    assert_eq!((on.heartbeat, on.hint), (Some(Heartbeat::Alive), None));
}

#[test]
fn a_device_is_up_when_nothing_speaks_against_it() {
    let root = tempfile::tempdir().unwrap();
    qat(root.path());
    assert!(health(root.path()).up);
    write(root.path(), DEBUG, &[("heartbeat/status", "-1")]);
    let lost = health(root.path());
    assert_eq!((lost.up, lost.heartbeat), (false, Some(Heartbeat::Lost)));
    write(root.path(), DEBUG, &[("heartbeat/status", "0")]);
    write(root.path(), PCI, &[("qat/state", "down")]);
    assert!(!health(root.path()).up);
    std::fs::remove_file(root.path().join(PCI).join("driver")).unwrap();
    write(root.path(), PCI, &[("qat/state", "up")]);
    assert!(!health(root.path()).up);
}

#[test]
fn firmware_has_a_version_where_the_driver_tells() {
    let root = tempfile::tempdir().unwrap();
    qat(root.path());
    let firmware =
        || Discovery::read(&Root::new(root.path())).devices[0].qat.as_ref().unwrap().firmware.clone();
    assert_eq!(firmware(), None);
    write(root.path(), DEBUG, &[("version/fw", "4.19.0")]);
    assert_eq!(firmware().as_deref(), Some("4.19.0"));
}

#[test]
fn queues_tell_how_full_they_are() {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("vendor", "0x8086"),
        ("device", "0x0cfe"),
        ("driver", "-> ../drivers/idxd"),
        ("iax1/state", "enabled"),
        ("iax1/wq1.0/state", "enabled"),
        ("iax1/wq1.0/size", "64"),
        ("iax1/wq1.0/occupancy", "16"),
        ("iax1/wq1.1/state", "disabled"),
        ("iax1/wq1.1/size", "64"),
        ("iax1/wq1.1/occupancy", "16"),
        ("iax1/wq1.2/state", "enabled"),
        ("iax1/wq1.2/size", "0"),
        ("iax1/wq1.2/occupancy", "16"),
    ];
    write(root.path(), PCI, &files);
    let health = health(root.path());
    let parts: Vec<_> = health.utilization.iter().map(|queue| (queue.part.as_str(), queue.ratio)).collect();
    assert_eq!(parts, [("wq1.0", 0.25)]);
}

#[test]
fn what_stands_in_files_is_cut_and_cleaned() {
    let root = tempfile::tempdir().unwrap();
    let long = "x".repeat(10_000);
    let files = [
        ("vendor", "0x8086"),
        ("device", "0x4940"),
        ("qat/state", "u\u{1b}[31mp"),
        ("qat/cfg_services", &*long),
    ];
    write(root.path(), PCI, &files);
    std::fs::create_dir_all(root.path().join(PCI).join("numa_node")).unwrap();
    let found = Discovery::read(&Root::new(root.path())).devices;
    assert_eq!((found[0].kind, found[0].numa_node), (DeviceKind::Qat, None));
    assert_eq!(found[0].state.as_deref(), Some("u[31mp"));
    assert_eq!(found[0].qat.as_ref().unwrap().services.as_ref().unwrap().len(), 64);
}

#[test]
fn a_pipe_in_the_tree_stops_nobody() {
    let root = tempfile::tempdir().unwrap();
    qat(root.path());
    let pipe = root.path().join(PCI).join("numa_node");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(Discovery::read(&Root::new(root.path())).devices[0].numa_node, None);
}

#[test]
fn no_session_is_made_with_a_device_whose_heartbeat_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let beat = || heartbeat_of(&Root::new(root.path()), DeviceKind::Qat);
    assert_eq!(beat(), Ok(()));
    qat(root.path());
    // Only root may read it.
    assert_eq!(beat(), Ok(()));
    write(root.path(), DEBUG, &[("heartbeat/status", "-1")]);
    assert_eq!(beat(), Err(Fault::HeartbeatLost));
    assert_eq!(heartbeat_of(&Root::new(root.path()), DeviceKind::Iaa), Ok(()));
    // One more working device is enough.
    let second =
        [("vendor", "0x8086"), ("device", "0x4940"), ("driver", "-> ../drivers/4xxx"), ("qat/state", "up")];
    write(root.path(), "sys/bus/pci/devices/0000:70:00.0", &second);
    assert_eq!(beat(), Ok(()));
}

/// The device is simulated, and what stands in for its counters is a clock of the kernel that counts nanoseconds, whatever it is asked
/// for. The files, the system call and the reading are real.
#[test]
fn counters_are_opened_as_the_kernel_describes_them() {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("vendor", "0x8086"),
        ("device", "0x0cfe"),
        ("driver", "-> ../drivers/idxd"),
        ("iax1/state", "enabled"),
    ];
    write(root.path(), PCI, &files);
    let open = || {
        let root = Root::new(root.path());
        Counters::open(&root, Discovery::read(&root).devices[0].unit.as_ref().unwrap())
    };
    assert!(open().is_none(), "this kernel has none");
    const SOURCE: &str = "sys/bus/event_source/devices/iax1";
    let files = [
        ("type", "1"),
        ("cpumask", "0"),
        ("format/event_category", "config1:0-3"),
        ("format/event", "config1:4-31"),
    ];
    write(root.path(), SOURCE, &files);
    match open().unwrap() {
        Ok(counters) => {
            let first = counters.read().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
            let second = counters.read().unwrap();
            assert!(second.descriptors > first.descriptors && second.bytes_read > first.bytes_read);
            // Pieces of 32 bytes.
            assert_eq!((second.bytes_read % 32, second.bytes_written % 32), (0, 0));
        }
        // Who may not is told so, and not that there is nothing.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}"),
    }
    // No such source, or no room for an event: an error, and no panic.
    write(root.path(), SOURCE, &[("type", "4000000000")]);
    assert!(open().unwrap().is_err());
    write(root.path(), SOURCE, &[("type", "1"), ("format/event", "config1:4-5")]);
    assert_eq!(open().unwrap().unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    write(root.path(), SOURCE, &[("format/event", "junk")]);
    assert!(open().is_none());
}
