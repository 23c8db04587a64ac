//! `hasten bench` with Envoy.

use std::ffi::OsStr;
use std::process::Command;

use hasten_tests::product;
use serde_json::{Value, json};

use crate::subject::{RELEASES, build};

/// The report of a comparison with so many rows, in which nothing has failed.
fn report(arguments: &[&str], count: usize) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let envoy = build(RELEASES[0]).parent().expect("a directory").to_owned();
    let path = [envoy.as_os_str(), &std::env::var_os("PATH").unwrap_or_default()].join(OsStr::new(":"));
    let output = Command::new(product::hasten())
        .arg("bench")
        .args(arguments)
        .args(["--quick", "--json", "--out"])
        .arg(directory.path())
        .env("PATH", path)
        .output()
        .expect("hasten");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["host"]["envoy"], &report["complete"]), (&json!(RELEASES[0]), &json!(true)));
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), count);
    for (row, side) in rows.iter().flat_map(|row| [(row, "stock"), (row, "hasten")]) {
        assert_eq!(row[side]["failures"], json!(0), "{row}");
    }
    report
}

#[test]
fn handshakes_of_an_envoy_on_the_path_are_measured() {
    let report = report(&["tls", "--server", "envoy", "--cert", "p-384", "--concurrency", "32"], 1);
    let row = &report["rows"][0];
    assert_eq!((&row["server"], &row["cert"]), (&json!("envoy"), &json!("p-384")));
}

#[test]
fn round_trips_are_measured() {
    let arguments = ["envoy", "--work", "round-trip", "--cert", "p-256", "--concurrency", "32"];
    let report = report(&arguments, 2);
    for (row, window) in report["rows"].as_array().expect("rows").iter().zip([json!(null), json!("full")]) {
        assert_eq!(
            (&row["work"], &row["cert"], &row["size"], &row["window"]),
            (&json!("round-trip"), &json!("p-256"), &json!(102_400), &window)
        );
    }
}
