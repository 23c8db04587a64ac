//! `hasten run`: what it says about accelerator devices, and passes on.

mod support;

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use support::Place;

/// The simulated libraries, built once for all tests of this crate.
fn libraries() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("devices");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/devices.sh");
    let output = Command::new(script).arg(&folder).output().expect("scripts/devices.sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// A place with a program that compresses, and a host with one IAA.
fn place() -> Place {
    let place = Place::new();
    place.add_packer();
    let device = place.path("host/sys/bus/pci/devices/0000:6a:02.0");
    std::fs::create_dir_all(device.join("iax1/wq1.0")).unwrap();
    for (name, text) in [
        ("vendor", "0x8086"),
        ("device", "0x0cfe"),
        ("iax1/state", "enabled"),
        ("iax1/wq1.0/state", "enabled"),
    ] {
        std::fs::write(device.join(name), text).unwrap();
    }
    symlink("../../../../bus/pci/drivers/idxd", device.join("driver")).unwrap();
    place
}

/// The output on standard error with these variables.
fn said(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = place.hasten(&[&["run"], arguments, &["--only", "gzip", "--", "./packer"]].concat());
    command.envs(variables.iter().copied()).env("HASTEN_SYSFS_ROOT", place.path("host"));
    let output = command.output().unwrap();
    let plan = if arguments.contains(&"--dry-run") { output.stdout } else { Vec::new() };
    place.normalise(&[output.stderr, plan].concat())
}

#[test]
fn nothing_is_said_of_devices_that_nobody_asked_for() {
    let place = place();
    for arguments in [&[][..], &["--dry-run"]] {
        let said = said(&place, arguments, &[]);
        assert!(!said.contains("qpl") && !said.contains("device"), "{said}");
    }
}

#[test]
fn an_engine_that_is_tried_and_one_that_is_not_are_told_with_reasons() {
    let place = place();
    let said = said(&place, &[], &[("HASTEN_DEVICES", "qatzip,qpl")]);
    let lines: Vec<_> = said.lines().filter(|line| line.contains("tried")).collect();
    assert_eq!(
        lines,
        [
            "hasten: qatzip is not tried for gzip: there is no QAT device",
            "hasten: qpl is tried for gzip: HASTEN_DEVICES=qatzip,qpl asks for it, whether or not it pays; \
             the IAA device 0000:6a:02.0 is up",
        ]
    );
}

#[test]
fn dry_run_opens_the_libraries_and_shows_what_is_set() {
    let (place, libraries) = (place(), libraries());
    place.write("hasten.toml", &format!("[devices]\nuse = 'auto'\nlibraries = '{}'", libraries.display()));
    let text = said(&place, &["--dry-run"], &[]);
    let qpl = text.lines().skip_while(|line| !line.starts_with("qpl is tried: whole deflate streams by IAA"));
    let qpl: Vec<_> = qpl.take_while(|line| !line.is_empty()).collect();
    assert!(
        qpl.contains(&"  + [devices] use in hasten.toml: where it takes less CPU time than software"),
        "{text}"
    );
    assert!(qpl.contains(&"  + libqpl.so.1 opens, and is simulated: no device is behind it"), "{text}");
    let by_hand = text.lines().last().unwrap();
    assert!(by_hand.contains("HASTEN_DEVICES=auto HASTEN_DEVICE_LIBRARIES=/"), "{by_hand}");

    let empty = tempfile::tempdir().unwrap();
    let text = said(
        &place,
        &["--dry-run"],
        &[("HASTEN_DEVICE_LIBRARIES", empty.path().to_str().unwrap()), ("HASTEN_DEVICES", "qpl")],
    );
    assert!(text.contains("qpl is not tried"), "{text}");
    assert!(text.contains("- libqpl.so.1 is not installed: get Intel QPL 1.x"), "{text}");
}

#[test]
fn the_file_reaches_the_process_and_the_environment_wins() {
    let place = place();
    place.write("hasten.toml", "[devices]\nuse = ['qpl']\ntimeout_ms = 30\nretry_ms = [10, 20]");
    let seen = |variables: &[(&str, &str)]| {
        let mut command = place.hasten(&["run", "-q", "--", "sh", "-c", "env | grep ^HASTEN_DEVICE | sort"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let own = "HASTEN_DEVICES=qpl\nHASTEN_DEVICE_RETRY_MS=10-20\nHASTEN_DEVICE_TIMEOUT_MS=30\n";
    assert_eq!(seen(&[]), own);
    let other = own.replace("=qpl", "=auto").replace("=30", "=40");
    assert_eq!(seen(&[("HASTEN_DEVICES", "auto"), ("HASTEN_DEVICE_TIMEOUT_MS", "40")]), other);
}

#[test]
fn a_wrong_value_starts_nothing() {
    let place = place();
    for (name, value, problem, fix) in [
        ("HASTEN_DEVICES", "qatzp", "unknown engine `qatzp`", "did you mean `qatzip`?"),
        ("HASTEN_DEVICE_TIMEOUT_MS", "0", "`0` is no number of milliseconds", "write such a number"),
        ("HASTEN_DEVICE_RETRY_MS", "9", "`9` is not FIRST-LONGEST", "write such as 250-30000"),
        ("HASTEN_DEVICE_LIBRARIES", "/no/such/folder", "cannot find /no/such/folder", "name a folder"),
    ] {
        let mut command = place.hasten(&["run", "--", "./packer"]);
        let output = command.env(name, value).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("{name}: {problem}")) && said.contains(fix), "{said}");
    }
}
