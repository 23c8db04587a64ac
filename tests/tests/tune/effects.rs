//! The right knobs are kept, the others are not, and settings that corrupt answers are out.

use std::fs;
use std::process::Command;

use hasten_tests::product;
use serde_json::Value;

use crate::tune::{Tune, said};

const ALL: [&str; 8] = [
    "PLANTED_NULL",
    "PLANTED_GOOD",
    "PLANTED_BAD",
    "PLANTED_TWIN_A",
    "PLANTED_TWIN_B",
    "PLANTED_CORRUPT",
    "PLANTED_LOUD",
    "PLANTED_NOTHING",
];

#[test]
fn planted_effects_are_found_and_the_corruptor_is_out() {
    let tune = Tune::of(&ALL, "75s");
    let output = tune.command().output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report = tune.report();
    assert_eq!(report["verdict"], "better", "{}", said(&output));
    let fates = fates(&report);
    let fate =
        |knob: &str| fates.iter().find(|(name, _)| name == knob).map(|(_, fate)| fate.as_str()).unwrap();
    assert_eq!(fate("good"), "kept", "{}", said(&output));
    assert_eq!(fate("corrupt"), "disqualified", "{}", said(&output));
    for knob in ["null", "nothing", "bad"] {
        // A useless one may look promising for a while on a busy machine, and be dropped late.
        let allowed = ["no-gain", "harmful", "undecided", "not-proven", "not-needed"];
        assert!(allowed.contains(&fate(knob)), "{knob}: {}\n{}", fate(knob), said(&output));
    }
    let twins = ["twin-a", "twin-b"].map(|knob| fate(knob) == "kept");
    assert_ne!(twins, [true, true], "each helps, both together harm\n{}", said(&output));
    for (candidate, why) in [("corrupt=on", "answers something else"), ("loud=on", "something is wrong")] {
        let reason =
            report["disqualified"].as_array().unwrap().iter().find(|one| one["candidate"] == candidate);
        assert!(reason.unwrap()["reason"].as_str().unwrap().contains(why), "{reason:?}");
    }
    assert!(report["budget"]["used"].as_f64() <= report["budget"]["seconds"].as_f64());
    assert!(tune.is_stopped());
    the_profile_works(&tune);
}

/// It contains the settings that were kept, and nothing else.
fn the_profile_works(tune: &Tune) {
    let profile = tune.out().join("hasten.toml");
    let text = fs::read_to_string(&profile).unwrap();
    assert!(text.contains("PLANTED_GOOD = \"on\""), "{text}");
    for variable in ["PLANTED_BAD", "PLANTED_NULL", "PLANTED_NOTHING", "PLANTED_CORRUPT"] {
        assert!(!text.contains(variable), "{text}");
    }
    let mut run = Command::new(product::hasten());
    let output = run.args(["run", "--quiet", "--config"]).arg(&profile).args(["--", "env"]).output().unwrap();
    let environment = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(environment.lines().any(|line| line == "PLANTED_GOOD=on"), "{}", said(&output));
}

fn fates(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let screened = report["screened"].as_array().unwrap();
    screened.iter().map(|one| (text(&one["knob"]), text(&one["fate"]))).collect()
}

#[test]
fn where_nothing_helps_there_is_no_profile_and_it_is_said() {
    let tune = Tune::of(&["PLANTED_NULL", "PLANTED_BAD"], "45s");
    let output = tune.command().output().unwrap();
    let verdict = tune.report()["verdict"].clone();
    let code = if verdict == "no-difference" { 0 } else { 3 };
    assert!(
        ["no-difference", "undecided", "too-noisy"].iter().any(|one| verdict == *one),
        "{}",
        said(&output)
    );
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(!tune.out().join("hasten.toml").exists());
    assert!(tune.is_stopped());
}

#[test]
fn half_the_cpu_for_larger_answers_is_no_bargain() {
    let tune = Tune::of(&["PLANTED_FAT"], "60s");
    let output = tune.command().output().unwrap();
    let report = tune.report();
    assert_eq!(fates(&report), [("fat".to_owned(), "disqualified".to_owned())], "{}", said(&output));
    let reason = report["disqualified"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("bytes on the wire") && reason.contains("--max-bytes"), "{reason}");
    assert_eq!((&report["bytes"]["counted_by"], &report["bytes"]["limit"]), (&"load".into(), &0.01.into()));
    let grown = report["screened"][0]["bytes"]["change"].as_f64().unwrap();
    assert!((0.05..0.15).contains(&grown), "{grown}");
    let page = fs::read_to_string(tune.out().join("report.html")).unwrap();
    assert!(page.contains("+8.") || page.contains("+9.") || page.contains("+1"), "the page shows the bytes");
    assert!(said(&output).contains(" disqualified"), "{}", said(&output));
    assert!(!tune.out().join("hasten.toml").exists());
}
