//! Functions that the compiler has put into one another, against the stack that V8 tells at the same place.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "support/cores.rs"]
mod cores;

use cores::{core_of, hasten, here, node};

const ABORTED: i32 = 6;

/// One release, and all of them in `make thorough`: each writes these data in another way.
fn releases() -> Vec<&'static str> {
    match std::env::var_os("HASTEN_TEST_THOROUGH") {
        Some(_) => here(&["20", "22", "24", "26"]),
        None => here(&["24"]),
    }
}

/// What is called at the end could be one of many, so that it is no part of what calls it.
const PROGRAM: &str = "
const fs = require('fs');
const ends = [() => 1, () => 2, () => 3, () => 4, () => 5, () => 6, () => {
  fs.writeFileSync('stack', new Error().stack);
  if (!process.argv[3]) process.abort();
  fs.writeSync(1, 'ready');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}];
class Point { constructor(x, end) { this.x = x; this.y = innermost(x, end); } }
function innermost(x, end) {
  let sum = x;
  if (x >= 0) {
    sum += ends[end](); }
  return sum;
}
function middle(x, end) {
  return innermost(x, end) + 1;
}
function hot(x, end) {
  let total = 1;
  try { total += middle(x, end); } finally { total++; }
  return total;
}
function made(x, end) { return new Point(x, end).y + 1; }
function each(list, end) { let sum = 0; list.forEach((x) => { sum += innermost(x, end); }); return sum; }
const programs = { hot: [hot, 7], made: [made, 7], each: [each, [1, 2, 3]] };
const [what, on] = programs[process.argv[2]];
function outer(n, last) { let sum = 0; for (let i = 0; i < n; i++) sum += what(on, last ? 6 : i % 6); return sum; }
for (let i = 0; i < 400; i++) outer(1000);
outer(1, true);
";

/// Function, line and column of the calls from the end to the outermost of these functions, as V8 has told them.
fn told(folder: &Path) -> Vec<(String, u64, u64)> {
    let text = fs::read_to_string(folder.join("stack")).unwrap();
    let call = |line: &str| {
        let line = line.trim().trim_start_matches("at ");
        let (name, place) = line.split_once(" (").unwrap_or(("(anonymous)", line));
        let mut numbers = place.trim_end_matches(')').rsplit(':').map(|part| part.parse().unwrap_or(0));
        let (column, line) = (numbers.next().unwrap(), numbers.next().unwrap_or(0));
        (name.rsplit(['.', ' ']).next().unwrap().to_owned(), line, column)
    };
    // The first line is the message, and then comes what tells the stack.
    let calls: Vec<_> = text.lines().skip(2).map(call).collect();
    let last = calls.iter().position(|(name, ..)| name == "outer").unwrap();
    calls[..=last].to_vec()
}

/// The same of a report, and of which kind each is.
fn found(report: &Value) -> (Vec<(String, u64, u64)>, Vec<String>) {
    let frames = report["threads"][0]["frames"].as_array().unwrap();
    let name = |frame: &Value, name: &str| frame[name].as_str().unwrap().to_owned();
    let last = frames.iter().position(|frame| frame["function"] == "outer");
    let last = last.unwrap_or_else(|| panic!("{frames:#?}"));
    let frames: Vec<&Value> = frames[..=last].iter().filter(|frame| frame["kind"] != "native").collect();
    let end = frames.iter().position(|frame| frame["function"] == "innermost").unwrap_or(0);
    let place = |frame: &&Value| {
        (name(frame, "function"), frame["line"].as_u64().unwrap(), frame["column"].as_u64().unwrap())
    };
    let kinds = frames[end..].iter().map(|frame| name(frame, "kind")).collect();
    (frames[end..].iter().map(place).collect(), kinds)
}

fn check(report: &Value, folder: &Path, about: &str) {
    let (found, kinds) = found(report);
    let told = told(folder);
    let is_same = |index: usize| {
        let (told, found) = (&told[index], &found[index]);
        match &*kinds[index] {
            // Baseline code is there yet.
            "compiled" => told.0 == found.0,
            // Maglev names no builtin.
            _ => told == found || told.0 == "forEach" && found.0 == "(builtin)" && found.1 == 0,
        }
    };
    let same = told.len() == found.len() && (0..told.len()).all(is_same);
    assert!(same, "{about}: {found:?}, {kinds:?} instead of {told:?}");
    assert!(kinds.iter().any(|kind| kind == "optimised, inlined"), "{about}: {kinds:?}");
}

#[test]
fn functions_in_an_optimised_frame_are_told_as_v8_tells_them() {
    for release in releases() {
        for what in ["hot", "made", "each"] {
            // TurboFan's code, and Maglev's where the release uses it.
            let maglev = ["24", "26"].contains(&release).then_some(["--maglev", "--no-turbofan"]);
            let turbofan = vec!["--no-concurrent-recompilation"];
            let compilers: Vec<Vec<&str>> = [turbofan].into_iter().chain(maglev.map(Vec::from)).collect();
            for options in &compilers {
                let folder = tempfile::tempdir().unwrap();
                let program = PROGRAM.replace("process.argv[2]", &format!("'{what}'"));
                let Some(core) = core_of(release, options, &program, ABORTED, folder.path()) else { return };
                let report = hasten(&[core.as_ref(), "--json".as_ref(), "--stack".as_ref()]);
                let report = serde_json::from_slice(&report).unwrap();
                check(&report, folder.path(), &format!("{release} {what} {options:?}"));
            }
        }
    }
}

#[test]
fn functions_in_an_optimised_frame_are_told_of_a_process_that_runs() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("app.js"), PROGRAM).unwrap();
        let mut command = Command::new(node(release));
        command.args(["app.js", "hot", "waits"]).current_dir(folder.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
        let mut hasten = Command::new(env!("CARGO_BIN_EXE_hasten"));
        let output =
            hasten.args(["snapshot", "--stack", "--json", &child.id().to_string()]).output().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(output.status.success(), "{release}: {}", String::from_utf8_lossy(&output.stderr));
        check(&serde_json::from_slice(&output.stdout).unwrap(), folder.path(), release);
    }
}
