//! Logs on another device: a program that sees no difference, and servers whose logs stock programs recover.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use hasten_telemetry::Event;
use hasten_tests::program::{Program, without_library};
use hasten_tests::{kills, product, tools, wait};

/// A directory on a disk, and one on another device: memory, which has to be allowed.
struct Devices {
    home: tempfile::TempDir,
    fast: tempfile::TempDir,
}

impl Devices {
    fn new() -> Self {
        let home = tempfile::tempdir_in(product::target_directory()).expect("a directory");
        let fast = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        Self { home, fast }
    }

    fn made(&self) -> Vec<PathBuf> {
        let logs = fs::read_dir(self.fast.path().join("hasten-logs")).expect("logs were made");
        logs.map(|entry| entry.expect("an entry").path()).collect()
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir(&path).expect("a directory");
        path
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_log_away_from_home_is_a_file_like_any_other() {
    let devices = Devices::new();
    let program = Program::writing_logs("wal_files");
    let stock = program.stock(&[text(&devices.directory("stock"))]).succeeded();
    let away = devices.directory("away");
    let variables = [("HASTEN_WAL", text(devices.fast.path())), ("HASTEN_WAL_EPHEMERAL", "1")];
    let run = program.preloaded(&[text(&away)], &variables).succeeded();
    assert_eq!(run.output, stock.output, "away (left) and at home differ");
    assert_eq!(run.counters[Event::WalMade], 7, "{:?}", run.counters);
    assert_eq!(devices.made(), Vec::<PathBuf>::new(), "what was removed is gone");
}

#[test]
fn memory_takes_no_log_unless_it_is_allowed() {
    let devices = Devices::new();
    let program = Program::writing_logs("wal_files");
    let variables = [("HASTEN_WAL", text(devices.fast.path()))];
    let run = program.preloaded(&[text(&devices.directory("db"))], &variables).succeeded();
    assert_eq!((run.counters[Event::WalMade], run.counters[Event::WalAtHome]), (0, 7));
}

/// A stock or preloaded Redis that ends with its owner.
struct Redis {
    process: Child,
    socket: PathBuf,
}

impl Redis {
    fn start(directory: &Path, fast: Option<&Path>) -> Self {
        let socket = directory.join("socket");
        let _ = fs::remove_file(&socket);
        let mut command = Command::new(tools::tool("redis-server", "redis-server"));
        without_library(&mut command);
        if let Some(fast) = fast {
            command.env("LD_PRELOAD", product::wal_library());
            command.env("HASTEN_WAL", fast).env("HASTEN_WAL_EPHEMERAL", "1");
        }
        command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        command.arg("--dir").arg(directory).arg("--unixsocket").arg(&socket);
        let process = command.stdout(Stdio::null()).spawn().expect("redis starts");
        Self { process, socket }
    }

    fn connect(&self) -> BufReader<UnixStream> {
        let ready = || {
            let mut connection = BufReader::new(UnixStream::connect(&self.socket).ok()?);
            (ask(&mut connection, "PING").as_deref() == Some("+PONG")).then_some(connection)
        };
        wait::for_some("redis", ready)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An answer of one line; `None` once the server is gone.
fn ask(connection: &mut BufReader<UnixStream>, command: &str) -> Option<String> {
    connection.get_mut().write_all(format!("{command}\r\n").as_bytes()).ok()?;
    let mut line = String::new();
    connection.read_line(&mut line).ok()?;
    line.ends_with('\n').then(|| line.trim().to_owned())
}

#[test]
fn stock_redis_recovers_every_acknowledged_write_of_one_that_was_killed() {
    let devices = Devices::new();
    let directory = devices.directory("redis");
    let mut acknowledged = 0;
    for _ in 0..kills::times(3) {
        let mut redis = Redis::start(&directory, Some(devices.fast.path()));
        let mut connection = redis.connect();
        let enough = acknowledged + 500;
        let writer = thread::spawn(move || {
            let mut count = acknowledged;
            while ask(&mut connection, &format!("SET k{count} v{count}")).as_deref() == Some("+OK") {
                count += 1;
                PROGRESS.store(count, Relaxed);
            }
            count
        });
        wait::until("writes", || PROGRESS.load(Relaxed) >= enough);
        redis.process.kill().expect("killed");
        acknowledged = writer.join().expect("a count");
    }
    assert!(!devices.made().is_empty(), "the log was away");
    let redis = Redis::start(&directory, None);
    let mut connection = redis.connect();
    let last = acknowledged - 1;
    for number in [0, last / 2, last] {
        ask(&mut connection, &format!("GET k{number}"));
        assert_eq!(line(&mut connection), format!("v{number}"));
    }
    let size = ask(&mut connection, "DBSIZE").expect("an answer");
    let size: usize = size.trim_start_matches(':').parse().expect("a number");
    // The last write before each kill may be there without an answer; the next server repeats it.
    assert!((acknowledged..=acknowledged + 1).contains(&size), "{size} of {acknowledged}");
}

/// The next line of an answer.
fn line(connection: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    connection.read_line(&mut line).expect("an answer");
    line.trim().to_owned()
}

/// Writes that the server has acknowledged.
static PROGRESS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn stock_rocksdb_recovers_a_log_that_is_away_and_one_that_came_home() {
    let devices = Devices::new();
    let database = devices.home.path().join("db");
    let mut command = Command::new(tools::tool("db_bench", "rocksdb-tools"));
    without_library(&mut command);
    command.env("LD_PRELOAD", product::wal_library());
    command.env("HASTEN_WAL", devices.fast.path()).env("HASTEN_WAL_EPHEMERAL", "1");
    command.args(["--benchmarks=fillseq", "--num=100000000", "--sync=1", "--threads=2"]);
    command.arg(format!("--db={}", database.display())).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().expect("db_bench starts");
    let is_large = |path: &PathBuf| fs::metadata(path).is_ok_and(|facts| facts.len() > 100_000);
    let logs = devices.fast.path().join("hasten-logs");
    wait::until("a log", || {
        let entries = fs::read_dir(&logs).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| is_large(&path))
    });
    process.kill().expect("killed");
    process.wait().expect("ended");
    let copy = devices.home.path().join("copy");
    tools::run(Command::new("cp").arg("-a").arg(&database).arg(&copy));
    for log in hasten_logs::home::away(&copy).expect("readable") {
        // The copy gets a log of its own to bring home: the first is still needed.
        let place = log.place.with_extension("99");
        fs::copy(&log.place, &place).expect("copied");
        fs::remove_file(&log.link).expect("removed");
        std::os::unix::fs::symlink(&place, &log.link).expect("linked");
        hasten_logs::home::bring(&hasten_logs::home::Away { place, ..log }).expect("it comes home");
    }
    let away = content(&database);
    assert!(away.lines().count() > 100, "{away}");
    assert!(away == content(&copy), "at home it says the same");
}

/// Everything that the stock program finds in a database.
fn content(database: &Path) -> String {
    let mut command = Command::new(tools::tool("ldb", "rocksdb-tools"));
    without_library(&mut command);
    command.arg(format!("--db={}", database.display())).args(["scan", "--hex"]);
    String::from_utf8_lossy(&tools::run(&mut command).stdout).into_owned()
}

/// As a user would ask whether they work on a machine.
#[test]
fn selftest_tells_whether_the_libraries_for_memory_and_storage_work() {
    let place = tempfile::tempdir_in(product::target_directory()).expect("a directory");
    let mut command = Command::new(product::hasten());
    without_library(&mut command);
    command.args(["selftest", "--json", "--storage"]).arg(place.path()).env("TMPDIR", "/dev/shm");
    let output = command.output().expect("hasten runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["engines"].as_array().expect("a list");
    for (name, is_everywhere) in [("tier", true), ("readcache", true), ("wal", false)] {
        let row = rows.iter().find(|row| row["engine"] == name).expect("a row");
        // A disk may be one that keeps nothing.
        let is_right = row["result"] == "passed" || !is_everywhere && row["result"] == "not-here";
        assert!(is_right, "{row:#}");
    }
    assert!(output.status.success());
    assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 0, "nothing is left there");
}
