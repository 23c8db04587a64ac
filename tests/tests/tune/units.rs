//! Units of systemd as the service.

use std::fs;

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
