//! What `hasten check` says about accelerators in every state they are found in, from trees that look like sysfs.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use hasten_plan::findings::{Finding, State, findings};
use hasten_probe::Probe;

const PF: &str = "sys/bus/pci/devices/0000:6b:00.0";
const VF: &str = "sys/bus/pci/devices/0000:6b:00.1";

/// Files of a machine: `-> target` makes a symbolic link.
#[derive(Clone, Default)]
struct Tree(Vec<(String, String)>);

impl Tree {
    fn with(mut self, base: &str, files: &[(&str, &str)]) -> Self {
        for (name, content) in files {
            let path = if base.is_empty() { (*name).to_owned() } else { format!("{base}/{name}") };
            self.0.retain(|(other, _)| *other != path);
            self.0.push((path, (*content).to_owned()));
        }
        self
    }

    fn without(mut self, path: &str) -> Self {
        self.0.retain(|(other, _)| other != path && !other.starts_with(&format!("{path}/")));
        self
    }

    fn findings(&self) -> Vec<Finding> {
        self.findings_after(|_| {})
    }

    fn findings_after(&self, change: impl Fn(&Path)) -> Vec<Finding> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in &self.0 {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match content.strip_prefix("-> ") {
                Some(target) => symlink(target, path).unwrap(),
                None => std::fs::write(path, format!("{content}\n")).unwrap(),
            }
        }
        change(root.path());
        findings(&Probe::with_root(root.path()).host())
    }

    /// The state of a kind, and the message and fix for each of its devices.
    fn of(&self, kind: &str) -> (State, Vec<(State, String, String)>) {
        of(&self.findings(), kind)
    }

    #[track_caller]
    fn is_hindered(&self, kind: &str, why: &str, fix: &str) {
        is_hindered(&self.findings(), kind, why, fix);
    }
}

fn of(findings: &[Finding], kind: &str) -> (State, Vec<(State, String, String)>) {
    let id = format!("device.{kind}");
    let summary = findings.iter().find(|finding| finding.id == id).expect("a row for every kind");
    let rows = findings.iter().filter(|finding| finding.id.starts_with(&format!("{id}.")));
    let row = |row: &Finding| (row.state, row.detail.clone(), row.fix.clone().unwrap_or_default());
    (summary.state, rows.map(row).collect())
}

#[track_caller]
fn is_hindered(findings: &[Finding], kind: &str, why: &str, fix: &str) {
    let (state, rows) = of(findings, kind);
    assert_eq!(state, State::Limited, "{rows:?}");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let (state, detail, cure) = &rows[0];
    assert_eq!(*state, State::Limited);
    assert!(detail.contains(why), "{detail}");
    assert!(cure.contains(fix), "{cure}");
    let summary = findings.iter().find(|finding| finding.id == format!("device.{kind}")).unwrap();
    assert_eq!(summary.fix.as_deref(), Some(&**cure));
}

/// A user with groups and a limit for locked memory.
fn user(tree: Tree, uid: u32, groups: &str, memlock: &str) -> Tree {
    let status =
        format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nGroups:\t{groups}\n");
    let limits = format!(
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         {memlock}    {memlock}    bytes"
    );
    tree.with("proc/self", &[("status", &format!("{status}CapEff:\t0000000000000000")), ("limits", &limits)])
}

/// A working one, for a user who may use it.
fn qat() -> Tree {
    let pf = [
        ("vendor", "0x8086"),
        ("device", "0x4940"),
        ("driver", "-> ../../../bus/pci/drivers/4xxx"),
        ("numa_node", "1"),
        ("qat/state", "up"),
        ("qat/cfg_services", "asym;dc"),
        ("qat/auto_reset", "off"),
        ("sriov_numvfs", "1"),
        ("sriov_totalvfs", "16"),
    ];
    let vf = [
        ("vendor", "0x8086"),
        ("device", "0x4941"),
        ("driver", "-> ../../../bus/pci/drivers/vfio-pci"),
        ("physfn", "-> ../0000:6b:00.0"),
        ("iommu_group", "-> ../../../../kernel/iommu_groups/42"),
    ];
    let tree = Tree::default().with(PF, &pf).with(VF, &vf).with("dev/vfio", &[("42", "")]);
    tree.with("sys/kernel/debug/qat_4xxx_0000:6b:00.0", &[("heartbeat/status", "0")])
}

fn iaa() -> Tree {
    let device = [
        ("vendor", "0x8086"),
        ("device", "0x0cfe"),
        ("driver", "-> ../../../bus/pci/drivers/idxd"),
        ("iax1/state", "enabled"),
        ("iax1/pasid_enabled", "1"),
        ("iax1/max_work_queues_size", "128"),
        ("iax1/group1.0/engines", "engine1.0"),
        ("iax1/engine1.0/group_id", "0"),
        ("iax1/engine1.1/group_id", "-1"),
        ("iax1/wq1.0/state", "enabled"),
        ("iax1/wq1.0/mode", "shared"),
        ("iax1/wq1.0/type", "user"),
        ("iax1/wq1.0/driver_name", "user"),
        ("iax1/wq1.0/group_id", "0"),
        ("iax1/wq1.0/size", "64"),
        ("iax1/wq1.1/state", "disabled"),
        ("iax1/wq1.1/type", "none"),
        ("iax1/wq1.1/group_id", "-1"),
    ];
    Tree::default().with(PF, &device).with("dev/iax", &[("wq1.0", "")])
}

#[test]
fn no_device_is_absent_and_nothing_else() {
    let tree = Tree::default().with(PF, &[("vendor", "0x1af4"), ("device", "0x4940")]);
    for kind in ["qat", "iaa", "dsa", "dlb"] {
        assert_eq!(tree.of(kind), (State::Absent, vec![]));
    }
}

#[test]
fn a_qat_in_order_is_available_and_tells_what_it_is_configured_for() {
    let (state, rows) = qat().of("qat");
    assert_eq!(state, State::Available);
    let expected = "4xxx, up, services asym;dc, 1 VFs, NUMA node 1";
    assert_eq!(rows, [(State::Available, expected.to_owned(), String::new())]);
}

#[test]
fn each_thing_that_keeps_qat_from_being_used_has_its_fix() {
    let with = |name: &str, value: &str| qat().with(PF, &[(name, value)]);
    qat().without(&format!("{PF}/driver")).is_hindered("qat", "no driver", "modprobe qat_4xxx");
    let tree = with("device", "0x4946").without(&format!("{PF}/driver"));
    tree.is_hindered("qat", "no driver", "modprobe qat_420xx");
    with("driver", "-> ../drivers/vfio-pci").is_hindered(
        "qat",
        "one user",
        "driverctl unset-override 0000:6b:00.0",
    );
    with("qat/state", "down").is_hindered(
        "qat",
        "down",
        "echo up > /sys/bus/pci/devices/0000:6b:00.0/qat/state",
    );
    let wrong = "echo 'asym;dc' > /sys/bus/pci/devices/0000:6b:00.0/qat/cfg_services";
    with("qat/cfg_services", "sym").is_hindered("qat", "neither public keys", wrong);
    with("qat/cfg_services", "dcc").is_hindered("qat", "neither public keys", wrong);
    for services in ["dc", "sym;asym", "asym"] {
        assert_eq!(with("qat/cfg_services", services).of("qat").0, State::Available, "{services}");
    }
    let sriov = "echo 16 > /sys/bus/pci/devices/0000:6b:00.0/sriov_numvfs";
    with("sriov_numvfs", "0").is_hindered("qat", "no virtual functions are switched on", sriov);
    let tree = with("sriov_numvfs", "0").with(PF, &[("sriov_totalvfs", "0")]);
    tree.is_hindered("qat", "no virtual functions are possible", "intel_iommu=on");
}

#[test]
fn a_lost_heartbeat_says_how_to_reset_the_device() {
    let debug = "sys/kernel/debug/qat_4xxx_0000:6b:00.0";
    let tree = qat().with(debug, &[("heartbeat/status", "-1")]);
    tree.is_hindered(
        "qat",
        "firmware does not answer",
        "echo down > /sys/bus/pci/devices/0000:6b:00.0/qat/state",
    );
    tree.is_hindered("qat", "", "echo on > /sys/bus/pci/devices/0000:6b:00.0/qat/auto_reset");
}

#[test]
fn virtual_functions_need_their_driver_and_one_is_enough() {
    let tree = qat().without(&format!("{VF}/driver"));
    tree.is_hindered("qat", "0000:6b:00.1 has no driver", "driverctl set-override 0000:6b:00.1 vfio-pci");
    let kernel = qat().with(VF, &[("driver", "-> ../../../bus/pci/drivers/4xxxvf")]);
    kernel.is_hindered("qat", "kernel's driver 4xxxvf", "driverctl set-override 0000:6b:00.1 vfio-pci");
    let second = [("vendor", "0x8086"), ("device", "0x4941"), ("physfn", "-> ../0000:6b:00.0")];
    let tree = qat().with("sys/bus/pci/devices/0000:6b:00.2", &second);
    assert_eq!(tree.of("qat").0, State::Available);
    // In a virtual machine there is nothing but the function.
    let guest = qat().without(PF).without(&format!("{VF}/physfn"));
    assert_eq!(guest.of("qat").0, State::Available);
    let bare = guest.without(&format!("{VF}/driver"));
    bare.is_hindered("qat", "no driver", "driverctl set-override 0000:6b:00.1 vfio-pci");
}

#[test]
fn a_user_without_permission_is_told_which_file_and_which_group() {
    let tree = user(qat(), 4_000_001, "", "unlimited");
    let with_mode = |tree: &Tree, path: &'static str, mode: u32| {
        tree.findings_after(move |root| {
            std::fs::set_permissions(root.join(path), Permissions::from_mode(mode)).unwrap();
        })
    };
    is_hindered(&with_mode(&tree, "dev/vfio/42", 0o600), "qat", "no permission to use /dev/vfio/42", "chgrp");
    assert_eq!(of(&with_mode(&tree, "dev/vfio/42", 0o666), "qat").0, State::Available);
    let tree = user(iaa(), 4_000_001, "", "8388608");
    is_hindered(
        &with_mode(&tree, "dev/iax/wq1.0", 0o600),
        "iaa",
        "as user 4000001",
        "chgrp GROUP /dev/iax/wq1.0",
    );
    // A member of the file's group.
    let group = tempfile::NamedTempFile::new().unwrap().as_file().metadata().unwrap().gid();
    let member = user(iaa(), 4_000_001, &group.to_string(), "8388608");
    assert_eq!(of(&with_mode(&member, "dev/iax/wq1.0", 0o660), "iaa").0, State::Available);
    assert_eq!(of(&with_mode(&member, "dev/iax/wq1.0", 0o640), "iaa").0, State::Limited);
}

#[test]
fn the_one_who_may_do_anything_may_use_the_device() {
    let tree = user(qat(), 4_000_001, "", "65536");
    // CAP_DAC_OVERRIDE and CAP_IPC_LOCK.
    let status = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapEff:\t0000000000004002";
    let tree = tree.with("proc/self", &[("status", status)]);
    let findings = tree.findings_after(|root| {
        std::fs::set_permissions(root.join("dev/vfio/42"), Permissions::from_mode(0o000)).unwrap();
    });
    assert_eq!(of(&findings, "qat").0, State::Available);
}

#[test]
fn vfio_needs_memory_that_may_be_locked_and_shared_queues_do_not() {
    let open = |tree: Tree, path: &'static str| {
        tree.findings_after(move |root| {
            std::fs::set_permissions(root.join(path), Permissions::from_mode(0o666)).unwrap();
        })
    };
    let small = open(user(qat(), 4_000_001, "", "8388608"), "dev/vfio/42");
    is_hindered(&small, "qat", "may lock only 8 MiB", "LimitMEMLOCK=512M");
    let large = open(user(qat(), 4_000_001, "", "1073741824"), "dev/vfio/42");
    assert_eq!(of(&large, "qat").0, State::Available);
    let iaa = open(user(iaa(), 4_000_001, "", "65536"), "dev/iax/wq1.0");
    assert_eq!(of(&iaa, "iaa").0, State::Available);
}

#[test]
fn an_iaa_in_order_is_available() {
    let (state, rows) = iaa().of("iaa");
    assert_eq!(state, State::Available);
    assert_eq!(rows, [(State::Available, "iax, enabled, iax1, 1 queues enabled".to_owned(), String::new())]);
}

#[test]
fn each_thing_that_keeps_queues_from_being_used_has_its_fix() {
    let with = |name: &str, value: &str| iaa().with(PF, &[(name, value)]);
    iaa().without(&format!("{PF}/driver")).is_hindered("iaa", "no driver", "modprobe idxd");
    with("driver", "-> ../drivers/vfio-pci").is_hindered(
        "iaa",
        "vfio-pci",
        "driverctl unset-override 0000:6b:00.0",
    );
    iaa().without(&format!("{PF}/iax1")).is_hindered("iaa", "made no device", "intel_iommu=on,sm_on");
    with("iax1/pasid_enabled", "0").is_hindered("iaa", "PASID", "intel_iommu=on,sm_on");
    let enable = "accel-config enable-device iax1; accel-config enable-wq iax1/wq1.0";
    with("iax1/state", "disabled").is_hindered("iaa", "device is disabled", enable);
    with("iax1/wq1.0/state", "disabled").is_hindered("iaa", "queue wq1.0 is disabled", enable);
    let kernel = with("iax1/wq1.0/type", "kernel").with(PF, &[("iax1/wq1.0/driver_name", "crypto")]);
    kernel.is_hindered("iaa", "the kernel's (wq1.0 has the driver crypto)", "--type=user --driver-name=user");
    let dedicated = "accel-config disable-device iax1; accel-config config-engine iax1/engine1.0 --group-id=0 && \
                     accel-config config-wq iax1/wq1.0 --group-id=0 --mode=shared";
    with("iax1/wq1.0/mode", "dedicated").is_hindered("iaa", "dedicated", dedicated);
    let engine = "accel-config config-engine iax1/engine1.0 --group-id=0";
    with("iax1/engine1.0/group_id", "-1").is_hindered("iaa", "no engine serves queue wq1.0", engine);
    let missing = iaa().without("dev/iax/wq1.0");
    missing.is_hindered("iaa", "/dev/iax/wq1.0 is missing", "udevadm trigger");
}

#[test]
fn a_dsa_without_queues_is_configured_from_nothing() {
    let files = [
        ("vendor", "0x8086"),
        ("device", "0x0b25"),
        ("driver", "-> ../drivers/idxd"),
        ("dsa0/state", "disabled"),
        ("dsa0/max_work_queues_size", "128"),
        ("dsa0/wq0.0/state", "disabled"),
        ("dsa0/wq0.0/type", "none"),
    ];
    let tree = Tree::default().with(PF, &files);
    tree.is_hindered("dsa", "device is disabled", "--wq-size=128 --threshold=127");
    tree.is_hindered("dsa", "", "accel-config enable-device dsa0 && accel-config enable-wq dsa0/wq0.0");
}

#[test]
fn a_queue_in_order_makes_up_for_one_that_is_not() {
    let second = [
        ("iax1/wq1.1/state", "enabled"),
        ("iax1/wq1.1/mode", "dedicated"),
        ("iax1/wq1.1/type", "user"),
        ("iax1/wq1.1/group_id", "0"),
    ];
    assert_eq!(iaa().with(PF, &second).of("iaa").0, State::Available);
}

#[test]
fn a_dlb_needs_its_driver_its_file_and_permission() {
    let dlb = Tree::default().with(PF, &[("vendor", "0x8086"), ("device", "0x2710")]);
    dlb.is_hindered("dlb", "no driver", "dlb2 driver");
    let bound = dlb.with(PF, &[("driver", "-> ../drivers/dlb2")]);
    bound.is_hindered("dlb", "made no device", "modprobe dlb2");
    let named = bound.with(PF, &[("dlb2/dlb0/dev", "240:0")]);
    named.is_hindered("dlb", "/dev/dlb0 is missing", "udevadm trigger");
    let usable = named.with("dev", &[("dlb0", "")]).findings();
    assert_eq!(of(&usable, "dlb").0, State::Available);
    // Nobody should believe that it gains anything.
    let summary = usable.iter().find(|finding| finding.id == "device.dlb").unwrap();
    assert_eq!(summary.detail, "1 device; hasten does not use it");
}

#[test]
fn several_devices_have_a_row_each() {
    let tree = qat().with(
        "sys/bus/pci/devices/0000:70:00.0",
        &[
            ("vendor", "0x8086"),
            ("device", "0x4942"),
            ("driver", "-> ../drivers/4xxx"),
            ("qat/state", "down"),
        ],
    );
    let (state, rows) = tree.of("qat");
    assert_eq!(state, State::Available);
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [State::Available, State::Limited]);
    let findings = tree.findings();
    let summary = findings.iter().find(|finding| finding.id == "device.qat").unwrap();
    assert_eq!((summary.detail.as_str(), summary.fix.as_deref()), ("2 devices, 1 usable", None));
}

#[test]
fn names_that_are_no_names_do_not_get_into_commands() {
    let hostile = "sys/bus/pci/devices/0000:6b:00.0;reboot";
    let files = [("vendor", "0x8086"), ("device", "0x4940")];
    assert_eq!(Tree::default().with(hostile, &files).of("qat"), (State::Absent, vec![]));
    let queue = [("iax1/wq1.0;reboot/state", "disabled"), ("iax1/wq1.0;reboot/type", "user")];
    let (_, rows) = iaa().without(&format!("{PF}/iax1/wq1.0")).with(PF, &queue).of("iaa");
    assert!(!rows[0].1.contains("reboot") && !rows[0].2.contains("reboot"), "{rows:?}");
}
