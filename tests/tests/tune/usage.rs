//! Each invalid input has one clear error and a fix.

use crate::tune::{Tune, said};

/// The exit code, and the message.
fn fails(tune: &Tune, arguments: &[&str]) -> (Option<i32>, String) {
    let output = tune.hasten().args(arguments).output().unwrap();
    assert!(output.stdout.is_empty(), "{}", said(&output));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn mistakes_are_named_with_the_cure() {
    let tune = Tune::of(&[], "60s");
    let url = ["--url", "http://127.0.0.1:1/"];
    let service = ["--", "sleep", "60"];
    let cases: [(&[&str], &str); 10] = [
        (&["--max-bytes", "1", "--", "sleep", "60"], "1%"),
        (&["--url", "http://127.0.0.1:1/"], "no command is given"),
        (&["--knob", "pool=POOL=1", "--", "sleep", "60"], "NAME=env:VARIABLE"),
        (&["--knob", "pool=env:POOL=1", "--", "sleep", "60"], "there is no load"),
        (&["--only", "semi-spce", "--", "sleep", "60"], "semi-space"),
        (&["--objective", "cpu_us + x", "--", "sleep", "60"], "position 10"),
        (&["--budget", "15", "--", "sleep", "60"], "15m"),
        (&["--max-rss", "1", "--", "sleep", "60"], "512M"),
        (&["--effect", "3", "--", "sleep", "60"], "3%"),
        (&["--metric-regex", "x", "--load", "true", "--", "sleep", "60"], "group"),
    ];
    for (arguments, what) in cases {
        let (code, text) = fails(&tune, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(what), "{arguments:?}: {text}");
    }
    let twice = [&url[..], &["--knob", "a=env:A=1", "--knob", "a=env:B=1"], &service[..]].concat();
    assert!(fails(&tune, &twice).1.contains("two knobs named `a`"));
    assert!(!tune.out().exists(), "nothing was begun");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let tune = Tune::of(&[], "60s");
    let (code, text) = fails(&tune, &["--url", "http://127.0.0.1:1/", "--", "no-such-program"]);
    assert_eq!(code, Some(127), "{text}");
    assert!(text.contains("no-such-program"), "{text}");
}

#[test]
fn a_load_tool_that_is_not_there_is_named_before_anything_is_started() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let started = tune.folder().join("started");
    let service = format!("touch {}; exec sleep 60", started.display());
    let load = "/no/such/folder/wrk -d1 http://127.0.0.1:1/";
    let (code, text) =
        fails(&tune, &["--load", load, "--knob", "good=env:PLANTED_GOOD=on", "--", "sh", "-c", &service]);
    assert_eq!(code, Some(127), "{text}");
    assert!(text.contains("`/no/such/folder/wrk` is not installed"), "{text}");
    assert!(text.contains("fix: run `apt-get install wrk`"), "{text}");
    assert!(!started.exists() && !tune.out().exists(), "{text}");
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let tune = Tune::of(&[], "60s");
    let (code, text) = fails(&tune, &["--resume", "nowhere"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("nowhere") && text.contains("fix:"), "{text}");
}

#[test]
fn a_budget_that_proves_nothing_says_how_much_would() {
    let tune = Tune::of(&["PLANTED_GOOD"], "2s");
    let output = tune.command().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("--budget"), "{}", said(&output));
    assert!(tune.is_stopped());
}

#[test]
fn a_load_that_is_too_long_for_the_budget_is_refused_before_anything_is_started() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let started = tune.folder().join("started");
    let service = format!("touch {}; exec sleep 60", started.display());
    let common = ["--knob", "good=env:PLANTED_GOOD=on", "--budget", "60s"];
    let load = ["--url", "http://127.0.0.1:1/", "--duration", "10s"];
    let arguments = [&load[..], &common, &["--", "sh", "-c", &service]].concat();
    let (code, text) = fails(&tune, &arguments);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("takes 10 s") && text.contains("--budget 9m"), "{text}");
    assert!(!started.exists() && !tune.out().exists(), "{text}");
}

#[test]
fn the_line_that_goes_on_has_the_budget_that_it_needs() {
    let tune = Tune::of(&["PLANTED_GOOD"], "7s");
    // The load's own duration does not include starts and warm-ups.
    let output = tune.command().output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("hasten tune --resume hasten-tune --budget 1m"), "{text}");
    let output = tune.hasten().args(["--resume", "hasten-tune", "--budget", "1m"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_service_that_fails_by_itself_is_the_owners_to_put_right() {
    let tune = Tune::of(&["PLANTED_GOOD"], "60s");
    let url = format!("http://127.0.0.1:{}/", tune.port());
    let mut command = tune.hasten();
    command.args([
        "--knob",
        "good=env:PLANTED_GOOD=on",
        "--url",
        &url,
        "--",
        "sh",
        "-c",
        "echo broken; exit 3",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("broken"), "{}", said(&output));
}

#[test]
fn knobs_are_listed_with_what_is_tried_and_why_not() {
    let tune = Tune::of(&[], "60s");
    let output =
        tune.hasten().args(["--list-knobs", "--knob", "pool=env:POOL=4,8", "--", "sh"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    assert!(text.contains("pool") && text.contains("4, 8"), "{text}");
    assert!(
        text.contains("NOT TRIED") && text.contains("system-thp") && text.contains("--allow-system"),
        "{text}"
    );
    let output = tune.hasten().args(["--list-knobs", "--json", "--", "sh"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["left_out"].as_array().unwrap().iter().any(|knob| knob["name"] == "system-thp"), "{json}");
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let tune = Tune::of(&[], "60s");
    for arguments in [&["--list-knobs", "--", "sh"][..], &["--list-knobs", "--json", "--", "sh"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = tune.hasten().args(arguments).stdout(full).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("standard output cannot be written to") && !said.contains("panicked"),
            "{said}"
        );
    }
}

#[test]
fn handshakes_are_not_tried_where_the_load_makes_none() {
    let tune = Tune::of(&[], "60s");
    for (load, tried) in [
        ("redis-benchmark -t get", false),
        ("wrk http://127.0.0.1:1/", false),
        ("wrk https://127.0.0.1:1/", true),
    ] {
        let arguments = ["--list-knobs", "--json", "--load", load, "--", "sh"];
        let output = tune.hasten().args(arguments).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for knob in ["tls", "tls-break-even"] {
            let left_out = json["left_out"].as_array().unwrap().iter().find(|one| one["name"] == knob);
            let is_tried =
                !left_out.is_some_and(|one| one["why"].as_str().unwrap().contains("opens no TLS connection"));
            assert_eq!(is_tried, tried, "{load}: {knob}: {json}");
        }
    }
}
