//! `hasten core` on cores of every release of Node.js that is here: planted objects are found, counted and weighed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "support/cores.rs"]
mod cores;
#[path = "support/heapsnapshot.rs"]
mod heapsnapshot;

use cores::{core_of, hasten, here, node};
use heapsnapshot::Snapshot;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");
const RELEASES: [&str; 5] = ["18", "20", "22", "24", "26"];
const PLANTED: u64 = 5000;
const ABORTED: i32 = 6;

/// A thousand words in each: what one retains is known to the byte.
const PROGRAM: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i; this.list = [i, i, i]; this.self = this; } }
class Holder { constructor() { this.all = []; } }
globalThis.holder = new Holder();
for (let i = 0; i < 5000; i++) globalThis.holder.all.push(new Planted(i));
globalThis.map = new Map([['key', new Planted(-1)]]);
globalThis.gone = new WeakRef(new Planted(-2));
function inner(secret) { process.abort(); }
function outer() {
  inner('an argument');
}
setTimeout(outer, 50);
";

/// Objects of all kinds, then V8's own snapshot of them, then the end.
const COMPARED: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i; this.list = [i, i, i]; this.self = this; } }
class Base { constructor(i) { this.base = i; } }
class Derived extends Base { constructor(i) { super(i); this.at = new Date(i); this.get = () => i; } }
class Key { constructor(i) { this.i = i; } }
class Value { constructor(i) { this.bytes = new Array(50).fill(i); } }
class Holder { constructor() { this.all = []; } }
globalThis.holder = new Holder();
for (let i = 0; i < 5000; i++) holder.all.push(new Planted(i));
globalThis.derived = new Map();
for (let i = 0; i < 1000; i++) derived.set('derived-' + i, new Derived(i));
globalThis.keys = new Set();
for (let i = 0; i < 500; i++) keys.add(new Key(i));
globalThis.weak = new WeakMap();
for (const key of keys) if (key.i % 2) weak.set(key, new Value(key.i));
globalThis.gone = new WeakRef(new Planted(-1));
globalThis.typed = [new Float64Array(1000), Buffer.alloc(20000)];
globalThis.rings = [];
for (let i = 0; i < 100; i++) { const a = { i }, b = { a }; a.b = b; rings.push(a); }
globalThis.texts = [];
for (let i = 0; i < 100; i++) { const s = 'x'.repeat(100) + i; texts.push(s.slice(3, 60), s + '\\u1234'.repeat(20)); }
const never = new Promise(() => {});
async function wait() { await never; }
globalThis.waits = [];
for (let i = 0; i < 100; i++) waits.push(wait());
setTimeout(() => { require('v8').writeHeapSnapshot('v8.heapsnapshot'); process.abort(); }, 50);
";

fn entry<'a>(report: &'a Value, name: &str) -> &'a Value {
    let entries = report["histogram"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn check_report(report: &Value, release: &str) {
    assert!(report["node"].as_str().unwrap().starts_with(release), "{}", report["node"]);
    assert_eq!((&report["signal"], &report["missing_pages"]), (&"SIGABRT".into(), &0.into()));
    let frames = report["threads"][0]["frames"].as_array().unwrap();
    let named = |name: &str| frames.iter().find(|frame| frame["function"] == name).unwrap();
    assert_eq!(named("outer")["exact"], true);
    assert_eq!((&named("outer")["line"], &named("outer")["column"]), (&10.into(), &3.into()));
    assert_eq!(named("inner")["arguments"][0], "\"an argument\"");
    // Never silently wrong: either the sizes are right, or there are none, with the reason.
    if report["refused"].is_string() {
        let told =
            report["histogram"].as_array().unwrap().iter().any(|entry| !entry["retained_bytes"].is_null());
        assert!(!told && report["retainers"].as_array().unwrap().is_empty(), "{release}");
        println!("{release}: {}", report["refused"]);
        return;
    }
    let planted = entry(report, "Planted");
    let count = planted["count"].as_u64().unwrap();
    assert!((PLANTED + 1..=PLANTED + 2).contains(&count), "{release}: {count}");
    // Each: itself with 4 fields, its string, its array and the array's elements.
    let retained = planted["retained_bytes"].as_u64().unwrap() / count;
    assert!((120..400).contains(&retained), "{release}: {retained}");
    let holder = entry(report, "Holder")["retained_bytes"].as_u64().unwrap();
    assert!(holder >= PLANTED * retained, "{release}: {holder}");
}

/// The numbers at its head are those of what follows, and edges lead to nodes.
fn check_snapshot(bytes: &[u8]) {
    let snapshot: Value = serde_json::from_slice(bytes).unwrap();
    let numbers = |name: &str| snapshot[name].as_array().unwrap();
    let count = |name: &str| snapshot["snapshot"][name].as_u64().unwrap() as usize;
    let (nodes, edges) = (numbers("nodes"), numbers("edges"));
    assert_eq!((nodes.len(), edges.len()), (count("node_count") * 6, count("edge_count") * 3));
    let edges_of_nodes: u64 = nodes.chunks(6).map(|node| node[4].as_u64().unwrap()).sum();
    assert_eq!(edges_of_nodes as usize, count("edge_count"));
    assert!(edges.chunks(3).all(|edge| (edge[2].as_u64().unwrap() as usize) < nodes.len()));
    let strings = numbers("strings");
    let named = nodes.chunks(6).filter(|node| strings[node[1].as_u64().unwrap() as usize] == "Planted");
    assert!(named.filter(|node| node[0] == 3).count() as u64 > PLANTED);
}

#[test]
fn planted_objects_are_found_in_cores_of_every_release() {
    for release in here(&RELEASES) {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], PROGRAM, ABORTED, folder.path()) else { return };
        let out = folder.path().join("out.heapsnapshot");
        let json = hasten(&[core.as_ref(), "--json".as_ref(), "--heapsnapshot".as_ref(), out.as_ref()]);
        check_report(&serde_json::from_slice(&json).unwrap(), release);
        check_snapshot(&fs::read(&out).unwrap());
        let redacted = hasten(&[core.as_ref(), "--json".as_ref(), "--redact".as_ref()]);
        assert!(!String::from_utf8(redacted).unwrap().contains("an argument"));
    }
}

/// Of the hundred objects that retain most in V8's eyes, how many are as large in ours, to one percent.
fn alike(v8: &Snapshot, ours: &Snapshot) -> usize {
    let mut left = ours.largest(400);
    let mut same = |(size, retained): &(u64, u64)| {
        let near =
            |(other, bytes): &(u64, u64)| other == size && bytes.abs_diff(*retained) * 100 <= *retained;
        left.iter().position(near).map(|found| left.remove(found)).is_some()
    };
    v8.largest(100).iter().filter(|object| same(object)).count()
}

#[test]
fn counts_and_retained_sizes_are_those_of_v8() {
    for release in here(&RELEASES[1..]) {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], COMPARED, ABORTED, folder.path()) else { return };
        let out = folder.path().join("ours.heapsnapshot");
        let json = hasten(&[core.as_ref(), "--json".as_ref(), "--heapsnapshot".as_ref(), out.as_ref()]);
        let report: Value = serde_json::from_slice(&json).unwrap();
        assert!(report["refused"].is_null(), "{release}: {}", report["refused"]);
        let walked = report["walked_share"].as_f64().unwrap();
        assert!(walked >= 0.999 && report["unknown_words"] == 0, "{release}: {walked}");
        let v8 = Snapshot::parse(&fs::read(folder.path().join("v8.heapsnapshot")).unwrap());
        let ours = Snapshot::parse(&fs::read(&out).unwrap());
        for name in ["Planted", "Derived", "Key", "Value", "Holder"] {
            let (count, bytes) = v8.of(name);
            assert!(count > 0, "{release}: {name}");
            let near = |ours: u64, v8: u64| ours.abs_diff(v8) * 100 <= v8;
            let same = |ours: u64, v8: u64| ours.abs_diff(v8) * 1000 <= v8;
            let export = ours.of(name);
            assert!(
                same(export.0, count) && near(export.1, bytes),
                "{release}: {name}: {export:?}, {count} {bytes}"
            );
            let entry = entry(&report, name);
            let (told, retained) = (&entry["count"], &entry["retained_bytes"]);
            assert!(same(told.as_u64().unwrap(), count), "{release}: {name}: {told}, {count}");
            assert!(near(retained.as_u64().unwrap(), bytes), "{release}: {name}: {retained}, {bytes}");
        }
        let alike = alike(&v8, &ours);
        assert!(alike >= 90, "{release}: only {alike} of the hundred largest");
    }
}

/// Bytes of a core file changed at random, mostly where something is.
fn damage(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let at = random(bytes.len());
        if bytes[at] != 0 {
            bytes[at] ^= 1 << random(8);
        }
    }
}

#[test]
fn a_damaged_core_ends_with_an_error_or_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let Some(core) = core_of("22", &[], PROGRAM, ABORTED, folder.path()) else { return };
    let whole = fs::read(core).unwrap();
    let path = folder.path().join("damaged");
    let out = folder.path().join("out.heapsnapshot");
    for seed in 0..4 {
        let mut bytes = whole.clone();
        damage(&mut bytes, seed);
        if seed == 3 {
            bytes.truncate(whole.len() / 2);
        }
        fs::write(&path, bytes).unwrap();
        // Bounded: an endless loop ends the test with 124.
        let mut command = Command::new("timeout");
        command.args(["120", HASTEN, "core", "--json", "--heapsnapshot"]).args([&out, &path]);
        command.args(["--object", "1", "--node"]).arg(node("22"));
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "seed {seed}: {status}");
    }
}
