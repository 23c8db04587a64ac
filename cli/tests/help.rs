//! Help, completions and manual pages: all from one definition.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::Place;

const COMMANDS: [&str; 26] = [
    "bench envoy",
    "bench gzip",
    "bench node",
    "bench readcache",
    "bench tier",
    "bench tls",
    "bench wal",
    "check",
    "completions",
    "core",
    "disable",
    "enable",
    "engine disable",
    "engine enable",
    "engine list",
    "export",
    "gc",
    "gc record",
    "run",
    "selftest",
    "snapshot",
    "status",
    "top",
    "tune",
    "wal home",
    "wal list",
];

#[test]
fn the_overview_reads_well() {
    let place = Place::new();
    let assert = place.run(&["--help"]).success();
    insta::assert_snapshot!(place.stdout(&assert));
}

#[test]
fn help_of_run_and_check_reads_well() {
    let place = Place::new();
    for command in ["run", "check"] {
        let assert = place.run(&[command, "--help"]).success();
        insta::assert_snapshot!(format!("help_{command}"), place.stdout(&assert));
    }
}

#[test]
fn every_command_has_examples_in_its_help() {
    let place = Place::new();
    for command in COMMANDS {
        let arguments: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let assert = place.run(&arguments).success();
        let text = place.stdout(&assert);
        let examples = text.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command}: no examples"));
        assert!(examples.contains("hasten "), "{command}");
    }
}

#[test]
fn a_wrong_command_is_answered_with_the_nearest() {
    let place = Place::new();
    let assert = place.run(&["chekc"]).code(2);
    assert!(place.stderr(&assert).contains("check"), "{}", place.stderr(&assert));
    place.run(&[]).code(2);
}

#[test]
fn completions_are_valid_in_their_shells() {
    let place = Place::new();
    for (shell, check) in
        [("bash", &["bash", "-n"][..]), ("zsh", &["zsh", "-n"]), ("fish", &["fish", "--no-execute"])]
    {
        let assert = place.run(&["completions", shell]).success();
        let script = &assert.get_output().stdout;
        for word in COMMANDS.iter().flat_map(|command| command.split(' ')).chain(["dry-run", "strict"]) {
            assert!(String::from_utf8_lossy(script).contains(word), "{shell}: {word}");
        }
        let Ok(mut child) = Command::new(check[0]).args(&check[1..]).stdin(Stdio::piped()).spawn() else {
            println!("skipped for {shell}: it is not installed");
            continue;
        };
        child.stdin.take().unwrap().write_all(script).unwrap();
        assert!(child.wait().unwrap().success(), "{shell} does not accept its completions");
    }
}

#[test]
fn there_is_a_manual_page_for_every_command_and_none_for_hidden_ones() {
    let place = Place::new();
    place.run(&["man", "--out", "man"]).success();
    let mut pages: Vec<_> = std::fs::read_dir(place.path("man"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let expected = COMMANDS.iter().map(|command| format!("hasten-{}.1", command.replace(' ', "-")));
    let expected =
        expected.chain(["hasten.1", "hasten-bench.1", "hasten-engine.1", "hasten-wal.1"].map(Into::into));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(pages, expected);
    let page = std::fs::read_to_string(place.path("man/hasten-run.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("dry\\-run"), "{page}");
}

#[test]
fn the_version_is_the_packages() {
    let place = Place::new();
    place.run(&["--version"]).success().stdout(format!("hasten {}\n", env!("CARGO_PKG_VERSION")));
}
