//! A process that runs: its stacks, two copies of it compared, how its objects are held, and a copy before it runs out of memory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use hasten_corefile::{Options, Program};
use serde_json::Value;

#[path = "support/damage.rs"]
mod damage;

use damage::Patient;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// Each line that it is sent makes it larger; each line that it answers says that it is.
const PROGRAM: &str = "
class Session { constructor(i) { this.id = i; this.text = 'session-' + i; this.list = [i, i]; } }
class Cache { constructor() { this.sessions = new Map(); this.secret = 'a secret word'; } }
globalThis.cache = new Cache();
globalThis.bag = {}; for (let i = 0; i < 100; i++) bag['p' + i] = i; delete bag.p3;
globalThis.weak = new WeakMap([[cache, { some: 'value' }]]);
function grow() {
  const from = cache.sessions.size;
  for (let i = from; i < from + 3000; i++) cache.sessions.set('key-' + i, new Session(i));
  console.log(cache.sessions.size);
}
process.stdin.on('data', grow);
grow();
";

/// It never rests, so that its stack is there at any moment.
const BUSY: &str = "
function spin(text, number) { let sum = 0; for (;;) { sum += text.length + number; } }
function caller() { spin('an argument', 42); }
console.log('ready');
setTimeout(caller, 1);
";

/// Memory that is held, slowly enough to be watched.
const LEAK: &str = "
const all = [];
console.log('ready');
setInterval(() => { for (let i = 0; i < 4000; i++) all.push({ i, text: 'leaked-' + i, list: [i] }); }, 10);
";

struct App {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl App {
    fn start(release: &str, options: &[&str], text: &str) -> Self {
        Self::of(Command::new(node(release)).args(options).args(["-e", text]))
    }

    fn of(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut program = Self { child, to, from: BufReader::new(from) };
        program.answer();
        program
    }

    fn answer(&mut self) {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "it ended");
    }

    fn grow(&mut self) {
        self.to.write_all(b"more\n").unwrap();
        self.answer();
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node(release: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let node = root.join(format!(".deps/nodes/node_modules/node{release}/bin/node"));
    assert!(node.exists(), "{} is missing: scripts/nodes.sh brings it", node.display());
    node
}

fn hasten(arguments: &[&str]) -> String {
    let output = Command::new(HASTEN).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&hasten(arguments)).unwrap()
}

fn copy(program: &App, to: &Path) -> String {
    let to = to.to_str().unwrap().to_owned();
    hasten(&["snapshot", &program.pid(), "--out", &to]);
    to
}

/// Whatever the moment, a copy is whole: it waits for the end of a collection.
fn whole_copy(program: &App, folder: &Path, name: &str) -> String {
    let core = copy(program, &folder.join(format!("{name}.zst")));
    let report = json(&["core", "--json", &core]);
    assert!(report["refused"].is_null(), "{}", report["refused"]);
    core
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn two_copies_tell_what_has_grown_and_who_holds_it() {
    for release in ["22", "26"] {
        let folder = tempfile::tempdir().unwrap();
        let mut program = App::start(release, &[], PROGRAM);
        let first = whole_copy(&program, folder.path(), "first");
        program.grow();
        let second = whole_copy(&program, folder.path(), "second");
        drop(program);

        let compared = json(&["core", &first, "--compare", &second, "--json"]);
        assert_eq!(compared["notes"].as_array().unwrap().len(), 0, "{release}: {}", compared["notes"]);
        let growth = compared["growth"].as_array().unwrap();
        let sessions = growth.iter().find(|growth| growth["name"] == "Session").unwrap();
        assert_eq!(sessions["count"], serde_json::json!([3000, 6000]), "{release}");
        let retained = |index: usize| sessions["retained_bytes"][index].as_u64().unwrap();
        assert!(retained(1) > retained(0) + 3000 * 100, "{release}: {sessions}");
        let grown = compared["retainers"].as_array().unwrap();
        assert!(grown.iter().any(|grown| grown["name"] == "Cache"), "{release}: {grown:#?}");
        let text = hasten(&["core", &first, "--compare", &second]);
        assert!(text.contains("Session") && text.contains("+3000"), "{text}");

        held(release, &second);
        page(folder.path(), &second);
    }
}

/// One of the suspects, and the way to it in the eyes of JavaScript.
fn held(release: &str, core: &str) {
    let report = json(&["core", core, "--json"]);
    let suspects = report["suspects"].as_array().unwrap();
    let sessions = suspects.iter().find(|suspect| suspect["name"] == "Session").unwrap();
    assert_eq!((&sessions["count"], &sessions["share"]), (&6000.into(), &1.0.into()), "{release}");
    let example = sessions["example"].as_str().unwrap();
    let report = json(&["core", core, "--json", "--path", example]);
    let steps = report["paths"][0]["steps"].as_array().unwrap();
    let way: Vec<&str> = steps.iter().map(|step| step["reference"].as_str().unwrap()).collect();
    assert!(way.windows(2).any(|two| two == [".cache", ".sessions"]), "{release}: {steps:#?}");
    assert_eq!(steps.last().unwrap()["name"], "Session", "{release}");
    assert!(hasten(&["core", core, "--path", example]).contains(".sessions"));
    let none = hasten(&["core", core, "--path", "8"]);
    assert!(none.contains("no root leads"), "{none}");
}

fn page(folder: &Path, core: &str) {
    let path = folder.join("page.html");
    // Open to everybody before, not after.
    fs::write(&path, "old").unwrap();
    hasten(&["core", core, &format!("--html={}", path.display())]);
    let html = fs::read_to_string(&path).unwrap();
    assert!(html.contains("6000 × Session") && html.contains(".sessions"));
    assert_eq!(mode(&path), 0o600);
    let export = folder.join("out.heapsnapshot");
    fs::write(&export, "old").unwrap();
    let arguments = ["core", core, "--redact", "--heapsnapshot", export.to_str().unwrap()];
    let text = hasten(&arguments) + &fs::read_to_string(&export).unwrap();
    assert!(text.contains("Session") && !text.contains("a secret word") && !text.contains("session-17"));
    assert_eq!(mode(&export), 0o600);
}

#[test]
fn the_stack_of_a_process_is_told_while_it_runs() {
    for release in ["20", "22", "24", "26"] {
        let program = App::start(release, &[], BUSY);
        // It is on its way there.
        let seen = (0..50).find_map(|_| {
            let report = json(&["snapshot", "--stack", "--json", &program.pid()]);
            let frames = report["threads"][0]["frames"].as_array().unwrap().clone();
            (frames.len() > 1 && frames[0]["function"] == "spin").then_some((report, frames))
        });
        let (report, frames) = seen.unwrap_or_else(|| panic!("{release}: never there"));
        assert!(report["node"].as_str().unwrap().starts_with(release), "{report}");
        assert!(report["pause_wall_ms"].as_f64().unwrap() > 0.0);
        let caller = frames.iter().find(|frame| frame["function"] == "caller").unwrap();
        assert_eq!(caller["line"], 3, "{release}: {caller}");
        assert_eq!(frames[0]["arguments"], serde_json::json!(["\"an argument\"", "42"]), "{release}");
        let text = hasten(&["snapshot", "--stack", "--redact", &program.pid()]);
        assert!(text.contains("spin") && !text.contains("an argument"), "{text}");
        let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
    }
}

/// What has returned leaves its frames on the stack, where libuv's room for events is.
#[test]
fn a_process_that_waits_has_no_function_of_javascript_on_its_stack() {
    const WAITS: &str = "setInterval(() => {}, 1000); console.log('ready');";
    for release in ["18", "20", "22", "24", "26"] {
        let program = App::start(release, &[], WAITS);
        let is_waiting = || {
            let report = json(&["snapshot", "--stack", "--json", &program.pid()]);
            let frames = report["threads"][0]["frames"].as_array().unwrap().clone();
            frames.iter().all(|frame| frame["kind"] == "native")
        };
        let since = Instant::now();
        while !is_waiting() {
            assert!(since.elapsed() < Duration::from_secs(60), "{release}");
        }
    }
}

#[test]
fn a_process_is_copied_before_its_heap_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let program = App::start("24", &["--max-old-space-size=80"], LEAK);
    let pid = program.pid();
    // Of an earlier watch: too many already, and not all of them its own.
    for name in [format!("core.{pid}.1.zst"), format!("core.{pid}.2.zst"), "core.mine.zst".to_owned()] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let arguments =
        ["snapshot", "--on-oom", "--json", "--keep", "2", "--out", folder.path().to_str().unwrap(), &pid];
    let text = hasten(&arguments);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["watching", "written", "ended"], "{text}");
    assert_eq!(events[0]["heap_limit_bytes"], 80 << 20);
    let file = PathBuf::from(events[1]["file"].as_str().unwrap());
    assert_eq!(mode(&file), 0o600);
    let mut left: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let mut expected =
        [file.clone(), folder.path().join(format!("core.{pid}.2.zst")), folder.path().join("core.mine.zst")];
    expected.sort();
    assert_eq!(left, expected);
    let report = json(&["core", "--json", file.to_str().unwrap()]);
    let held = report["suspects"].as_array().unwrap();
    assert!(held.iter().any(|held| held["count"].as_u64().unwrap() > 10_000), "{held:#?}");
}

/// Debian's build is stripped, and V8 is in a shared library, which carries what describes its objects.
#[test]
fn debians_node_is_copied_and_read() {
    let tree = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.deps/debian-node").canonicalize();
    let tree = tree.expect("scripts/debian-node.sh brings it");
    let folder = tempfile::tempdir().unwrap();
    // It reads some of its own modules from there.
    let script = "mount --bind \"$0/usr/share\" /usr/share && exec \"$0/usr/bin/node\" -e \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(&tree).arg(PROGRAM);
    command.env("LD_LIBRARY_PATH", tree.join("usr/lib/x86_64-linux-gnu"));
    let program = App::of(&mut command);
    let core = copy(&program, &folder.path().join("debian.zst"));
    let report = json(&["core", "--json", &core]);
    assert!(report["node"].as_str().unwrap().starts_with("18."), "{}", report["node"]);
    assert!(report["program"].as_str().unwrap().contains("libnode.so"), "{}", report["program"]);
    let entries = report["histogram"].as_array().unwrap();
    let sessions = entries.iter().find(|entry| entry["name"] == "Session").unwrap();
    assert_eq!(sessions["count"], 3000);
    // Not enough is understood for retained sizes, which is said.
    assert!(report["refused"].as_str().unwrap().contains("understood"), "{}", report["refused"]);
    let stack = json(&["snapshot", "--stack", "--json", &program.pid()]);
    assert!(stack["node"].as_str().unwrap().starts_with("18."), "{stack}");
}

/// Some hundred kinds of damage to a core file, by a generator with fixed seeds.
#[test]
fn damage_ends_with_an_error_or_a_report_that_agrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let program = App::start("24", &["--max-semi-space-size=1"], PROGRAM);
    let packed = copy(&program, &folder.path().join("core.zst"));
    drop(program);
    let bytes = Command::new("zstd").args(["-dc", &packed]).output().unwrap().stdout;
    assert!(!bytes.is_empty(), "zstd unpacks it");
    let mut patient = Patient::new(bytes, Program::read(&node("24")).unwrap());
    let whole = patient.suffer(&[], &Options::default()).unwrap();
    assert!(whole.refused.is_none() && whole.heap.live_objects > 10_000);
    let (mut state, mut told, mut refused) = (1_u64, 0, 0);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    for round in 0..60 {
        let steps: Vec<u8> = (0..damage::STEP * (1 + round * 4)).map(|_| random()).collect();
        let options =
            Options { tree: round % 4 == 0, object: Some(1), grep: Some("session"), ..Options::default() };
        if let Ok(report) = patient.suffer(&steps, &options) {
            damage::check(&report);
            told += 1;
            refused += usize::from(report.refused.is_some());
        }
    }
    // Both ways out were taken.
    assert!(told > 5 && refused > 0, "{told} reports, {refused} of them without sizes");
    // Whole again: nothing of it is left.
    let again = patient.suffer(&[], &Options::default()).unwrap();
    assert_eq!(again.heap.live_bytes, whole.heap.live_bytes);
}
