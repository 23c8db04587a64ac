//! `hasten core` on cores of every release of Node.js that is here: planted objects are found, counted and weighed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");
const RELEASES: [&str; 5] = ["18", "20", "22", "24", "26"];
const PLANTED: u64 = 5000;

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

fn node(release: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let node = root.join(format!(".deps/nodes/node_modules/node{release}/bin/node"));
    assert!(node.exists(), "{} is missing: scripts/nodes.sh brings it", node.display());
    node
}

/// Runs the program until it aborts, and returns the core file; nothing where the system puts those elsewhere.
fn core_of(release: &str, folder: &std::path::Path) -> Option<PathBuf> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
    if pattern.starts_with(['|', '/']) {
        println!("core files go elsewhere: {pattern}");
        return None;
    }
    fs::write(folder.join("app.js"), PROGRAM).unwrap();
    let script = "ulimit -c unlimited && exec \"$0\" app.js";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(node(release)).current_dir(folder);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.signal(), Some(6), "{status}");
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core")))
}

fn hasten(arguments: &[&std::ffi::OsStr]) -> Vec<u8> {
    let output = Command::new(HASTEN).arg("core").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn entry<'a>(report: &'a Value, name: &str) -> &'a Value {
    let entries = report["histogram"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn check_report(report: &Value, release: &str) {
    assert!(report["node"].as_str().unwrap().starts_with(release), "{}", report["node"]);
    assert_eq!(report["signal"], "SIGABRT");
    let frames = report["threads"][0]["frames"].as_array().unwrap();
    let named = |name: &str| frames.iter().find(|frame| frame["function"] == name).unwrap();
    assert_eq!(named("outer")["exact"], release != "26");
    if release != "26" {
        assert_eq!((&named("outer")["line"], &named("outer")["column"]), (&10.into(), &3.into()));
    }
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
    for release in RELEASES {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, folder.path()) else { return };
        let out = folder.path().join("out.heapsnapshot");
        let json = hasten(&[core.as_ref(), "--json".as_ref(), "--heapsnapshot".as_ref(), out.as_ref()]);
        check_report(&serde_json::from_slice(&json).unwrap(), release);
        check_snapshot(&fs::read(&out).unwrap());
        let redacted = hasten(&[core.as_ref(), "--json".as_ref(), "--redact".as_ref()]);
        assert!(!String::from_utf8(redacted).unwrap().contains("an argument"));
    }
}
