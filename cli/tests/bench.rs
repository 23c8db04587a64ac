//! `hasten bench`: what goes to which stream, and what it says when it cannot start.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

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

#[test]
fn without_a_workload_what_is_finished_before_ctrl_c_is_on_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = std::process::Command::new(assert_cmd::cargo::cargo_bin("hasten"))
        .args(["bench", "--json", "--out"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(progress.next().as_deref(), Some("hasten bench tls --quick"));
    Command::new("kill").arg("-INT").arg(process.id().to_string()).assert().success();
    let rest: Vec<_> = progress.collect();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(!rest.iter().any(|line| line.starts_with("hasten bench ")), "it went on: {rest:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["workload"], &json["complete"]), (&"all".into(), &false.into()));
    assert_eq!(json["parts"][0]["workload"], "tls");
    assert_eq!(output.stdout, std::fs::read(dir.path().join("hasten-report.json")).unwrap());
    let page = std::fs::read_to_string(dir.path().join("hasten-report.html")).unwrap();
    assert!(page.contains("stopped early"), "{page}");
    assert!(dir.path().join("tls/hasten-report.html").exists());
}

#[test]
fn options_of_the_whole_do_not_stand_before_a_workload() {
    let mut command = Command::cargo_bin("hasten").unwrap();
    let output = command.args(["bench", "--json", "tls", "--quick"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
