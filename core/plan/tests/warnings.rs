//! Requests without effect are pointed out, in this order and with these words.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use hasten_plan::{Config, GcAdvice, Plan, Surroundings};
use hasten_probe::program::kind::Kind;
use hasten_probe::{Cpu, Environment, Program};

fn warnings(config: &Config, surroundings: &Surroundings) -> Vec<String> {
    let program = Program::inspect(OsStr::new("sleep"), &Environment::current()).unwrap();
    let program = Program { kind: Kind::Node, ..program };
    let plan = Plan::new(&Cpu::default(), &program, config, surroundings);
    plan.warnings.iter().map(ToString::to_string).collect()
}

/// Only the plugin for Node.js is wanted, but gzip is to be verified.
fn config() -> Config {
    let mut config = Config::parse("[run]\nonly = ['node']", Path::new("hasten.toml")).unwrap();
    config.gzip.verify_always = true;
    let advice =
        br#"{ "schema": 1, "advice": [{ "title": "Fewer", "node_options": ["--max-semi-space-size=32"] }] }"#;
    config.gc_advice = Some(GcAdvice::parse(advice, Path::new("advice.json"), None).unwrap());
    config
}

/// The plugin is beside the command, and nothing is where the user says it is.
fn surroundings(place: &Path) -> Surroundings {
    fs::create_dir(place.join("node")).unwrap();
    fs::write(place.join("node/register.js"), "").unwrap();
    Surroundings {
        executable: Some(place.join("hasten")),
        library_directory: Some("/nope".into()),
        disable: Some("tsl,elsewhere".into()),
        names: ["PATH", "HASTEN_DISBALE", "HASTEN_DISABLE", "HASTEN_OF_MY_OWN", "HASTEN_QIET"]
            .map(Into::into)
            .into(),
        node_options: Some("--max-semi-space-size=8".into()),
        ..Surroundings::default()
    }
}

#[test]
fn each_has_its_words_and_its_place() {
    let place = tempfile::tempdir().unwrap();
    let said = warnings(&config(), &surroundings(place.path()));
    let elsewhere = format!(
        "HASTEN_LIBDIR=/nope is no directory; what is used is in {}",
        place.path().join("node").display()
    );
    assert_eq!(
        said,
        [
            "HASTEN_DISABLE names no accelerator `tsl`; did you mean `tls`?",
            "HASTEN_DISABLE names no accelerator `elsewhere`",
            "nothing reads HASTEN_DISBALE; did you mean HASTEN_DISABLE?",
            "nothing reads HASTEN_QIET; did you mean HASTEN_QUIET?",
            &elsewhere,
            "--verify has no effect: gzip is off",
            "the GC advice has no effect: nothing of it is set",
        ]
    );
}

#[test]
fn who_asks_for_nothing_is_warned_of_nothing() {
    assert_eq!(warnings(&Config::default(), &Surroundings::default()), [""; 0]);
}
