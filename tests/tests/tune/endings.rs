//! However a session ends, nothing runs afterwards, and it can be resumed.

use std::fs;
use std::process::{Child, Command, Stdio};

use hasten_tests::wait;
use rustix::process::{Pid, Signal, kill_process};

use crate::tune::{Tune, said};

fn interrupted(tune: &Tune, trials: usize) -> usize {
    interrupt(tune, tune.command(), trials)
}

fn interrupt(tune: &Tune, command: Command, trials: usize) -> usize {
    interrupt_when(tune, command, || tune.trials().len() >= trials)
}

fn interrupt_when(tune: &Tune, mut command: Command, is_time: impl FnMut() -> bool) -> usize {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait::until("measurements", is_time);
    signal(&child, Signal::INT);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(tune.is_stopped(), "the service still runs");
    tune.trials().len()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_resume_goes_on() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    let kept = interrupted(&tune, 12);
    let before = tune.trials();
    assert_eq!(tune.report()["verdict"], "unfinished");
    assert!(!tune.out().join("hasten.toml").exists());
    let output = tune.hasten().args(["--resume", "hasten-tune"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let after = tune.trials();
    assert!(after.len() > kept, "{}", said(&output));
    assert_eq!(after[..kept], before[..]);
    assert_eq!(tune.report()["verdict"], "better", "{}", said(&output));
    assert!(tune.out().join("hasten.toml").exists());
}

#[test]
fn ctrl_c_before_the_first_measurement_promises_nothing() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    let started = tune.folder().join("started");
    let mut command = tune.driven();
    // It never serves.
    command.args(["--", "sh", "-c", &format!("touch {}; exec sleep 600", started.display())]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait::until("the service", || started.exists());
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("nothing was measured yet"), "{text}");
    assert!(!text.contains("Go on:") && !tune.out().exists(), "{text}");
    let output = tune.hasten().args(["--resume", "hasten-tune"]).output().unwrap();
    assert!(said(&output).contains("begin a new one without --resume"), "{}", said(&output));
}

#[test]
fn what_was_measured_before_ctrl_c_is_in_the_report_and_it_says_why_it_ended() {
    let knobs = ["PLANTED_GOOD", "PLANTED_BAD", "PLANTED_A", "PLANTED_B", "PLANTED_C"];
    let tune = Tune::of(&knobs, "90s");
    let is_setting = |trial: &&serde_json::Value| trial["phase"] == "screen" && trial["candidate"] != "stock";
    // The number of noise measurements before that depends on the noise.
    interrupt_when(&tune, tune.command(), || tune.trials().iter().filter(is_setting).count() >= 2);
    let report = tune.report();
    let measured: std::collections::BTreeSet<String> = report["trials"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_setting)
        .map(|trial| trial["candidate"].to_string())
        .collect();
    let tried = report["screened"].as_array().unwrap().iter().filter(|row| row["fate"] != "untried");
    assert!(!measured.is_empty());
    assert_eq!(tried.count(), measured.len(), "{measured:?}");
    let headline = report["summary"]["headline"].as_str().unwrap();
    assert!(headline.ends_with("proven: it was interrupted"), "{headline}");
}

#[test]
fn errors_that_the_service_logs_as_it_is_are_still_known_when_a_session_goes_on() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    let quirk = tune.folder().join("quirk");
    fs::write(&quirk, "").unwrap();
    let complaint = "echo 'Error: an old complaint'";
    let service = format!(
        "if [ -e {} ] || [ \"$PLANTED_GOOD\" = on ]; then {complaint}; fi; exec {} {}",
        quirk.display(),
        env!("CARGO_BIN_EXE_planted"),
        tune.port()
    );
    let mut command = tune.driven();
    command.args(["--", "sh", "-c", &service]);
    interrupt(&tune, command, 3);
    // From now on the service as it is has no reason to complain.
    fs::remove_file(&quirk).unwrap();
    let output = tune.hasten().args(["--resume", "hasten-tune"]).output().unwrap();
    assert_eq!(tune.report()["disqualified"], serde_json::json!([]), "{}", said(&output));
    assert_eq!(tune.report()["verdict"], "better", "{}", said(&output));
}

#[test]
fn what_is_not_the_same_does_not_go_on() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    interrupted(&tune, 2);
    let output = tune.hasten().args(["--resume", "hasten-tune", "--", "sleep", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the command is another"), "{}", said(&output));
    let path = tune.out().join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"on\"", "\"off\"")).unwrap();
    let output = tune.hasten().args(["--resume", "hasten-tune"]).output().unwrap();
    assert!(said(&output).contains("other knobs, or other levels"), "{}", said(&output));
}

#[test]
fn a_file_of_the_command_that_has_changed_is_named_and_may_be_allowed() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    let script = tune.folder().join("start.sh");
    let exec = format!("exec {} {}\n", env!("CARGO_BIN_EXE_planted"), tune.port());
    fs::write(&script, &exec).unwrap();
    let mut command = tune.driven();
    command.args(["--", "sh", "start.sh"]);
    interrupt(&tune, command, 2);
    fs::write(&script, format!("# the same\n{exec}")).unwrap();
    let output = tune.hasten().args(["--resume", "hasten-tune"]).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("start.sh") && text.contains("--despite-changes"), "{text}");
    let output = tune.hasten().args(["--resume", "hasten-tune", "--objective", "p99"]).output().unwrap();
    assert!(said(&output).contains("the objective is another"), "{}", said(&output));
    let output = tune.hasten().args(["--resume", "hasten-tune", "--despite-changes"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(tune.report()["verdict"], "better", "{}", said(&output));
}

#[test]
fn a_second_session_leaves_the_first_alone() {
    let tune = Tune::of(&["PLANTED_GOOD"], "45s");
    interrupted(&tune, 1);
    let first = tune.trials();
    interrupted(&tune, 2);
    let text = fs::read_to_string(tune.folder().join("hasten-tune.1/session.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["trials"].as_array(), Some(&first));
}

#[test]
fn kill_9_leaves_nothing_running() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let detached = tune.folder().join("detached");
    // A grandchild that serves, and one in its own session, as background servers are.
    let service = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 600' & {} {} & wait",
        detached.display(),
        env!("CARGO_BIN_EXE_planted"),
        tune.port()
    );
    let mut command = tune.driven();
    command.args(["--", "sh", "-c", &service]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait::until("measurements", || tune.trials().len() >= 2);
    // Between two starts there would be nothing to leave behind.
    wait::until("the service", || !tune.is_stopped() && is_alive(&detached));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait::until("the end of the service", || tune.is_stopped() && !is_alive(&detached));
}

/// The process whose number is in the file.
fn is_alive(file: &std::path::Path) -> bool {
    let pid = fs::read_to_string(file).unwrap_or_default();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
