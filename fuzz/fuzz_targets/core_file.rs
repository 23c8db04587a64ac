//! Core files of Node.js that were damaged: flipped bits, circles, absurd sizes, cut off.
//!
//! The whole ones are taken of the releases in `.deps/nodes`, once.

#![no_main]

#[path = "../../cli/tests/support/damage.rs"]
mod damage;

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use damage::{Patient, check};
use hasten_corefile::{Options, Program};
use libfuzzer_sys::fuzz_target;

const RELEASES: [&str; 4] = ["20", "22", "24", "26"];

const PROGRAM: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i + '-' + this.id; this.list = [i, i]; } }
globalThis.all = new Map();
for (let i = 0; i < 300; i++) all.set('key-' + i, new Planted(i));
globalThis.weak = new WeakMap([[all, new Planted(-1)]]);
globalThis.sliced = 'a text of some length, of which a part is kept'.slice(3, 40);
globalThis.bag = {}; for (let i = 0; i < 100; i++) bag['p' + i] = i; delete bag.p3;
setInterval(() => {}, 1e6);
// It ends within optimised code that has other functions in it.
const ends = [() => 1, () => 2, () => 3, () => 4, () => 5, () => 6, () => {
  console.log('ready');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}];
function innermost(x, end) { return x + ends[end](); }
function middle(x, end) { return innermost(x, end) + 1; }
function outer(n, last) { let sum = 0; for (let i = 0; i < n; i++) sum += middle(i, last ? 6 : i % 6); return sum; }
for (let i = 0; i < 400; i++) outer(1000);
outer(1, true);
";

thread_local! {
    static PATIENTS: Vec<RefCell<Patient>> = RELEASES.map(patient).into_iter().flatten().map(RefCell::new).collect();
}

/// Nothing where the release is not there.
fn patient(release: &str) -> Option<Patient> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let node = root.join(format!(".deps/nodes/node_modules/node{release}/bin/node"));
    if !node.exists() {
        return None;
    }
    let mut child =
        Command::new(&node).args(["-e", PROGRAM]).stdout(Stdio::piped()).spawn().expect("node starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let out = std::env::temp_dir().join(format!("hasten-fuzz-{}-{release}.zst", std::process::id()));
    let copied = hasten_livecopy::snapshot(child.id().cast_signed(), &out, || None);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    copied.expect("a core file");
    let bytes = unpacked(&out);
    Some(Patient::new(bytes, Program::read(&node).expect("its symbols")))
}

fn unpacked(path: &PathBuf) -> Vec<u8> {
    let file = std::fs::File::open(path).expect("it was written");
    let bytes = zstd::decode_all(file).expect("it is whole");
    std::fs::remove_file(path).expect("it is ours");
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, steps)) = data.split_first() else { return };
    PATIENTS.with(|patients| {
        assert!(!patients.is_empty(), "scripts/nodes.sh brings releases of Node.js");
        let mut patient = patients[choice as usize % patients.len()].borrow_mut();
        let options = Options {
            heapsnapshot: (choice >= 224).then_some(Path::new("/dev/null")),
            object: Some(u64::from(choice)),
            path: (choice & 16 != 0).then_some(u64::from(choice)),
            tree: choice & 32 != 0,
            grep: (choice & 64 != 0).then_some("planted"),
            ..Options::default()
        };
        if let Ok(report) = patient.suffer(steps, &options) {
            check(&report);
        }
    });
});
