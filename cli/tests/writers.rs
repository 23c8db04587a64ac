//! Everything that writes to standard output: a full device is an error, a departed reader is not.

mod support;

use std::fs::File;
use std::process::{Output, Stdio};

use support::Place;

/// Commands that print without a server running. Nothing listens, and nothing is started.
const WRITERS: [&[&str]; 20] = [
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["check"],
    &["check", "--json"],
    &["check", "--", "./server"],
    &["check", "--hooks", "--", "./server"],
    &["check", "--json", "--", "./server"],
    &["selftest"],
    &["selftest", "--json"],
    &["completions", "bash"],
    &["completions", "zsh"],
    &["completions", "fish"],
    &["man"],
    &["export", "--once"],
    &["gc", "trace.log"],
    &["gc", "--json", "trace.log"],
    &["tune", "--list-knobs", "--", "./server"],
    &["tune", "--list-knobs", "--json", "--", "./server"],
    &["engine", "list", "--json"],
];

fn place() -> Place {
    let place = Place::new();
    let collections: String = (1..40)
        .map(|n| {
            format!(
                "[77:0x5d2cd0] {n}0 ms: Scavenge 4.{n} (6.0) -> 3.{n} (7.0) MB, 0.8 / 0.0 ms  \
                 (average mu = 1.000, current mu = 1.000) allocation failure; \n"
            )
        })
        .collect();
    place.write("trace.log", &collections);
    place
}

fn run(place: &Place, arguments: &[&str], out: Stdio) -> Output {
    let child = place.hasten(arguments).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()).spawn();
    child.unwrap().wait_with_output().unwrap()
}

/// `engine list` has nothing to list here, which is a different failure; the errors are distinguished by their words.
fn is_without_a_server(arguments: &[&str]) -> bool {
    arguments[0] == "engine"
}

#[test]
fn a_full_device_is_one_error_with_a_fix() {
    let place = place();
    for arguments in WRITERS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = run(&place, arguments, full.into());
        let said = place.normalise(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let error = "hasten: standard output cannot be written to: No space left on device (os error 28)\n  \
                     fix: check the file or the device behind it\n";
        assert!(said.ends_with(error), "{arguments:?}: {said}");
        assert_eq!(said.matches("standard output").count(), 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = place();
    for arguments in WRITERS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(&place, arguments, writer.into());
        let said = place.normalise(&output.stderr);
        // Unless this machine has one that is none of the test's.
        if is_without_a_server(arguments) && !output.status.success() {
            assert!(said.starts_with("hasten: no accelerated process was found"), "{said}");
            continue;
        }
        assert!(output.status.success(), "{arguments:?}: {:?} {said}", output.status);
        assert!(!said.contains("panicked") && !said.contains("standard output"), "{arguments:?}: {said}");
    }
}

/// If nobody reads the report on the plan, the command runs all the same.
#[test]
fn a_full_standard_error_stops_nothing() {
    let place = place();
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let output = place.hasten(&["run", "--", "./server"]).stderr(full()).output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(place.normalise(&output.stdout).contains("handshake=79"));
    for arguments in [&["run", "--dry-run", "--", "./server"][..], &["top", "--once"], &["no-such-command"]] {
        let status = place.hasten(arguments).stderr(full()).stdout(Stdio::null()).status().unwrap();
        assert!(status.code().is_some_and(|code| code < 3), "{arguments:?}: {status:?}");
    }
}
