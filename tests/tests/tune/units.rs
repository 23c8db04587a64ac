//! systemd units as the service.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::tune::{Tune, said};

#[test]
fn the_service_of_a_unit_is_tuned() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    let unit = tune.folder().join("planted.service");
    let (program, port) = (env!("CARGO_BIN_EXE_planted"), tune.port());
    let text =
        format!("[Service]\nExecStart={program} ${{PORT}}\nEnvironment=PORT={port}\nProtectSystem=full\n");
    fs::write(&unit, text).unwrap();
    let output = tune.driven().arg("--unit").arg(&unit).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(tune.report()["verdict"], "better", "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("planted.service: ProtectSystem= is not applied here"), "{said}");
    assert!(
        said.contains("systemctl edit planted.service") && said.contains("hasten run --config"),
        "{said}"
    );
    assert!(tune.is_stopped());
}

#[test]
fn a_unit_that_is_not_there_is_named() {
    let tune = Tune::of(&[], "60s");
    let output = tune.driven().args(["--unit", "no-such-unit"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("no-such-unit") && said(&output).contains("fix:"), "{}", said(&output));
    assert!(!tune.out().exists());
}

#[test]
fn who_is_refused_keeps_the_last_session() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let unit = tune.folder().join("planted.service");
    fs::write(&unit, "[Service]\nExecStart=/bin/sleep 600\n").unwrap();
    // A systemd that runs the unit.
    let systemctl = tune.folder().join("systemctl");
    fs::write(&systemctl, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let last = tune.out().join("session.json");
    fs::create_dir(tune.out()).unwrap();
    fs::write(&last, "the last session").unwrap();
    let path = format!("{}:{}", tune.folder().display(), std::env::var("PATH").unwrap());
    let output = tune.driven().arg("--unit").arg(&unit).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("planted.service is running"), "{}", said(&output));
    assert_eq!(fs::read_to_string(&last).unwrap(), "the last session");
    assert!(
        !tune.folder().join("hasten-tune.1").exists() && !tune.folder().join("hasten-tune.logs").exists()
    );
}

#[test]
fn a_service_that_does_not_start_leaves_the_last_session() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let last = tune.out().join("session.json");
    fs::create_dir(tune.out()).unwrap();
    fs::write(&last, "the last session").unwrap();
    let output = tune.driven().args(["--", "sh", "-c", "exit 3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(fs::read_to_string(&last).unwrap(), "the last session");
    assert!(!tune.folder().join("hasten-tune.1").exists());
}
