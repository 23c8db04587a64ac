//! `hasten engine` against real pages: those of this test process, and forged ones.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use hasten_telemetry::{
    BreakerState, Engine, EngineClass, EngineWork, Fault, boottime, init, is_disabled, page, slot, start,
};
use serde_json::Value;

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// Whether the server played by this process is busy.
static BUSY: AtomicBool = AtomicBool::new(true);

/// A server with two engines, one of which works; one test at a time.
fn server() -> (String, MutexGuard<'static, ()>) {
    static START: Once = Once::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    START.call_once(|| {
        init("gzip");
        start();
        page().register(Engine::Isal, EngineClass::Software, "", 0);
        page().register(Engine::Qpl, EngineClass::Device, "iax1", 50_000_000);
        let probe = boottime() + Duration::from_secs(60);
        std::thread::spawn(move || {
            let slot = slot();
            slot.engine_ran(
                Engine::Qpl,
                &EngineWork { ok: 5, failed: 2, opened: 1, ..EngineWork::default() },
            );
            let probe = u64::try_from(probe.as_nanos()).unwrap();
            slot.engine_state(Engine::Qpl, BreakerState::Open, Some(Fault::TimedOut), probe);
            loop {
                if BUSY.load(Relaxed) {
                    work();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    wait_for(|| !is_disabled(Engine::Isal) && state("isal") == "closed");
    (std::process::id().to_string(), turn)
}

/// One operation of ISA-L, or of the engine that remains when it is disabled.
fn work() {
    let disabled = is_disabled(Engine::Isal);
    slot().engine_state(
        Engine::Isal,
        if disabled { BreakerState::Disabled } else { BreakerState::Closed },
        None,
        0,
    );
    if !disabled {
        slot().engine_ran(Engine::Isal, &EngineWork { ok: 1, bytes_in: 100, ..EngineWork::default() });
    }
}

fn engine(arguments: &[&str]) -> Output {
    Command::new(HASTEN).arg("engine").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// This process's row of an engine.
fn row(name: &str) -> Value {
    let output = engine(&["list", "--json", &std::process::id().to_string()]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let engines = document["programs"][0]["engines"].as_array().expect("an array").clone();
    engines.into_iter().find(|row| row["name"] == name).expect("the engine")
}

fn state(name: &str) -> String {
    row(name)["state"].as_str().unwrap_or("unused").to_owned()
}

fn wait_for(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn list_shows_engines_states_and_counts() {
    let (pid, _turn) = server();
    let output = engine(&["list", &pid]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let line = |name: &str| {
        text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(line(" isal ").contains("in service"), "{text}");
    assert!(line("qpl on iax1").contains("resting"), "{text}");
    assert_eq!((state("isal").as_str(), state("qpl").as_str()), ("closed", "open"), "scripts rely on these");
    assert!(line("timed-out; tried again in").starts_with("qpl of "), "{text}");

    let qpl = row("qpl");
    assert_eq!(
        (&qpl["class"], &qpl["device"], &qpl["fault"]),
        (&"device".into(), &"iax1".into(), &"timed-out".into())
    );
    assert_eq!((&qpl["operations"], &qpl["failures"], &qpl["opened"]), (&7.into(), &2.into(), &1.into()));
    assert!((1.0..=60.0).contains(&qpl["retry_in_s"].as_f64().unwrap()), "{qpl}");
    let isal = row("isal");
    assert_eq!((&isal["disabled_by_hand"], &isal["device"]), (&false.into(), &Value::Null));
    assert!(isal["since_s"].as_f64().is_some() && isal["operations"].as_u64() > Some(0), "{isal}");
}

#[test]
fn disable_and_enable_wait_until_it_was_seen() {
    let (pid, _turn) = server();
    let disabled = engine(&["disable", "isal", &pid, "--wait", "30"]);
    assert!(disabled.status.success(), "{}", stderr(&disabled));
    assert!(stdout(&disabled).contains("isal disabled; 1 process has seen it"), "{}", stdout(&disabled));
    assert!(stdout(&disabled).contains("hasten engine enable isal"), "{}", stdout(&disabled));
    let before = row("isal");
    assert_eq!((&before["state"], &before["disabled_by_hand"]), (&"disabled".into(), &true.into()));
    assert!(is_disabled(Engine::Isal) && !is_disabled(Engine::Qpl));
    assert_eq!(row("isal")["operations"], before["operations"], "nothing is asked of it any more");

    let enabled = engine(&["enable", "all", &pid, "--wait", "30"]);
    assert!(stdout(&enabled).contains("isal, qpl enabled; 1 process has seen it"), "{}", stdout(&enabled));
    assert!(enabled.status.success() && state("isal") == "closed" && state("qpl") == "open");
    wait_for(|| row("isal")["operations"].as_u64() > before["operations"].as_u64());
}

#[test]
fn idle_processes_are_named() {
    let (pid, _turn) = server();
    BUSY.store(false, Relaxed);
    // Its last operation has ended when nothing is counted any more.
    wait_for(|| {
        let before = row("isal")["operations"].clone();
        std::thread::sleep(Duration::from_millis(20));
        row("isal")["operations"] == before
    });
    let output = engine(&["disable", "isal", &pid, "--wait", "0.1"]);
    let text = stdout(&output);
    assert!(output.status.success(), "it was set, and idle processes cannot say so");
    assert!(
        text.contains(&format!("1 process is idle and will see it with the next operation ({pid})")),
        "{text}"
    );
    let list = stdout(&engine(&["list", &pid]));
    assert!(list.contains("disabled (from the next use)"), "{list}");
    let top = Command::new(HASTEN).args(["top", "--once", "--interval", "0.1", &pid]).output().unwrap();
    assert!(stdout(&top).contains("disabled (from the next use)"), "{}", stdout(&top));
    BUSY.store(true, Relaxed);
    wait_for(|| state("isal") == "disabled");
    assert!(engine(&["enable", "isal", &pid]).status.success());
}

#[test]
fn names_and_programs_that_do_not_fit_are_explained() {
    let (pid, _turn) = server();
    let unknown = engine(&["disable", "islal"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("no engine is named `islal`; did you mean `isal`?"),
        "{}",
        stderr(&unknown)
    );

    // No engine has such a name: the command line is wrong. That no program has the engine is a failure.
    assert_eq!(engine(&["disable", "nonesuch"]).status.code(), Some(2));
    assert_eq!(engine(&["enable", "nonesuch", &pid]).status.code(), Some(2));
    let absent = engine(&["disable", "qat", &pid]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(stderr(&absent).contains("does not have the engine `qat`"), "{}", stderr(&absent));
    assert!(stderr(&absent).contains("it has isal, qpl"), "{}", stderr(&absent));

    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let other = sleeper.id().to_string();
    // Until exec has happened the child is still a copy of this process.
    wait_for(|| std::fs::read_link(format!("/proc/{other}/exe")).is_ok_and(|exe| exe.ends_with("sleep")));
    let plain = engine(&["disable", "isal", &other]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(plain.status.code(), Some(1));
    assert!(stderr(&plain).contains("is not accelerated"), "{}", stderr(&plain));
    assert!(stderr(&engine(&["list", &other])).contains("there is no process"), "it has ended");
}

/// As a user who may not inspect this process.
#[test]
fn without_the_right_nothing_is_switched_and_sudo_is_named() {
    let (pid, _turn) = server();
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("hasten");
    std::fs::copy(HASTEN, &copy).unwrap();
    for arguments in [&["disable", "isal", &pid][..], &["disable", "isal"], &["list"], &["list", "--json"]] {
        let mut command = Command::new(&copy);
        command.arg("engine").args(arguments).uid(64999).gid(64999).current_dir("/");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains("sudo"), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!is_disabled(Engine::Isal));
}

#[test]
fn the_user_of_a_server_needs_no_other_rights() {
    const USER: u32 = 64999;
    let _turn = server();
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    // One slot; nine engines, of which the second is there: software.
    let isal = 672 + 192;
    let numbers = [(8, 1), (12, 4096), (16, 4096), (20, 1), (60, 9), (isal + 64, 1), (isal + 68, 1)];
    let forged = Forged::of_user(USER, &numbers);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("hasten");
    std::fs::copy(HASTEN, &copy).unwrap();
    let engine_as = |user: u32, verb: &str| {
        let mut command = Command::new(&copy);
        command.args(["engine", verb, "isal", &forged.pid()]).uid(user).gid(user).current_dir("/");
        command.output().unwrap()
    };
    let is_disabled = || {
        let output = engine(&["list", "--json", &forged.pid()]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["programs"][0]["engines"][0]["disabled_by_hand"].as_bool().expect("a control page")
    };
    let own = engine_as(USER, "disable");
    assert!(own.status.success(), "{}", stderr(&own));
    assert!(stdout(&own).contains("1 process has not used it so far"), "{}", stdout(&own));
    assert!(is_disabled());
    let other = engine_as(USER - 1, "enable");
    assert!(
        stderr(&other).contains("may not be inspected") && stderr(&other).contains("sudo"),
        "{}",
        stderr(&other)
    );
    assert!(is_disabled());
    assert!(engine_as(USER, "enable").status.success() && !is_disabled());
}

/// A user who may read maps, but open neither mapped files nor descriptors, sees that there is something.
#[test]
fn a_page_that_may_not_be_opened_counts_as_denied() {
    let isolated = |command: &mut Command| {
        command.args(["--pid", "--fork", "--mount-proc"]);
    };
    let mut probe = Command::new("unshare");
    isolated(&mut probe);
    if !is_root() || !probe.arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: needs a namespace of processes");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("hasten");
    std::fs::copy(HASTEN, &copy).unwrap();
    let script = r#"
import mmap, os, subprocess, sys
fd = os.memfd_create("hasten-telemetry")
os.ftruncate(fd, 8192)
page = mmap.mmap(fd, 8192)
caps = ["--%s=-all,+sys_ptrace" % kind for kind in ("inh-caps", "ambient-caps", "bounding-set")]
user = ["--reuid=64999", "--regid=64999", "--clear-groups"]
subprocess.run(["setpriv"] + user + caps + [sys.argv[1], "engine", "list", "--json"])
"#;
    let mut command = Command::new("unshare");
    isolated(&mut command);
    let output = command.args(["python3", "-c", script]).arg(&copy).current_dir("/").output().unwrap();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(
        (&document["denied_processes"], &document["programs"]),
        (&1.into(), &Value::Array(Vec::new()))
    );
}

/// A process with these bytes mapped as its counter page.
struct Forged(Child);

impl Forged {
    /// Each number is a little-endian u32 at an offset.
    fn with(numbers: &[(usize, u32)]) -> Self {
        Self::start(Command::new("python3"), numbers)
    }

    /// The same, owned by this user, and with a control page.
    fn of_user(user: u32, numbers: &[(usize, u32)]) -> Self {
        let mut python = Command::new("python3");
        python.uid(user).gid(user).current_dir("/").env("CONTROL", "1");
        Self::start(python, numbers)
    }

    fn start(mut command: Command, numbers: &[(usize, u32)]) -> Self {
        let script = r#"
import mmap, os, struct, sys
fd = os.memfd_create("hasten-telemetry")
os.ftruncate(fd, 8192)
os.pwrite(fd, b"hastenTP", 0)
for number in sys.argv[1:]:
    offset, value = map(int, number.split("="))
    os.pwrite(fd, struct.pack("<I", value), offset)
page = mmap.mmap(fd, 8192)
if "CONTROL" in os.environ:
    control = os.memfd_create("hasten-control")
    os.ftruncate(control, 4096)
    os.pwrite(control, b"hastenCT" + struct.pack("<II", 1, 9), 0)
    os.pwrite(fd, struct.pack("<Q", os.fstat(control).st_ino), 3744)
    mapped = mmap.mmap(control, 4096)
print("ready", flush=True)
sys.stdin.read()
"#;
        command.args(["-c", script]).args(numbers.iter().map(|(offset, value)| format!("{offset}={value}")));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("apt-get install python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Forged {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn pages_of_other_versions_are_named() {
    let _turn = server();
    // Version 1 with one slot, as a hasten without engines left it.
    let older = Forged::with(&[(8, 1), (12, 4096), (16, 4096), (20, 1)]);
    let output = engine(&["disable", "all", &older.pid()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("was started by an older hasten"), "{}", stderr(&output));
    assert!(stderr(&output).contains("hasten run -- "), "{}", stderr(&output));
    let list = stdout(&engine(&["list", &older.pid()]));
    assert!(list.contains("started by an older hasten"), "{list}");

    let newer = Forged::with(&[(8, 2)]);
    let output = engine(&["disable", "isal", &newer.pid()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("version 2"), "{}", stderr(&output));
    assert!(stdout(&engine(&["list", &newer.pid()])).contains("version 2"));
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}
