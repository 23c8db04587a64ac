//! `hasten check` on Node.js: questions to the binary, and the table of tunings.

mod support;

use std::path::Path;

use serde_json::Value;
use support::Place;

/// The releases that scripts/nodes.sh installs.
const RELEASES: [u32; 5] = [18, 20, 22, 24, 26];
const STATES: [&str; 5] = ["in-effect", "applicable", "needs-build", "no-effect", "unmeasured"];

fn node(release: u32) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../.deps/nodes/node_modules/node{release}/bin/node"));
    assert!(path.is_file(), "{} is missing: run scripts/nodes.sh", path.display());
    path.to_str().expect("UTF-8").to_owned()
}

fn report(place: &Place, program: &str) -> Value {
    let assert = place.run(&["check", "--json", "--", program]).success();
    serde_json::from_slice::<Value>(&assert.get_output().stdout).unwrap()["program"]["node"].take()
}

fn tuning<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["tunings"].as_array().unwrap().iter().find(|tuning| tuning["id"] == id).unwrap()
}

#[test]
fn every_release_answers_and_has_a_state_for_each_tuning() {
    let place = Place::new();
    for release in RELEASES {
        let report = report(&place, &node(release));
        let version = report["build"]["release"].as_str().unwrap();
        assert!(version.starts_with(&format!("{release}.")), "{version}");
        assert!(report["build"]["semi_space_bytes"].as_u64().unwrap().is_multiple_of(1 << 20), "{report}");
        let tunings = report["tunings"].as_array().unwrap();
        assert_eq!(tunings.len(), 11, "{release}");
        for tuning in tunings {
            assert!(STATES.contains(&tuning["state"].as_str().unwrap()), "{tuning}");
            for name in ["name", "detail", "measured", "source"] {
                assert!(!tuning[name].as_str().unwrap().is_empty(), "{release}: {name} of {tuning}");
            }
        }
        // The official builds cannot be changed.
        for id in ["pointer-compression", "pgo"] {
            assert_eq!(tuning(&report, id)["state"], "needs-build", "{release}: {id}");
        }
        assert_eq!(tuning(&report, "bolt")["state"], "no-effect", "{release}");
        assert_eq!(tuning(&report, "huge-pages")["how"] == Value::Null, release == 26, "{release}");
    }
}

#[test]
fn the_table_tells_the_same_and_every_name_is_documented() {
    let place = Place::new();
    let output = place.hasten(&["check", "--", &node(20)]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "build",
        "20.20.2 with V8 11.3",
        "node on: ",
        "Tunings of the reference white paper",
        "Bytecode cache",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = include_str!("../../docs/cli.md");
    let report = report(&place, &node(20));
    let names = [&report, &report["build"], &report["tunings"][0]].map(|names| names.as_object().unwrap());
    for name in names.iter().flat_map(|names| names.keys()) {
        assert!(page.contains(&format!("`{name}`")), "docs/cli.md does not mention `{name}`");
    }
    for state in STATES {
        assert!(page.contains(&format!("`{state}`")), "docs/cli.md does not mention `{state}`");
    }
}

#[test]
fn a_node_that_is_none_is_reported_and_nothing_else_is_run() {
    let place = Place::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    place.cc("bin/node", "#include <stdio.h>\nint main(void) { puts(\"{}\"); }", &[]);
    let report = report(&place, "bin/node");
    assert!(
        report["silent"].as_str().unwrap().starts_with("its answer is not that of Node.js 18"),
        "{report}"
    );
    assert_eq!(report["build"], Value::Null);
    let text =
        String::from_utf8(place.hasten(&["check", "--", "bin/node"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("cannot tell: its answer is not that of Node.js"), "{text}");
    let touch = "#include <stdio.h>\nint main(void) { fclose(fopen(\"started\", \"w\")); }";
    place.cc("nodemon", touch, &[]);
    assert_eq!(self::report(&place, "./nodemon"), Value::Null);
    assert!(!place.path("started").exists(), "only Node.js itself is asked");
}

#[test]
fn the_callers_environment_does_not_reach_the_node_that_is_asked() {
    let place = Place::new();
    let mut command = place.hasten(&["check", "--json", "--", &node(20)]);
    let output =
        command.env("NODE_OPTIONS", "--max-semi-space-size=2 --require=/no/such/file.js").output().unwrap();
    let report = serde_json::from_slice::<Value>(&output.stdout).unwrap()["program"]["node"].take();
    assert_ne!(report["build"]["semi_space_bytes"], 2 << 20, "{report}");
    assert_eq!(tuning(&report, "semi-space")["state"], "in-effect");
}
