//! `hasten selftest`, with the simulated libraries of `tests/devices` for the devices.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// The simulated libraries, built once for all tests of this crate.
fn libraries() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("devices");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/devices.sh");
    let output = Command::new(script).arg(&folder).output().expect("scripts/devices.sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn hasten(arguments: &[&str], variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(HASTEN);
    command.arg("selftest").args(arguments).envs(variables.iter().copied());
    command.output().expect("hasten runs")
}

fn engines(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], 1);
    report["engines"].as_array().unwrap().clone()
}

fn results(engines: &[Value], class: &str) -> Vec<(String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let of_class = |row: &&Value| (row["class"] == "software") == (class == "software");
    engines.iter().filter(of_class).map(|row| (text(row, "engine"), text(row, "result"))).collect()
}

/// Injected faults: pairs of an engine's number and a fault's, as in `tests/devices/layout.h`.
fn control(folder: &Path, faults: &[(usize, u32)]) -> PathBuf {
    let mut bytes = vec![0; 8 + 40 * 5];
    bytes[..4].copy_from_slice(&0x6d69_7368_u32.to_le_bytes());
    for (engine, fault) in faults {
        bytes[8 + 40 * engine..][..4].copy_from_slice(&fault.to_le_bytes());
    }
    let path = folder.join("control");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn engines_in_software_pass_and_devices_are_not_asked() {
    let output = hasten(&["--json"], &[]);
    assert!(output.status.success());
    let engines = engines(&output);
    let results = results(&engines, "software");
    assert_eq!(engines.len(), results.len());
    let names: Vec<_> = results.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["multibuffer", "graviola", "isal", "libdeflate", "bucket", "zlib-rs"]);
    assert!(results[1..].iter().all(|(_, result)| result == "passed"), "{results:?}");
}

#[test]
fn what_the_cpu_lacks_is_not_here() {
    let output = Command::new(HASTEN).arg("selftest").env("HASTEN_CPU_DISABLE_IFMA", "1").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("multibuffer")).unwrap();
    assert!(line.contains("- not here") && line.contains("AVX-512 IFMA"), "{line}");
}

#[test]
fn simulated_devices_pass_and_are_called_simulated() {
    let libraries = libraries();
    let output = hasten(&["--devices", "--json"], &[("HASTEN_DEVICE_LIBRARIES", &libraries)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let engines = engines(&output);
    let results = results(&engines, "devices");
    let names: Vec<_> = results.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["qatzip", "qpl", "qat"]);
    assert!(results.iter().all(|(_, result)| result == "passed"), "{engines:?}");
    assert!(engines.iter().all(|row| row["simulated"] == (row["class"] != "software")));
    let text = hasten(&["--devices"], &[("HASTEN_DEVICE_LIBRARIES", &libraries)]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("simulated"));
}

#[test]
fn a_device_that_fails_is_told_and_the_others_still_pass() {
    let libraries = libraries();
    for (engine, fault, name, why) in
        [(0, 5, "qatzip", "bad-output"), (1, 1, "qpl", "gone"), (3, 5, "qat", "bad-output")]
    {
        let folder = tempfile::tempdir().unwrap();
        let control = control(folder.path(), &[(engine, fault)]);
        let variables = [
            ("HASTEN_DEVICE_LIBRARIES", libraries.as_path()),
            ("HASTEN_SIMULATED_DEVICES", control.as_path()),
        ];
        let output = hasten(&["--devices", "--json"], &variables);
        assert_eq!(output.status.code(), Some(1), "{name}");
        for row in engines(&output) {
            let is_this = row["engine"] == name;
            assert_eq!(row["result"] == "failed", is_this, "{row}");
            assert!(!is_this || row["detail"].as_str().unwrap().contains(why), "{row}");
        }
    }
}

#[test]
fn libraries_that_are_missing_are_not_here_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let output = hasten(&["--devices", "--json"], &[("HASTEN_DEVICE_LIBRARIES", folder.path())]);
    assert!(output.status.success());
    let results = results(&engines(&output), "devices");
    assert!(results.iter().all(|(_, result)| result == "not-here"), "{results:?}");
}

#[test]
fn libraries_for_memory_and_storage_are_tested_where_one_says() {
    let folder = tempfile::tempdir().unwrap();
    let [storage, libraries] = ["storage", "libraries"].map(|name| folder.path().join(name));
    for folder in [&storage, &libraries] {
        std::fs::create_dir(folder).unwrap();
    }
    // Without them, none is here.
    let storage = storage.to_str().unwrap();
    let arguments = ["--storage", storage, "--json"];
    let variables = [("HASTEN_LIBDIR", libraries.as_path()), ("HASTEN_DISABLE", Path::new("all"))];
    let output = hasten(&arguments, &variables);
    assert!(output.status.success());
    let engines = engines(&output);
    let preloaded: Vec<_> = engines.iter().filter(|row| row["class"] == "preloaded").collect();
    let names: Vec<_> = preloaded.iter().map(|row| row["engine"].as_str().unwrap()).collect();
    assert_eq!(names, ["tier", "readcache", "wal"]);
    assert!(preloaded.iter().all(|row| row["result"] == "not-here"), "{preloaded:?}");
    assert_eq!(std::fs::read_dir(storage).unwrap().count(), 0, "nothing is left there");
    let wrong = hasten(&["--storage", "/nowhere"], &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--storage: /nowhere is no directory"));
}
