//! `hasten top` against a real counter page: that of this test process.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::time::Duration;

use hasten_telemetry::{Algorithm, Event, Reason, init, page, slot, start};
use serde_json::Value;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// Makes this process look like a server under load, once and for all tests.
fn be_a_server() -> String {
    static START: Once = Once::new();
    START.call_once(|| {
        init("tls");
        start();
        page().set_note("test");
        page().set_break_even(Algorithm::P256Sign, 2, 25_000, 48_000);
        std::thread::spawn(|| {
            loop {
                slot().batched(Algorithm::P256Sign, 7, 48_000, 127_000);
                slot().scalar(Algorithm::P256Sign, 1);
                slot().bypass(Reason::Alone);
                slot().event_n(Event::HandshakeFinished, 8);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    std::process::id().to_string()
}

fn top(arguments: &[&str]) -> Output {
    Command::new(HASTEN).arg("top").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn json_reports_rates_of_a_process() {
    let pid = be_a_server();
    let output = top(&["--json", "--interval", "0.3", &pid]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let programs = document["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 1);
    let program = &programs[0];
    assert_eq!(program["processes"][0]["pid"].as_u64(), pid.parse().ok());
    assert_eq!((&program["accelerator"], &program["note"]), (&"tls".into(), &"test".into()));
    let measured = program["interval_s"].as_f64().unwrap();
    assert!((0.3..3.0).contains(&measured), "{measured}");
    let sign = program["algorithms"].as_array().unwrap().iter().find(|a| a["name"] == "p-256-sign").unwrap();
    assert!(sign["per_s"]["batched"].as_f64().unwrap() > 0.0);
    assert_eq!(sign["average_lanes"], 7.0);
    assert_eq!(sign["break_even"]["lanes"], 2);
    let share = program["share"]["batched"].as_f64().unwrap();
    assert!((share - 7.0 / 8.0).abs() < 0.05, "{share}");
}

#[test]
fn once_prints_tables_without_color_when_piped() {
    let pid = be_a_server();
    let output = top(&["--once", "--interval", "0.2", &pid]);
    let text = stdout(&output);
    assert!(output.status.success() && text.contains(&format!("process {pid}")), "{text}");
    assert!(text.contains("p-256-sign") && text.contains("alone"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_process_that_is_not_accelerated_or_not_there_is_explained() {
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    // Until exec has happened the child is still a copy of this process.
    while std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| !exe.ends_with("sleep")) {
        std::thread::yield_now();
    }
    let idle = top(&["--once", &pid]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let gone = top(&["--once", &pid]);
    assert_eq!((idle.status.code(), gone.status.code()), (Some(1), Some(1)));
    assert!(stderr(&idle).contains("is not accelerated"), "{}", stderr(&idle));
    assert!(stderr(&idle).contains("hasten check -- "), "{}", stderr(&idle));
    assert!(stderr(&gone).contains(&format!("no process {pid}")), "{}", stderr(&gone));
}

/// As a user who may not inspect this process.
#[test]
fn processes_of_others_are_counted_and_sudo_is_named() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let pid = be_a_server();
    let folder = tempfile::tempdir().unwrap();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let copy = folder.path().join("hasten");
    std::fs::copy(HASTEN, &copy).unwrap();
    let as_nobody = |arguments: &[&str]| {
        Command::new(&copy)
            .arg("top")
            .args(arguments)
            .uid(64999)
            .gid(64999)
            .current_dir("/")
            .output()
            .unwrap()
    };
    let one = as_nobody(&["--once", &pid]);
    assert_eq!(one.status.code(), Some(1));
    assert!(stderr(&one).contains(&format!("sudo hasten top {pid}")), "{}", stderr(&one));
    let all = as_nobody(&["--json"]);
    assert_eq!(all.status.code(), Some(1));
    assert!(stderr(&all).contains("may not be inspected"), "{}", stderr(&all));
    let document: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert!(document["denied_processes"].as_u64().unwrap() > 0);
    assert_eq!(document["programs"], Value::Array(vec![]));
}

#[test]
fn the_live_view_wants_a_terminal_and_gives_it_back() {
    let pid = be_a_server();
    let piped = top(&[&pid]);
    assert_eq!(piped.status.code(), Some(1));
    assert!(stderr(&piped).contains("hasten top --once"), "{}", stderr(&piped));

    let mut script = Command::new("script")
        .args([
            "-qec",
            &format!("stty rows 30 cols 100; exec timeout --foreground 20 {HASTEN} top --interval 0.2 {pid}"),
            "/dev/null",
        ])
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is part of every Debian");
    let mut screen = Vec::new();
    let mut terminal = script.stdout.take().unwrap();
    let mut chunk = [0; 4096];
    while !(contains(&screen, "Lanes filled per batch") && contains(&screen, "p-256-sign")) {
        let length = terminal.read(&mut chunk).unwrap();
        assert_ne!(length, 0, "ended early: {}", String::from_utf8_lossy(&screen));
        screen.extend(&chunk[..length]);
    }
    script.stdin.take().unwrap().write_all(b"q").unwrap();
    terminal.read_to_end(&mut screen).unwrap();
    let screen = String::from_utf8_lossy(&screen).into_owned();
    assert!(script.wait().unwrap().success(), "{screen}");
    let (enter, leave) = (screen.find("\x1b[?1049h"), screen.rfind("\x1b[?1049l"));
    assert!(enter.is_some() && leave > enter, "the alternate screen is left again: {screen}");
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let pid = be_a_server();
    let mut child = Command::new(HASTEN)
        .args(["top", "--json", "--interval", "0.2", &pid])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_senseless_interval_is_a_usage_error() {
    let output = top(&["--once", "--interval", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("between 0.1 and 3600"), "{}", stderr(&output));
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}
