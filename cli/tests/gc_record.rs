//! `hasten gc record` against real processes of several releases.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");
/// Generous: other tests run at the same time.
const LIMIT: Duration = Duration::from_secs(60);

const SERVER: &str = "\
const kept = [];
let n = 0;
setInterval(() => {
  const rows = [];
  for (let i = 0; i < 5000; i += 1) rows.push({ i, text: 'row ' + i });
  kept[n++ % 20] = rows;
}, 2);
";

/// A runtime folder, and the processes that use it.
struct Place {
    folder: TempDir,
    children: Vec<Child>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::DirBuilder::new().mode(0o700).create(folder.path().join("run")).unwrap();
        let gc = Path::new(HASTEN).with_file_name("node").join("gc.js");
        assert!(gc.exists(), "{} is missing: run `scripts/node-plugin.sh target`", gc.display());
        // The plugin opens the channel after a second; here it is open at once.
        let register = format!("require({:?}).start();", gc.to_str().unwrap());
        fs::write(folder.path().join("register.js"), register).unwrap();
        fs::write(folder.path().join("server.js"), SERVER).unwrap();
        Self { folder, children: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run_folder(&self, name: &str) -> PathBuf {
        self.path("run").join(name)
    }

    fn socket(&self, pid: u32) -> PathBuf {
        self.run_folder("node").join(format!("{pid}.sock"))
    }

    fn spawn(&mut self, command: &mut Command) -> u32 {
        command.env("HASTEN_RUNTIME_DIR", self.path("run")).env_remove("NODE_OPTIONS");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        pid
    }

    /// A server of this release with an open channel.
    fn server(&mut self, major: u32) -> u32 {
        let mut command = Command::new(node(major));
        command.arg("--require").arg(self.path("register.js")).arg(self.path("server.js"));
        let pid = self.spawn(&mut command);
        until(|| self.list().contains(&format!("{pid}")));
        pid
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(HASTEN);
        command.args(["gc", "record"]).args(arguments).env("HASTEN_RUNTIME_DIR", self.path("run"));
        command.current_dir(self.folder.path());
        command
    }

    fn record(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn list(&self) -> String {
        text(&self.record(&["--list"]).stdout)
    }

    /// What appears on standard error if it fails.
    fn failure(&self, arguments: &[&str]) -> String {
        let output = self.record(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty());
        text(&output.stderr)
    }

    fn recordings(&self) -> usize {
        fs::read_dir(self.run_folder("gc")).map_or(0, Iterator::count)
    }

    fn signal(&self, pid: u32, signal: &str) {
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn node(major: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let node = root.join(format!(".deps/nodes/node_modules/node{major}/bin/node"));
    assert!(node.exists(), "{} is missing: run `scripts/nodes.sh`", node.display());
    node
}

fn until(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LIMIT, "it never happened");
        sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every line of a recording.
fn lines(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn records_a_running_process_into_a_file_that_hasten_gc_reads() {
    for major in [18, 22, 26] {
        let mut place = Place::new();
        let pid = place.server(major);
        let output = place.record(&[&pid.to_string(), "--for", "2s", "--out", "gc.jsonl"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text(&output.stdout), "hasten gc gc.jsonl\n");
        assert!(text(&output.stderr).contains(&format!("process {pid}")), "{output:?}");
        let lines = lines(&place.path("gc.jsonl"));
        assert_eq!(lines[0]["pid"], pid);
        assert!(lines[0]["node"].as_str().unwrap().starts_with(&format!("v{major}.")));
        let last = lines.last().unwrap();
        assert_eq!((&last["end"], &last["why"]), (&Value::Bool(true), &Value::from("time")));
        assert!(lines.iter().any(|line| line["gc"] == "scavenge"));
        // It has been moved, and nothing else is left.
        assert_eq!(place.recordings(), 0);
        let mode = fs::metadata(place.path("gc.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let summary =
            Command::new(HASTEN).args(["gc", "--json"]).arg(place.path("gc.jsonl")).output().unwrap();
        let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
        assert_eq!(summary["traces"][0]["isolates"][0]["isolate"]["pid"], pid);
    }
}

#[test]
fn a_cpu_profile_comes_with_the_collections() {
    let every = [18, 20, 22, 24, 26];
    let releases = if std::env::var_os("HASTEN_TEST_THOROUGH").is_some() { &every[..] } else { &every[3..4] };
    for &major in releases {
        let mut place = Place::new();
        let hot =
            "setInterval(function hot() { for (let i = 0, x = 0; i < 5e6; i += 1) x += Math.sqrt(i); }, 5);";
        fs::write(place.path("server.js"), format!("{SERVER}\n{hot}")).unwrap();
        let pid = place.server(major);
        let cpu = ["--cpu", "--cpu-interval", "500us", "--for", "3s", "--out", "gc.jsonl"];
        let output = place.record(&[&[pid.to_string().as_str()], &cpu[..]].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stderr).contains(" samples recorded"), "{output:?}");
        let gc = |arguments: &[&str]| {
            let output =
                Command::new(HASTEN).arg("gc").args(arguments).current_dir(place.folder.path()).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{output:?}");
            text(&output.stdout)
        };
        let told = gc(&["gc.jsonl"]);
        assert!(told.contains("CPU profile of the main thread") && told.contains("server.js:"), "{told}");
        let json: Value =
            serde_json::from_str(&gc(&["--json", "gc.jsonl", "--cpuprofile", "app.cpuprofile"])).unwrap();
        let profile = &json["traces"][0]["isolates"][0]["profile"];
        assert_eq!((&profile["interval_us"], &profile["end"]), (&500.into(), &"time".into()));
        let names: Vec<_> =
            profile["functions"].as_array().unwrap().iter().take(5).map(|one| &one["name"]).collect();
        assert!(names.contains(&&Value::from("hot")), "{names:?}");
        let exported: Value =
            serde_json::from_str(&fs::read_to_string(place.path("app.cpuprofile")).unwrap()).unwrap();
        assert_eq!(
            exported["samples"].as_array().unwrap().len(),
            exported["timeDeltas"].as_array().unwrap().len()
        );
    }
}

/// Two threads that wait for work and do it, and others that come and go.
const POOL: &str = "\
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
if (isMainThread) {
  const start = (name) => {
    const worker = new Worker(__filename, { name, workerData: name });
    worker.on('message', () => worker.postMessage(1));
    worker.postMessage(1);
    return worker;
  };
  ['one', 'two'].forEach(start);
  setInterval(function inMain() { for (let i = 0, x = 0; i < 1e6; i += 1) x += Math.sqrt(i); }, 20);
  setTimeout(start, 2500, 'late');
  let brief;
  setInterval(() => { brief?.terminate(); brief = start('brief'); }, 700);
} else {
  // New each time: V8 may tell an older one as its caller.
  let turns = 0;
  const source = '(function inWorker() { for (let i = 0, x = 0; i < 1e6; i += 1) x += Math.sqrt(i); }';
  parentPort.on('message', () => {
    eval(source + '/*' + turns++ + '*/)')();
    setTimeout(() => parentPort.postMessage(1), 5);
  });
}
";

#[test]
fn worker_threads_have_cpu_profiles_of_their_own() {
    let every = [18, 20, 22, 24, 26];
    let releases = if std::env::var_os("HASTEN_TEST_THOROUGH").is_some() { &every[..] } else { &every[2..3] };
    for &major in releases {
        let mut place = Place::new();
        fs::write(place.path("server.js"), POOL).unwrap();
        let pid = place.server(major);
        let output = place.record(&[&pid.to_string(), "--cpu", "--for", "6s", "--out", "gc.jsonl"]);
        assert!(output.status.success(), "{output:?}");
        assert!(!is_sampled(pid), "{major}");
        let mut command = Command::new(HASTEN);
        command.args(["gc", "--json", "gc.jsonl", "--cpuprofile", "app.cpuprofile"]);
        let output = command.current_dir(place.folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["traces"][0]["lines"]["unknown"], 0, "{major}");
        let workers = json["traces"][0]["isolates"][0]["workers"].as_array().unwrap();
        let names: Vec<_> =
            workers.iter().map(|one| one["worker"]["name"].as_str().unwrap().to_owned()).collect();
        for name in ["one", "two", "late"] {
            let at = names.iter().position(|one| one == name);
            let worker = &workers[at.unwrap_or_else(|| panic!("{major}: {name} in {names:?}"))];
            let functions = worker["functions"].as_array().unwrap();
            let has = |name: &str| functions.iter().any(|one| one["name"] == name);
            assert!(has("inWorker") && !has("inMain"), "{major}: {functions:?}");
            let number = &worker["worker"]["number"];
            let file = place.path(&format!("app.worker-{number}.cpuprofile"));
            let exported: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            assert!(!exported["samples"].as_array().unwrap().is_empty(), "{major}");
        }
        assert!(place.path("app.cpuprofile").exists());
        let output = Command::new(HASTEN).args(["gc"]).arg(place.path("gc.jsonl")).output().unwrap();
        let told = text(&output.stdout);
        assert!(told.contains("CPU profile of worker ") && told.contains("(late)"), "{told}");
    }
}

#[test]
fn a_recorder_that_is_killed_takes_its_cpu_profile_with_it() {
    let mut place = Place::new();
    let pid = place.server(22);
    let mut command = place.command(&[&pid.to_string(), "--cpu", "--for", "1h", "--out", "gc.jsonl"]);
    let mut recorder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| is_sampled(pid));
    let said = place.failure(&[&pid.to_string(), "--cpu", "--for", "1s"]);
    assert!(
        said.contains("no CPU profile") && said.contains("under way") && said.contains("fix: record its"),
        "{said}"
    );
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    until(|| !is_sampled(pid));
    let output = place.record(&[&pid.to_string(), "--cpu", "--for", "1s", "--out", "second.jsonl"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        lines(&place.path("second.jsonl")).iter().any(|line| line["cpu"] == "end" && line["why"] == "time")
    );
    assert!(!is_sampled(pid));
}

/// A plugin that knows nothing of profiles, and answers as if nothing but collections had been asked for.
const OLD_PLUGIN: &str = "\
const fs = require('node:fs');
const folder = `${process.env.HASTEN_RUNTIME_DIR}/node`;
fs.mkdirSync(folder, { mode: 0o700 });
require('node:net').createServer((socket) => socket.on('data', (text) => {
  const { op } = JSON.parse(String(text).split('\\n')[0]);
  if (op === 'stop') fs.writeFileSync(`${folder}/stopped`, '');
  const answer = { ok: true, pid: process.pid, node: process.version, script: null, recording: false, file: '/nowhere' };
  socket.write(JSON.stringify(answer) + '\\n');
}).on('error', () => {})).listen(`${folder}/${process.pid}.sock`);
";

#[test]
fn an_older_plugin_is_told_from_one_that_takes_profiles() {
    let mut place = Place::new();
    fs::write(place.path("old.js"), OLD_PLUGIN).unwrap();
    let old = place.path("old.js");
    let pid = place.spawn(Command::new(node(20)).arg(old));
    until(|| place.socket(pid).exists());
    let said = place.failure(&[&pid.to_string(), "--cpu", "--for", "1s"]);
    assert!(
        said.contains("older than this command") && said.contains("fix: start the process again"),
        "{said}"
    );
    // Nor does it record what nobody waits for.
    until(|| place.run_folder("node").join("stopped").exists());
}

/// V8 has a handler for SIGPROF while it samples.
fn is_sampled(pid: u32) -> bool {
    const SIGPROF: u32 = 27;
    caught(pid) & 1 << (SIGPROF - 1) != 0
}

#[test]
fn without_a_name_the_recording_stays_in_the_runtime_folder() {
    let mut place = Place::new();
    let pid = place.server(20);
    let output = place.record(&[&pid.to_string(), "--for", "1s"]);
    let command = text(&output.stdout);
    let file = command.trim_end().strip_prefix("hasten gc ").unwrap();
    assert!(Path::new(file).starts_with(place.run_folder("gc")), "{file}");
    assert_eq!(lines(Path::new(file)).last().unwrap()["end"], true);
}

#[test]
fn ctrl_c_ends_a_recording_early_and_keeps_it() {
    let mut place = Place::new();
    let pid = place.server(24);
    let mut command = place.command(&[&pid.to_string(), "--for", "1h", "--out", "gc.jsonl"]);
    let recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| place.recordings() == 1);
    // As a terminal does to a program that watches for it.
    until(|| watches_for_interrupt(recorder.id()));
    place.signal(recorder.id(), "-INT");
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines(&place.path("gc.jsonl")).last().unwrap()["why"], "asked");
}

fn watches_for_interrupt(pid: u32) -> bool {
    caught(pid) & 2 != 0
}

/// The signals that a process has handlers for.
fn caught(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
    u64::from_str_radix(caught, 16).unwrap()
}

#[test]
fn a_process_that_ends_takes_nothing_with_it() {
    let mut place = Place::new();
    let script = format!("{SERVER}\nprocess.on('SIGTERM', () => process.exit(0));");
    fs::write(place.path("server.js"), script).unwrap();
    let pid = place.server(22);
    let mut command = place.command(&[&pid.to_string(), "--for", "1h", "--out", "gc.jsonl"]);
    let recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| place.recordings() == 1);
    place.signal(pid, "-TERM");
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("The process has ended"), "{output:?}");
    assert_eq!(lines(&place.path("gc.jsonl")).last().unwrap()["why"], "exit");
}

#[test]
fn lists_what_can_be_recorded() {
    let mut place = Place::new();
    assert!(
        place
            .failure(&["--list"])
            .contains("no Node.js process of this user can be recorded\n  fix: start it with")
    );
    let (first, second) = (place.server(18), place.server(26));
    let list = place.list();
    assert_eq!(list.lines().count(), 3, "{list}");
    for (pid, node) in [(first, "v18."), (second, "v26.")] {
        let line = list.lines().find(|line| line.contains(&pid.to_string())).unwrap();
        assert!(line.contains(node) && line.contains("ready") && line.ends_with("server.js"), "{line}");
    }
    // A killed process leaves its socket.
    place.signal(second, "-KILL");
    let _ = place.children[1].wait();
    assert!(place.socket(second).exists());
    assert_eq!(place.list().lines().count(), 2);
    assert!(place.failure(&[&second.to_string()]).contains("there is no process"));
}

#[test]
fn says_of_a_process_that_cannot_be_recorded_why() {
    let mut place = Place::new();
    let sleeper = place.spawn(Command::new("sleep").arg("100"));
    assert!(
        place
            .failure(&[&sleeper.to_string()])
            .contains("is sleep, not Node.js\n  fix: `hasten gc record --list`")
    );
    assert!(place.failure(&["4194304000"]).contains("there is no process 4194304000\n  fix: "));

    let server = place.path("server.js");
    let plain = place.spawn(Command::new(node(20)).arg(&server));
    until(|| fs::read_link(format!("/proc/{plain}/exe")).is_ok_and(|exe| exe.ends_with("node")));
    let said = place.failure(&[&plain.to_string()]);
    assert!(
        said.contains("without hasten's plugin") && said.contains("fix: start it with `hasten run -- node"),
        "{said}"
    );

    let register = place.path("register.js");
    let off =
        place.spawn(Command::new(node(20)).arg("-r").arg(register).arg(&server).env("HASTEN_NODE_GC", "0"));
    assert!(place.failure(&[&off.to_string()]).contains("HASTEN_NODE_GC=0 switches it off"));

    // Nothing opens a channel here, as in the first second of a process.
    let late = place.path("register-late.js");
    fs::write(&late, "").unwrap();
    let young = place.spawn(Command::new(node(20)).arg("-r").arg(late).arg(&server));
    assert!(place.failure(&[&young.to_string()]).contains("only just been started"));
}

#[test]
fn a_process_that_still_loads_is_not_blamed_for_its_folder() {
    let mut place = Place::new();
    let late = place.path("register-late.js");
    fs::write(&late, "").unwrap();
    let server = place.path("server.js");
    let busy = place.spawn(Command::new(node(20)).arg("-r").arg(late).arg(&server));
    // Older than a process that has only just been started.
    until(|| !place.failure(&[&busy.to_string()]).contains("only just been started"));
    let said = place.failure(&[&busy.to_string()]);
    assert!(said.contains("still loading") && said.contains("fix: try again in a moment"), "{said}");
    let said = place.failure(&["--list"]);
    assert!(said.contains(&format!("hasten's plugin is in process {busy}")), "{said}");
    // Now the folder is at fault.
    fs::set_permissions(place.path("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = place.failure(&[&busy.to_string()]);
    assert!(said.contains("open to others") && said.contains("mode 700"), "{said}");
}

#[test]
fn does_not_believe_a_socket_that_another_process_opened() {
    let mut place = Place::new();
    let pid = place.spawn(Command::new("sleep").arg("100"));
    fs::DirBuilder::new().mode(0o700).create(place.run_folder("node")).unwrap();
    let _listener = UnixListener::bind(place.socket(pid)).unwrap();
    let said = place.failure(&[&pid.to_string()]);
    assert!(said.contains(&format!("was opened by process {}", std::process::id())), "{said}");
}

#[test]
fn does_not_look_into_a_folder_that_others_can_use() {
    let mut place = Place::new();
    let pid = place.server(20);
    fs::set_permissions(place.path("run"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(place.failure(&[&pid.to_string()]).contains(&format!("process {pid} has")));
    assert_eq!(place.list(), "");
}

#[test]
fn a_file_that_cannot_be_written_is_noticed_before_the_recording() {
    let mut place = Place::new();
    let pid = place.server(20);
    for out in ["nowhere/gc.jsonl", "run", "."] {
        let said = place.failure(&[&pid.to_string(), "--for", "1h", "--out", out]);
        assert!(said.contains("cannot write") && said.contains("fix: name a file"), "{said}");
    }
    assert_eq!(place.recordings(), 0);
}

#[test]
fn the_command_line_says_what_is_wrong_with_it() {
    let place = Place::new();
    for arguments in [
        &["1", "--for", "1d"][..],
        &["0"],
        &[],
        &["--list", "1"],
        &["1", "--for", "0s"],
        &["--list", "--cpu"],
        &["1", "--cpu-interval", "1ms"],
        &["1", "--cpu", "--cpu-interval", "50us"],
        &["1", "--cpu", "--cpu-interval", "1"],
    ] {
        let output = place.record(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
