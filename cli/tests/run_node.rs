//! `hasten run` and Node.js: its output, and how advice about garbage collection gets from a trace to a process.

mod support;

use std::fs;
use std::process::Command;

use assert_cmd::assert::Assert;
use support::Place;

const ADVICE: &str = r#"{ "schema": 1, "advice": [
    { "title": "Fewer scavenges", "node_options": ["--max-semi-space-size=32"] },
    { "title": "A heap that fits", "node_options": ["--max-old-space-size=64"] }
] }"#;
const SHOW: &str = "console.log(process.env.LOADED_NODE, process.env.NODE_OPTIONS)";

/// A place with advice in it.
fn place(advice: &str) -> Place {
    let place = Place::new();
    place.write("advice.json", advice);
    place
}

fn run(place: &Place, node_options: &str, words: &[&str]) -> Assert {
    let mut command: Command = place.hasten(&[&["run"], words].concat());
    if !node_options.is_empty() {
        command.env("NODE_OPTIONS", node_options);
    }
    assert_cmd::Command::from_std(command).assert()
}

#[test]
fn node_is_told_where_its_cache_is_and_nothing_of_what_it_carries() {
    let place = Place::new();
    let assert = run(&place, "", &["--", "node", "-e", SHOW]).success();
    assert_eq!(place.stdout(&assert), "1 --require [PLACE]/node/register.js\n");
    insta::assert_snapshot!(place.stderr(&assert), @"hasten: node on for node: start-up from a cache of resolved and compiled modules, garbage collections recorded on request; its cache is in [PLACE]/home/.cache/hasten/node, 256 MiB at most");
}

#[test]
fn a_place_where_no_cache_can_be_is_said_to_be_one_with_what_to_do() {
    let place = Place::new();
    let said = |variable: &str, value: &str| {
        let mut command = place.hasten(&["run", "--", "node", "-e", "0"]);
        let output = command.env(variable, value).output().unwrap();
        place.normalise(&output.stderr)
    };
    let home = said("HOME", place.path("server").to_str().unwrap());
    assert!(home.contains("but [PLACE]/server is no folder; set HASTEN_CACHE_DIR to"), "{home}");
    assert!(home.contains("CacheDirectory=hasten"), "{home}");
    for value in ["rel", ""] {
        let home = said("HOME", value);
        assert!(
            home.contains("has an absolute path; set HASTEN_CACHE_DIR") && !home.contains("unset"),
            "{home}"
        );
    }
}

#[test]
fn servers_do_not_hear_of_it() {
    let place = Place::new();
    place.cc("nginx", "#include <stdlib.h>\nint main(void) { return getenv(\"NODE_OPTIONS\") != 0; }", &[]);
    let assert = run(&place, "", &["--", "./nginx"]).success();
    assert!(!place.stderr(&assert).contains("node"), "{}", place.stderr(&assert));
    let assert = run(&place, "", &["--dry-run", "--", "./nginx"]).success();
    assert!(place.stderr(&assert).contains("- nginx neither is Node.js nor starts it"));
}

#[test]
fn an_application_inside_node_is_told_why_it_gains_nothing() {
    let place = Place::new();
    let blob = "__attribute__((section(\".note.node.sea\"), used)) static const char blob[] = \"x\";";
    place.cc("single", &format!("{blob} int main(void) {{ return 0; }}"), &[]);
    let said = place.stderr(&run(&place, "", &["--", "./single"]).success());
    assert!(said.contains("hasten: node off: single is a Node.js with its application inside"), "{said}");
}

#[test]
fn the_users_options_stay_and_dry_run_can_be_pasted() {
    let place = Place::new();
    let own = r#"--title="a b""#;
    let assert = run(&place, own, &["-n", "--", "node", "-e", SHOW]).success();
    let line = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    let output = Command::new("sh").args(["-c", line.trim_end()]).output().unwrap();
    let expected = format!("1 --require [PLACE]/node/register.js {own}\n");
    assert_eq!(place.normalise(&output.stdout), expected, "{line}");
}

#[test]
fn advice_is_applied_and_said_with_its_reason() {
    let place = place(ADVICE);
    let words = ["--apply-gc-advice", "advice.json", "--", "node", "-e", SHOW];
    let assert = run(&place, "", &words).success();
    let expected = "1 --require [PLACE]/node/register.js --max-semi-space-size=32 --max-old-space-size=64\n";
    assert_eq!(place.stdout(&assert), expected);
    let said = place.stderr(&assert);
    assert!(
        said.contains("hasten: gc advice --max-semi-space-size=32: Fewer scavenges (advice.json)\n"),
        "{said}"
    );
    place.write("hasten.toml", "[node]\ngc_advice = 'advice.json'\n");
    let assert = run(&place, "", &["--", "node", "-e", SHOW]).success();
    assert_eq!(place.stdout(&assert), expected, "the configuration file names it, too");
    let assert = run(&place, "", &["--dry-run", "--", "node"]).success();
    assert!(
        place
            .stderr(&assert)
            .contains("\ngc advice --max-old-space-size=64: A heap that fits (advice.json)\n")
    );
}

#[test]
fn what_the_user_has_set_wins_and_is_reported() {
    let place = place(ADVICE);
    let advice = ["--apply-gc-advice", "advice.json", "--"];
    let words = [&advice[..], &["node", "--max-old-space-size=99", "-e", SHOW]].concat();
    let assert = run(&place, "--max-semi-space-size=8", &words).success();
    assert_eq!(place.stdout(&assert), "1 --require [PLACE]/node/register.js --max-semi-space-size=8\n");
    let said = place.stderr(&assert);
    for line in [
        "hasten: gc advice --max-semi-space-size=32 left out: NODE_OPTIONS says --max-semi-space-size=8 already",
        "hasten: gc advice --max-old-space-size=64 left out: the command line says --max-old-space-size=99 already",
        "hasten: warning: the GC advice has no effect: nothing of it is set",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

#[test]
fn advice_that_sets_nothing_is_no_error() {
    let place = place(r#"{ "schema": 1, "advice": [{ "title": "Nothing to change", "node_options": [] }] }"#);
    let assert = run(&place, "", &["--apply-gc-advice", "advice.json", "--", "node", "-e", "0"]).success();
    let said = place.stderr(&assert);
    assert!(said.contains("hasten: gc advice in advice.json sets nothing: Nothing to change"), "{said}");
}

#[test]
fn bad_advice_starts_nothing_and_says_how_to_put_it_right() {
    let place = place(&ADVICE.replace("--max-old-space-size=64", "--require=./evil.js"));
    let assert = run(&place, "", &["--apply-gc-advice", "advice.json", "--", "node", "-e", SHOW]).code(2);
    assert_eq!(place.stdout(&assert), "");
    insta::assert_snapshot!(place.stderr(&assert), @r"
    hasten: advice.json: the advice `A heap that fits` wants `--require=./evil.js`: not an option that advice may set
      fix: advice may set --max-semi-space-size=N (1 to 512) and --max-old-space-size=N (16 to 1048576); put anything else into NODE_OPTIONS yourself
    ");
    let assert = run(&place, "", &["--apply-gc-advice", "absent.json", "--", "node"]).code(2);
    assert!(
        place.stderr(&assert).contains("cannot read the advice in absent.json"),
        "{}",
        place.stderr(&assert)
    );
}

#[test]
fn what_hasten_gc_writes_is_what_run_reads() {
    let place = Place::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/v8/tests/fixtures");
    for (trace, option) in [("recorder-v22.busy.jsonl", "semi"), ("v20.oom.txt", "old")] {
        let output = place.hasten(&["gc", "--json", &format!("{fixtures}/{trace}")]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(place.path("advice.json"), output.stdout).unwrap();
        let assert =
            run(&place, "", &["--apply-gc-advice", "advice.json", "--dry-run", "--", "node"]).success();
        let said = place.stderr(&assert);
        assert!(said.contains(&format!("\ngc advice --max-{option}-space-size=")), "{trace}: {said}");
    }
}
