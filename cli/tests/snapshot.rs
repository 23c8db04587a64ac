//! `hasten snapshot` of a service under load: it loses no request, and nothing of the copies is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hasten_corefile::Live;
use serde_json::Value;

#[path = "support/nodes.rs"]
mod nodes;

use nodes::{here, node};

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");
const RELEASES: [&str; 4] = ["20", "22", "24", "26"];
const PATIENCE: Duration = Duration::from_secs(60);

const SERVICE: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i; } }
globalThis.all = [];
for (let i = 0; i < 5000; i++) all.push(new Planted(i));
const server = require('http').createServer((request, response) => {
  const garbage = [];
  for (let i = 0; i < 500; i++) garbage.push({ i });
  response.end('answer ' + garbage.length);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

/// It collects most of the time, the young ones and all in turns, and what is young lives.
const COLLECTOR: &str = "
class Planted { constructor(i) { this.id = i; this.text = 'planted-' + i; } }
globalThis.all = [];
for (let i = 0; i < 20000; i++) all.push(new Planted(i));
let next = 0, minor = false;
function turn() {
  const end = performance.now() + 2;
  while (performance.now() < end) { all[next] = new Planted(next); next = (next + 1) % all.length; }
  gc((minor = !minor) ? { type: 'minor' } : undefined);
  setImmediate(turn);
}
console.log('ready');
turn();
";

/// A process of Node.js that ends with its holder.
struct App {
    child: Child,
    /// The first line that it printed.
    told: String,
}

impl App {
    fn start(release: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(node(release));
        let mut child = command.args(arguments).current_dir(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
        Self { child, told }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Service {
    app: App,
    port: u16,
}

impl Service {
    fn start(release: &str, folder: &Path) -> Self {
        let app = App::start(release, &["-e", SERVICE], folder);
        Self { port: app.told.trim().parse().unwrap(), app }
    }

    fn pid(&self) -> u32 {
        self.app.pid()
    }

    fn answers(&self) -> bool {
        answer(self.port).is_some_and(|text| text.contains("answer 500"))
    }

    /// Processes whose parent it is, zombies included.
    fn children(&self) -> Vec<String> {
        let of = |entry: fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let after = stat.rsplit_once(')')?.1;
            let parent = after.split_ascii_whitespace().nth(1)?;
            (parent == self.pid().to_string()).then_some(stat)
        };
        fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.unwrap())).collect()
    }

    /// Mappings that forks get, without those that V8 and malloc change at any time.
    fn code_mappings(&self) -> usize {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        maps.lines().filter(|line| line.contains(" r-xp ") && line.contains('/')).count()
    }
}

fn answer(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

fn snapshot(pid: u32, out: &Path) -> Command {
    let mut command = Command::new(HASTEN);
    command.args(["snapshot", "--json", "--out"]).arg(out).arg(pid.to_string());
    command
}

/// Takes snapshots while requests come without a break; returns the reports.
fn under_load(service: &Service, folder: &Path, count: usize) -> Vec<Value> {
    let (done, asked, lost) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut reports = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                asked.fetch_add(1, Ordering::Relaxed);
                lost.fetch_add(u64::from(!service.answers()), Ordering::Relaxed);
            }
        });
        for _ in 0..count {
            let out = folder.join("core.zst");
            let output = snapshot(service.pid(), &out).output().unwrap();
            if !output.status.success() {
                done.store(true, Ordering::Relaxed);
                panic!("{}", String::from_utf8_lossy(&output.stderr));
            }
            reports.push(serde_json::from_slice(&output.stdout).unwrap());
            fs::rename(&out, folder.join("last.zst")).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(asked.load(Ordering::Relaxed) > 0);
    assert_eq!(lost.load(Ordering::Relaxed), 0, "of {}", asked.load(Ordering::Relaxed));
    reports
}

fn nothing_is_left(service: &Service, mappings: usize) {
    let since = Instant::now();
    while !service.children().is_empty() && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(service.children(), Vec::<String>::new());
    assert_eq!(service.code_mappings(), mappings);
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    assert!(status.contains("TracerPid:\t0\n") && status.contains("SigBlk:\t0000000000000000\n"), "{status}");
    assert!(service.answers());
}

#[test]
fn a_service_under_load_loses_no_request_and_its_copy_is_whole() {
    for release in here(&RELEASES) {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::start(release, folder.path());
        let mappings = service.code_mappings();
        let reports = under_load(&service, folder.path(), 2);
        nothing_is_left(&service, mappings);
        assert!(reports.iter().all(|report| report["pause_wall_ms"].as_f64().unwrap() > 0.0));
        let last = folder.path().join("last.zst");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&last).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let report = report(&last);
        assert!(report["refused"].is_null(), "{release}: {}", report["refused"]);
        assert_eq!(planted(&report), 5000, "{release}");
    }
}

fn report(core: &Path) -> Value {
    let output = Command::new(HASTEN).args(["core", "--json"]).arg(core).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn planted(report: &Value) -> u64 {
    let entries = report["histogram"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == "Planted").unwrap()["count"].as_u64().unwrap()
}

#[test]
fn a_process_that_collects_most_of_the_time_is_copied_between_two_collections() {
    let is_thorough = std::env::var_os("HASTEN_TEST_THOROUGH").is_some();
    for release in here(if is_thorough { &RELEASES } else { &["20", "26"] }) {
        let folder = tempfile::tempdir().unwrap();
        let app = App::start(release, &["--expose-gc", "-e", COLLECTOR], folder.path());
        let core = folder.path().join("core.zst");
        let output = snapshot(app.pid(), &core).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let written: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(written["amid"].is_null(), "{release}: {written}");
        let report = report(&core);
        assert!(report["refused"].is_null(), "{release}: {written} {}", report["refused"]);
        assert_eq!(report["notes"], serde_json::json!([]), "{release}");
        // One may be made, and not in its place yet; another may be left where optimised code kept it.
        assert!((20_000..=20_002).contains(&planted(&report)), "{release}: {}", planted(&report));
        amid(release, &app, folder.path());
    }
}

/// The other way round: a copy in the middle of a collection says so.
fn amid(release: &str, app: &App, folder: &Path) {
    let pid = app.pid().cast_signed();
    let collectors = Live::open(pid, None).unwrap().collectors().unwrap();
    let core = folder.join("amid.zst");
    let at_rest = || collectors.running().is_none().then_some("rest");
    let written = hasten_livecopy::snapshot(pid, &core, at_rest).unwrap();
    assert_eq!(written.amid, None, "{release}");
    let notes = report(&core)["notes"].to_string();
    assert!(notes.contains("in the middle of a") && notes.contains("collection"), "{release}: {notes}");
}

#[test]
fn a_tool_that_is_killed_at_any_moment_leaves_the_service_whole() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start("22", folder.path());
    let mappings = service.code_mappings();
    for round in 0..12_u32 {
        let out = folder.path().join(format!("core.{round}"));
        let mut child = snapshot(service.pid(), &out).stdout(Stdio::null()).spawn().unwrap();
        // The file comes just before the process is stopped.
        while !out.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_millis(1) * round);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(service.answers(), "round {round}");
    }
    nothing_is_left(&service, mappings);
}

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |pid: u32, out: &Path| {
        let output = snapshot(pid, out).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let out = folder.path().join("core.zst");
    // Numbers of processes end at 2^22.
    let text = refused(1 << 23, &out);
    assert!(text.contains("there is no process") && !out.exists(), "{text}");
    let mut gone = Command::new("true").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let text = refused(gone.id(), &out);
    assert!(text.contains("ended") && !out.exists(), "{text}");
    gone.wait().unwrap();
    fs::write(&out, "mine").unwrap();
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let text = refused(sleep.id(), &out);
    assert!(text.contains("cannot write") && fs::read_to_string(&out).unwrap() == "mine", "{text}");
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

/// Fewer in `make test` than in `make thorough`.
fn many() -> usize {
    if std::env::var_os("HASTEN_TEST_THOROUGH").is_some() { 1000 } else { 4 }
}

#[test]
fn a_thousand_snapshots_lose_no_request_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start("24", folder.path());
    let code = service.code_mappings();
    let mappings = || fs::read_to_string(format!("/proc/{}/maps", service.pid())).unwrap().lines().count();
    let open = || fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count();
    // Code is compiled, and pages come and go, as long as it is young.
    (0..100).for_each(|_| assert!(service.answers()));
    let before = (mappings(), open());
    let count = many();
    let reports = under_load(&service, folder.path(), count);
    nothing_is_left(&service, code);
    let since = Instant::now();
    // A connection may be about to be closed.
    while open() > before.1 && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = (mappings(), open());
    let mut pauses: Vec<f64> =
        reports.iter().map(|report| report["pause_wall_ms"].as_f64().unwrap()).collect();
    pauses.sort_by(f64::total_cmp);
    println!(
        "{count} snapshots; pause: median {:.1} ms, longest {:.1} ms; mappings and descriptors {before:?}, {after:?}",
        pauses[count / 2],
        pauses[count - 1]
    );
    assert!(after.1 <= before.1, "{} descriptors became {}", before.1, after.1);
    // V8's young generation has some hundred pages, or few. One mapping for each snapshot would be far more.
    assert!(after.0 < before.0 + 500 + count / 10, "{} mappings became {}", before.0, after.0);
}
