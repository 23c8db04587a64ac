//! Builds that are not what the table says stay as they are, and say why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_tests::{lanes, product};
use serde_json::json;

use crate::gzip::whole;
use crate::subject::{How, Place, RELEASES, build};

/// The beginning of `createCompressor`.
const CREATE: &[u8] = &[
    0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x53, 0x50, 0x49, 0x89, 0xf7, 0x49, 0x89, 0xfe, 0xbf,
    0x70, 0, 0, 0,
];
/// Its length, with the padding behind it.
const LENGTH: usize = 128;

/// The note that has the build-id, up to it.
const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";

const NAME: &[u8] = b"10Compressor21GzipCompressorFactoryE\0";

/// A copy with one byte changed, at this distance from the only place of these bytes.
fn changed(place: &Place, around: &[u8], distance: usize, to: u8) -> PathBuf {
    let mut program = fs::read(build(RELEASES[0])).expect("a build");
    let mut places = program.windows(around.len()).enumerate().filter(|(_, bytes)| *bytes == around);
    let at = places.next().expect("these bytes").0 + distance;
    assert_eq!(places.next(), None, "these bytes are there twice");
    drop(places);
    assert_ne!(program[at], to);
    program[at] = to;
    let copy = place.path().join("envoy");
    fs::write(&copy, program).expect("a copy");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("a program");
    copy
}

/// Asserts that a changed build answers as it does without us, and that its note begins so.
fn is_left_alone(place: &Place, copy: &Path, note: &str) {
    let stock = whole(&place.start(copy, &json!({}), How::Stock));
    let envoy = place.start(copy, &json!({}), How::Preloaded);
    assert!(whole(&envoy) == stock);
    assert!(envoy.note().starts_with(note), "{}", envoy.note());
    envoy.finish();
}

#[test]
fn other_code_is_left_alone() {
    let place = Place::new();
    // Behind the code, where it is never run.
    let copy = changed(&place, CREATE, LENGTH - 1, 0x90);
    is_left_alone(&place, &copy, "Envoy has a known build-id but other code: ");
}

#[test]
fn other_type_information_is_left_alone() {
    let place = Place::new();
    let copy = changed(&place, NAME, 2, b'D');
    is_left_alone(&place, &copy, "Envoy has a known build-id but other code: ");
}

#[test]
fn unknown_build_is_left_alone_and_named() {
    let place = Place::new();
    let copy = changed(&place, NOTE, NOTE.len(), 0x9f);
    is_left_alone(&place, &copy, "this build of Envoy is not known: build-id 9f5580933739775e");
    let check = Command::new(product::hasten()).args(["check", "--"]).arg(&copy).output().expect("hasten");
    let text = String::from_utf8_lossy(&check.stdout);
    assert!(text.contains("envoy off: "), "{text}");
    assert!(
        text.contains("this build of Envoy is not known: build-id 9f5580933739775e8bce696a57a2e1bc99368f23"),
        "{text}"
    );
    assert!(text.contains("use an official build of one of these releases: 1.40.0, "), "{text}");
}

#[test]
fn known_build_is_named() {
    let check = Command::new(product::hasten())
        .args(["check", "--"])
        .arg(build(RELEASES[0]))
        .output()
        .expect("hasten");
    let text = String::from_utf8_lossy(&check.stdout);
    assert!(text.contains("envoy on: ") && text.contains("envoy is Envoy 1.40.0"), "{text}");
}

/// What `hasten` says with these arguments and variables in front of a known build.
fn says(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(product::hasten());
    command.args(arguments).arg("--").arg(build(RELEASES[0])).envs(variables.iter().copied());
    let output = command.output().expect("hasten");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
}

#[test]
fn half_of_it_can_be_left_out() {
    let text = says(&["run", "--dry-run", "--without", "tls"], &[]);
    assert!(text.contains("+ without its handshakes: --without leaves it out"), "{text}");
    assert!(text.contains("HASTEN_DISABLE=tls"), "{text}");
    // Its handshakes are nothing without lanes.
    if lanes::exist() {
        let text = says(&["run", "--dry-run", "--without", "gzip"], &[("HASTEN_DISABLE", "node")]);
        assert!(text.contains("+ without its compression: --without leaves it out"), "{text}");
        assert!(text.contains("HASTEN_DISABLE='node,gzip'"), "{text}");
    }
    let text = says(&["check"], &[("HASTEN_CPU_DISABLE_IFMA", "1")]);
    assert!(text.contains("envoy on: ") && text.contains("+ without its handshakes: "), "{text}");
    let text = says(&["check"], &[("HASTEN_DISABLE", "tls,gzip")]);
    assert!(text.contains("envoy off: ") && text.matches("switches it off").count() == 3, "{text}");
}
