//! Services with all kinds of habits: started, waited for, and gone.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hasten_tune::journal::{Journal, System, replay_within};
use hasten_tune::service::{Launch, Limits, Readiness, Service, ServiceError, Stopped};
use tempfile::TempDir;

/// As in a session, there is one service at a time.
static ONE: Mutex<()> = Mutex::new(());

const LIMITS: Limits = Limits { start: Duration::from_secs(60), stop: Duration::from_secs(60) };

/// Listens on the port of its first argument; further arguments are habits.
const SERVER: &str = r#"
import os, signal, socket, sys, time
port, habits = int(sys.argv[1]), sys.argv[2:]
def listen():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(64)
    return s
if "background" in habits:
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
if "deaf" in habits:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "workers" in habits:
    s = listen()
    for _ in range(2):
        if os.fork() == 0: break
    if "hungry" in habits:
        block = bytearray(64 << 20)
if "fail" in habits:
    print("no such luck"); sys.exit(3)
if "silent" in habits:
    time.sleep(600)
if "workers" not in habits: s = listen()
print("listening", flush=True)
while True:
    c, _ = s.accept()
    if "burn" in habits:
        if os.fork() == 0:
            end = time.process_time() + 0.3
            while time.process_time() < end: pass
            os._exit(0)
        os.wait()
    c.close()
"#;

struct Fixture {
    folder: TempDir,
    address: SocketAddr,
    _one: MutexGuard<'static, ()>,
}

impl Fixture {
    fn new() -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.py"), SERVER).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { folder, address, _one: one }
    }

    fn server(&self, habits: &str) -> String {
        let script = self.folder.path().join("server.py");
        format!("python3 {} {} {habits}", script.display(), self.address.port())
    }

    fn launch(&self, shell: &str) -> Launch {
        let command = ["sh", "-c", shell].map(OsString::from).to_vec();
        Launch::new(command, PathBuf::from("hasten"))
    }

    fn start(&self, shell: &str, limits: Limits) -> Result<Service, ServiceError> {
        let log = self.folder.path().join("log");
        let readiness = Readiness::port(self.address);
        Service::start(&self.launch(shell), &readiness, &log, limits, &|| false)
    }

    fn accepts(&self) -> bool {
        TcpStream::connect(self.address).is_ok()
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_server_is_started_measured_and_stopped() {
    let fixture = Fixture::new();
    let mut service = fixture.start(&format!("exec {}", fixture.server("")), LIMITS).unwrap();
    assert_eq!(service.address(), Some(fixture.address));
    assert_eq!((service.pids().len(), service.exited()), (1, None));
    assert!(service.memory() > 1 << 20);
    let log = service.log().to_owned();
    wait_until("it writes its log", || std::fs::read_to_string(&log).unwrap() == "listening\n");
    assert_eq!(service.stop().unwrap(), Stopped::Politely);
    assert!(!fixture.accepts());
}

#[test]
fn a_server_in_the_background_is_found_and_ended() {
    let fixture = Fixture::new();
    let mut service =
        fixture.start(&format!("exec {}", fixture.server("background workers")), LIMITS).unwrap();
    wait_until("the workers are there", || service.pids().len() == 3);
    assert_eq!(service.exited(), None);
    let pids = service.pids();
    assert_eq!(service.stop().unwrap(), Stopped::Politely);
    assert!(!fixture.accepts());
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn what_a_shell_leaves_behind_is_ended_with_it() {
    let fixture = Fixture::new();
    let service = fixture.start(&format!("{} & wait", fixture.server("")), LIMITS).unwrap();
    let pids = service.pids();
    assert_eq!(pids.len(), 2);
    drop(service);
    assert!(!pids.into_iter().any(is_alive));
    assert!(!fixture.accepts());
}

#[test]
fn a_server_that_does_not_listen_to_signals_is_killed() {
    let fixture = Fixture::new();
    let limits = Limits { stop: Duration::from_millis(400), ..LIMITS };
    let service = fixture.start(&format!("exec {}", fixture.server("deaf workers")), limits).unwrap();
    let pids = service.pids();
    assert_eq!(service.stop().unwrap(), Stopped::Killed);
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn a_place_that_is_taken_is_said_before_anything_starts() {
    let fixture = Fixture::new();
    let _other = TcpListener::bind(fixture.address).unwrap();
    let error = fixture.start("touch started", LIMITS).unwrap_err();
    assert!(matches!(error, ServiceError::PortInUse { .. }), "{error}");
    assert!(error.to_string().contains("in use already by"), "{error}");
    assert!(!fixture.folder.path().join("log").exists());
}

#[test]
fn what_keeps_it_from_being_ready_is_said_with_its_log() {
    let fixture = Fixture::new();
    let error = fixture.start(&format!("exec {}", fixture.server("fail")), LIMITS).unwrap_err();
    let expected = "sh ended with exit status: 3 before it was ready\nno such luck";
    assert_eq!(error.to_string(), expected);
    assert!(error.is_of_the_service());
    let limits = Limits { start: Duration::from_millis(300), ..LIMITS };
    let error = fixture.start(&format!("exec {}", fixture.server("silent")), limits).unwrap_err().to_string();
    assert!(error.contains("accepts no connections"), "{error}");
}

#[test]
fn an_end_is_noticed() {
    let fixture = Fixture::new();
    let mut service = fixture.start(&format!("exec {}", fixture.server("")), LIMITS).unwrap();
    let pid = service.pids()[0];
    std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    wait_until("it is gone", || !is_alive(pid));
    assert_eq!(service.exited().as_deref(), Some("signal: 9 (SIGKILL)"));
}

#[test]
fn any_port_will_do_where_none_is_known() {
    let fixture = Fixture::new();
    let launch = fixture.launch(&format!("exec {}", fixture.server("workers")));
    let log = fixture.folder.path().join("log");
    let service = Service::start(&launch, &Readiness::listening(), &log, LIMITS, &|| false).unwrap();
    assert_eq!(service.address(), Some(fixture.address));
}

#[test]
fn who_gives_up_waiting_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let launch = fixture.launch(&format!("exec {}", fixture.server("silent")));
    let log = fixture.folder.path().join("log");
    let readiness = Readiness::port(fixture.address);
    let error = Service::start(&launch, &readiness, &log, LIMITS, &|| true).unwrap_err();
    assert!(matches!(error, ServiceError::Stopped));
}

#[test]
fn what_children_have_used_counts_after_their_end() {
    let fixture = Fixture::new();
    let service = fixture.start(&format!("exec {}", fixture.server("burn")), LIMITS).unwrap();
    let before = service.cpu_times();
    drop(TcpStream::connect(fixture.address).unwrap());
    let used = || service.cpu_times().since(&before);
    let burned = Duration::from_millis(280);
    wait_until("the child's time is there", || used() >= burned);
    // Alive or not, it counts once: CPU time does not grow on a busy machine.
    assert!(used() < 2 * burned, "{:?}", used());
}

#[test]
fn memory_that_processes_share_counts_once() {
    let fixture = Fixture::new();
    let shell = format!("exec {}", fixture.server("workers hungry"));
    let service = fixture.start(&shell, LIMITS).unwrap();
    // Three processes with a block of 64 MiB each, whose pages are zero but touched.
    wait_until("all three have their block", || service.memory() > 192 << 20);
    assert!(service.memory() < 400 << 20, "{}", service.memory());
}

#[test]
fn a_service_of_a_hasten_that_was_killed_is_ended_by_the_next_one() {
    for habits in ["workers", "background workers"] {
        left_behind(habits);
    }
}

fn left_behind(habits: &str) {
    let fixture = Fixture::new();
    let journal = Journal::within(fixture.folder.path()).unwrap();
    let shell = format!("exec {}", fixture.server(habits));
    let launch = Launch { journal: Some(journal.clone()), ..fixture.launch(&shell) };
    let log = fixture.folder.path().join("log");
    let service =
        Service::start(&launch, &Readiness::port(fixture.address), &log, LIMITS, &|| false).unwrap();
    assert!(journal.path().exists());
    // While its owner lives, nobody else touches it.
    assert!(replay_within(fixture.folder.path(), &System::default()).is_empty());
    assert!(fixture.accepts());
    let orphaned = fixture.folder.path().join("1-1.jsonl");
    let text = std::fs::read_to_string(journal.path()).unwrap();
    let own = format!("\"pid\":{},", std::process::id());
    assert!(text.contains(&own));
    std::fs::write(&orphaned, text.replacen(&own, "\"pid\":4194305,", 1)).unwrap();
    let replayed = replay_within(fixture.folder.path(), &System::default());
    assert!(!replayed.is_empty(), "{habits}");
    assert!(!orphaned.exists(), "{habits}");
    // Workers that were killed with their group take a moment.
    wait_until(habits, || !fixture.accepts());
    drop(service);
    assert!(!journal.path().exists());
}
