//! `hasten bench`: what goes to which stream, and what it says when it cannot start.

use std::process::Output;

use assert_cmd::Command;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("hasten").unwrap();
    command.args(["bench", "tls"]).args(arguments).env_remove("COLUMNS").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn json_and_nothing_else_goes_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("report");
    let matrix = ["--cert", "p-256", "--concurrency", "2", "--out", out.to_str().unwrap()];
    let output = bench(&[&["--quick", "--json"], &matrix[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["complete"], true);
    assert_eq!(json["rows"][0]["concurrency"], 2);
    assert_eq!(json["text"]["reproduce"][0], "hasten bench tls --quick --cert p-256 --concurrency 2");
    assert_eq!(output.stdout, std::fs::read(out.join("hasten-report.json")).unwrap());
    assert!(out.join("hasten-report.html").exists());
    let progress = text(&output.stderr);
    assert!(progress.contains("[1/1] nginx p-256 tls1.3 2: "), "{progress}");
}

#[test]
fn values_outside_the_matrix_are_usage_errors() {
    for (arguments, hint) in [
        (["--cert", "rsa-1024"], "rsa-2048"),
        (["--protocol", "tls1.1"], "tls1.2"),
        (["--server", "apache"], "nginx"),
        (["--concurrency", "0"], "1 to 4000"),
    ] {
        let output = bench(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_unwritable_directory_is_named_with_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = bench(&["--quick", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("cannot write") && message.contains("--out"), "{message}");
}
