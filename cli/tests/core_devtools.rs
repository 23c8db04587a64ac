//! What Chrome DevTools shows of a `.heapsnapshot` of `hasten core`, against the report on the same core file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[path = "support/cores.rs"]
mod cores;

use cores::{core_of, hasten, here};

const ABORTED: i32 = 6;
const RELEASES: [&str; 4] = ["20", "22", "24", "26"];

/// Objects in cycles, in closures, in collections, and by weak maps: each is a question to dominators.
const PROGRAM: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i; this.list = [i, i, i]; this.self = this; } }
class Derived extends Planted { constructor(i) { super(i); this.get = () => i; } }
class Key { constructor(i) { this.i = i; } }
class Value { constructor(i) { this.bytes = new Array(50).fill(i); } }
globalThis.planted = Array.from({ length: 5000 }, (_, i) => new Planted(i));
globalThis.derived = new Map(Array.from({ length: 500 }, (_, i) => ['derived-' + i, new Derived(i)]));
globalThis.keys = new Set(Array.from({ length: 100 }, (_, i) => new Key(i)));
globalThis.weak = new WeakMap();
for (const key of keys) if (key.i % 2) weak.set(key, new Value(key.i));
globalThis.gone = new WeakRef(new Value(-1));
globalThis.odd = ['\\ud800', '\\u0000', '\"', '\\u2028', '\\u{1f600}'.repeat(3)];
globalThis.plain = Array.from({ length: 100 }, (_, i) => ({ left: i, right: [i] }));
setTimeout(() => process.abort(), 50);
";

/// What the front end's own worker computes of a file.
fn devtools(file: &Path) -> Value {
    let deps = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.deps");
    let (node, summary) =
        (deps.join("nodes/node_modules/node24/bin/node"), deps.join("devtools/summary.mjs"));
    assert!(summary.exists(), "{} is missing: scripts/devtools.sh brings it", summary.display());
    let output = Command::new(node).arg(summary).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(entry: &Value, name: &str) -> u64 {
    entry[name].as_u64().unwrap_or_else(|| panic!("{name} in {entry}"))
}

/// Objects, their bytes, and the bytes that they retain, by constructor.
fn by_name(entries: &Value) -> HashMap<&str, [u64; 3]> {
    let entry = |entry| ["count", "shallow_bytes", "retained_bytes"].map(|name| number(entry, name));
    let entries = entries.as_array().unwrap().iter();
    entries.map(|one| (one["name"].as_str().unwrap(), entry(one))).collect()
}

/// DevTools has groups of its own for functions and for what JavaScript does not see, and tells plain objects apart by their
/// properties.
fn is_class(name: &str) -> bool {
    !name.starts_with('(') && !["Object", "Function"].contains(&name)
}

fn check_constructors(shown: &Value, report: &Value, release: &str) {
    let (shown, told) = (by_name(&shown["constructors"]), by_name(&report["histogram"]));
    let classes: Vec<_> = told.iter().filter(|(name, _)| is_class(name)).collect();
    assert!(classes.len() > 50, "{release}: {classes:?}");
    for (name, numbers) in classes {
        assert_eq!(shown.get(name), Some(numbers), "{release}: {name}");
    }
    for (name, least) in [("Planted", 5000), ("Derived", 500), ("Key", 100), ("Value", 50)] {
        assert!(told[name][0] >= least, "{release}: {name}: {:?}", told[name]);
    }
    assert_eq!(shown["Function"][0], told["(closure)"][0] + told["Function"][0], "{release}");
    let plain = shown.iter().filter(|(name, _)| name.starts_with('{') || **name == "Object");
    assert_eq!(plain.map(|(_, numbers)| numbers[0]).sum::<u64>(), told["Object"][0], "{release}");
}

fn check_whole(shown: &Value, report: &Value, release: &str) {
    let [all, bytes] = [0, 1]
        .map(|index| -> u64 { by_name(&shown["constructors"]).values().map(|numbers| numbers[index]).sum() });
    let heap = &report["heap"];
    assert_eq!(bytes, number(heap, "live_bytes"), "{release}");
    assert_eq!(all, number(heap, "live_objects"), "{release}");
}

fn check_largest(shown: &Value, report: &Value, release: &str) {
    let largest = |list: &Value| -> Vec<(String, u64)> {
        let entry = |one: &Value| (one["name"].as_str().unwrap().to_owned(), number(one, "retained_bytes"));
        list.as_array().unwrap().iter().map(entry).filter(|(name, _)| is_class(name)).collect()
    };
    let mut shown = largest(&shown["largest"]);
    let told = largest(&report["retainers"]);
    assert!(told.len() >= 5, "{release}: {told:?}");
    for object in told {
        let found = shown.iter().position(|one| *one == object);
        let found = found.unwrap_or_else(|| panic!("{release}: {object:?} is not in {shown:?}"));
        shown.remove(found);
    }
}

#[test]
fn devtools_shows_what_the_report_tells() {
    for release in here(&RELEASES) {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], PROGRAM, ABORTED, folder.path()) else { return };
        let out = folder.path().join("out.heapsnapshot");
        let json = hasten(&[core.as_ref(), "--json".as_ref(), "--heapsnapshot".as_ref(), out.as_ref()]);
        let report: Value = serde_json::from_slice(&json).unwrap();
        assert!(report["refused"].is_null(), "{release}: {}", report["refused"]);
        let shown = devtools(&out);
        check_constructors(&shown, &report, release);
        check_whole(&shown, &report, release);
        check_largest(&shown, &report, release);
    }
}
