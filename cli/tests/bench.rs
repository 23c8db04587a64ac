//! `hasten bench`: what goes to which stream, and what it says when it cannot start.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use assert_cmd::Command;

/// On any CPU, with a build without libraries: both sides are stock.
fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("hasten").unwrap();
    command
        .args(["bench", "tls"])
        .args(arguments)
        .env_remove("COLUMNS")
        .env("HASTEN_DISABLE", "tls")
        .output()
        .unwrap()
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
    assert!(progress.contains("[1/1] nginx · p-256 · tls1.3 · x25519 · 2 conn.: "), "{progress}");
}

/// As on a host whose nginx uses another OpenSSL.
#[test]
fn a_server_that_would_not_be_accelerated_is_not_compared_with_itself() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("report");
    for (variable, value, why) in [
        ("HASTEN_ONLY", "gzip", "--only does not name it"),
        ("HASTEN_WITHOUT", "tls", "tls is off for nginx here"),
    ] {
        let mut command = Command::cargo_bin("hasten").unwrap();
        command.args(["bench", "tls", "--quick", "--out", out.to_str().unwrap()]).env(variable, value);
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("nothing to compare") && said.contains(why) && said.contains("fix:"), "{said}");
        assert!(output.stdout.is_empty() && !out.exists(), "{said}");
    }
}

/// It is not in Debian, and a HAProxy on OpenSSL by its name would be compared with itself.
#[test]
fn haproxy_on_aws_lc_is_there_and_is_what_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = || {
        let mut command = Command::cargo_bin("hasten").unwrap();
        command.args(["bench", "tls", "--server", "haproxy-aws-lc"]).env("PATH", dir.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let missing = refusal();
    assert!(missing.contains("haproxy-aws-lc is not installed"), "{missing}");
    assert!(missing.contains("`scripts/haproxy-aws-lc.sh`"), "{missing}");

    std::os::unix::fs::symlink("/usr/sbin/haproxy", dir.path().join("haproxy-aws-lc")).unwrap();
    let other = refusal();
    assert!(other.contains("haproxy-aws-lc links OpenSSL 3.") && other.contains(", not AWS-LC"), "{other}");
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
fn a_build_to_compare_with_that_is_not_complete_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for workload in ["tls", "gzip"] {
        let mut command = Command::cargo_bin("hasten").unwrap();
        let output = command.args(["bench", workload, "--against"]).arg(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(message.contains("/hasten is not there") && message.contains("make build"), "{message}");
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
        .env("HASTEN_DISABLE", "tls")
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

#[test]
fn kill_9_leaves_no_server_and_no_folder() {
    let (dir, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folders = || std::fs::read_dir(temporary.path()).unwrap().count();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hasten"));
    command.args([
        "bench",
        "tls",
        "--cert",
        "p-256",
        "--server",
        "nginx",
        "--out",
        dir.path().to_str().unwrap(),
    ]);
    command
        .env("HASTEN_DISABLE", "tls")
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The certificates, and one for each of the two servers.
    until("servers", || folders() == 3 && servers_in(temporary.path()).len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("their end", || folders() == 0 && servers_in(temporary.path()).is_empty());
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "still waiting for {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// nginx masters and workers with their folder in this one: a worker has the master's files open.
fn servers_in(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_server = |pid: &String| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let output = std::fs::read_link(format!("/proc/{pid}/fd/1")).unwrap_or_default();
        name.trim() == "nginx" && output.starts_with(folder)
    };
    pids.filter(is_server).collect()
}

#[test]
fn who_wants_all_workloads_quickly_is_told_that_they_are() {
    let mut command = Command::cargo_bin("hasten").unwrap();
    let output = command.args(["bench", "--quick"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`hasten bench` alone is the quick run of all workloads"), "{said}");
}
