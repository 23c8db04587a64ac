//! One heap on two kinds of memory: no program sees a difference, and the share is kept.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hasten_telemetry::Tiers;
use hasten_tests::effort::effort;
use hasten_tests::program::{Library, Program, without_library};
use hasten_tests::{product, tools, wait};

const THREE_QUARTERS: &str = "0:0=1:3";

/// What a process reports of its memory, once it does.
fn tiers_of(pid: u32) -> Option<Tiers> {
    let pages = hasten_telemetry::pages_of(pid).ok()?;
    let snapshots = pages.iter().filter_map(|page| page.read().ok());
    snapshots.flat_map(|snapshot| snapshot.tiers(|one| one == pid)).map(|(_, tiers)| tiers).next()
}

fn jemalloc() -> PathBuf {
    tools::file_of("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "libjemalloc2")
}

/// A program that ends its output with `end`, and what it reported of its memory then.
fn watched(mut command: Command) -> (Vec<String>, Option<Tiers>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let output = lines.map(|line| line.expect("a line")).take_while(|line| line != "end").collect();
    let tiers = tiers_of(child.id());
    drop(child.stdin.take());
    let status = child.wait().expect("a program ends");
    assert!(status.success(), "{command:?}: {status}");
    (output, tiers)
}

fn preloaded(
    program: &Program,
    arguments: &[&str],
    preload: &str,
    tier: &str,
) -> (Vec<String>, Option<Tiers>) {
    let mut command = Command::new(program.path());
    without_library(&mut command);
    command.args(arguments).env("LD_PRELOAD", preload).env("HASTEN_TIER", tier);
    watched(command)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

const FINE: [&str; 1] = ["all as it was"];

#[test]
fn every_way_to_allocate_survives_threads_and_forks() {
    let program = Program::with_jemalloc("tier_torture");
    let rounds = effort("1000", "200000");
    assert_eq!(program.stock(&[rounds]).succeeded().output, FINE);
    for tier in [THREE_QUARTERS, "0:0=1:1", "0:0=1:1000", "0:0=1000:1"] {
        let (output, tiers) = preloaded(&program, &[rounds], text(&product::tier_library()), tier);
        assert_eq!(output, FINE, "{tier}");
        let tiers = tiers.unwrap_or_else(|| panic!("{tier}: the library stayed out"));
        assert!(tiers.near > 0, "{tier}: {tiers:?}");
    }
}

/// C++'s operators come from libjemalloc if that is loaded, and else from the C++ library.
#[test]
fn operators_of_cpp_come_from_whichever_library_they_came_from() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/tier_operators.cc");
    let flags = ["-std=c++17", "-O1", "-Wl,--no-as-needed", "-lstdc++"];
    let linked = Program::of(Library::Tier, &source, &flags);
    let free =
        Program::of(Library::Wal, &source, &["-std=c++17", "-O1", "-Wl,--no-as-needed", "-lstdc++", "-lm"]);
    let (ours, theirs) = (product::tier_library(), jemalloc());
    let (ours, theirs) = (text(&ours), text(&theirs));
    assert_eq!(linked.stock(&[]).succeeded().output, FINE);
    for (program, preload, is_active) in [
        (&linked, ours.to_owned(), true),
        (&free, format!("{theirs}:{ours}"), true),
        (&free, format!("{ours}:{theirs}"), true),
        (&free, ours.to_owned(), false),
    ] {
        let (output, tiers) = preloaded(program, &[], &preload, THREE_QUARTERS);
        assert_eq!(output, FINE, "{preload}");
        assert_eq!(tiers.is_some(), is_active, "{preload}: {tiers:?}");
        assert!(!is_active || tiers.is_some_and(|tiers| tiers.far > 0), "{preload}: {tiers:?}");
    }
}

#[test]
fn a_program_that_restricts_its_system_calls_gets_no_new_far_memory() {
    let program = Program::with_jemalloc("tier_sandbox");
    assert_eq!(program.stock(&[]).succeeded().output, FINE);
    let (output, tiers) = preloaded(&program, &[], text(&product::tier_library()), THREE_QUARTERS);
    assert_eq!(output, FINE);
    assert!(tiers.is_some_and(|tiers| tiers.far > 0), "before: {tiers:?}");
}

#[test]
fn a_process_with_a_limit_for_addresses_is_left_alone() {
    let program = Program::with_jemalloc("tier_torture");
    let mut command = Command::new("sh");
    without_library(&mut command);
    let script = "ulimit -v 4000000; LD_PRELOAD=\"$1\" exec \"$2\" 1000";
    command.args(["-c", script, "sh"]).arg(product::tier_library()).arg(program.path());
    command.env("HASTEN_TIER", THREE_QUARTERS);
    let (output, tiers) = watched(command);
    assert_eq!((output, tiers), (vec![FINE[0].to_owned()], None));
}

/// Where the kernel promises no more memory than there is, memory that was freed must not count. The variable stands for
/// `vm.overcommit_memory=2`, which would concern everybody.
#[test]
fn what_was_freed_counts_no_more() {
    let program = Program::with_jemalloc("tier_limits");
    assert_eq!(program.stock(&["promises"]).succeeded().output, FINE);
    for (what, variable) in [("promises", "0"), ("promises-taken-back", "1")] {
        let mut command = Command::new(program.path());
        without_library(&mut command);
        command.arg(what).env("LD_PRELOAD", product::tier_library()).env("HASTEN_TIER", THREE_QUARTERS);
        command.env("HASTEN_TIER_DECOMMIT", variable);
        let (output, tiers) = watched(command);
        assert_eq!(output, FINE, "{what}");
        assert!(tiers.is_some_and(|tiers| tiers.far > 0), "{what}: {tiers:?}");
    }
}

#[test]
fn a_program_may_limit_its_addresses_later() {
    let program = Program::with_jemalloc("tier_limits");
    for how in ["setrlimit", "prlimit", "number"] {
        let (output, tiers) = preloaded(&program, &[how], text(&product::tier_library()), THREE_QUARTERS);
        assert_eq!(output, FINE, "{how}");
        assert!(tiers.is_some_and(|tiers| tiers.far > 0), "{how}: {tiers:?}");
    }
}

/// Redis with or without the library, which ends with its owner.
struct Redis {
    process: Child,
    connection: BufReader<UnixStream>,
    directory: tempfile::TempDir,
}

impl Redis {
    fn start(tier: Option<&str>, directory: tempfile::TempDir) -> Self {
        let socket = directory.path().join("socket");
        let _ = fs::remove_file(&socket);
        let server = tools::tool("redis-server", "redis-server");
        let mut command = match tier {
            Some(tier) => {
                let mut command = Command::new(product::hasten());
                command.args(["run", "--quiet", "--strict", "--tier", tier, "--"]).arg(server);
                command
            }
            None => Command::new(server),
        };
        without_library(&mut command);
        command.args(["--port", "0", "--save", "", "--dir"]).arg(directory.path());
        command.args(["--enable-debug-command", "yes"]);
        command.arg("--unixsocket").arg(&socket).stdout(Stdio::null());
        let process = command.spawn().expect("redis starts");
        let connect = || {
            let mut connection = BufReader::new(UnixStream::connect(&socket).ok()?);
            send(&mut connection, &[b"PING"]);
            (answer(&mut connection) == b"PONG").then_some(connection)
        };
        let connection = wait::for_some("redis", connect);
        Self { process, connection, directory }
    }

    fn ask(&mut self, words: &[&str]) -> String {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        send(&mut self.connection, &words);
        String::from_utf8_lossy(&answer(&mut self.connection)).into_owned()
    }

    /// Sets keys, many at a time.
    fn fill(&mut self, keys: std::ops::Range<usize>, size: impl Fn(usize) -> usize, letter: u8) {
        let keys: Vec<_> = keys.collect();
        for some in keys.chunks(200) {
            for key in some {
                let value = vec![letter; size(*key)];
                send(&mut self.connection, &[b"SET", format!("key:{key}").as_bytes(), &value]);
            }
            some.iter().for_each(|key| assert_eq!(answer(&mut self.connection), b"OK", "key {key}"));
        }
    }

    fn stop(mut self) -> tempfile::TempDir {
        self.process.kill().expect("it can be stopped");
        self.process.wait().expect("it ends");
        std::mem::replace(&mut self.directory, tempfile::tempdir().expect("a directory"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn send(connection: &mut BufReader<UnixStream>, words: &[&[u8]]) {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    connection.get_mut().write_all(&bytes).expect("redis is there");
}

/// An answer that is not a list.
fn answer(connection: &mut BufReader<UnixStream>) -> Vec<u8> {
    let mut line = String::new();
    connection.read_line(&mut line).expect("redis answers");
    let line = line.trim_end();
    match line.strip_prefix('$') {
        Some(length) => {
            let mut bytes = vec![0; length.parse::<usize>().expect("a length") + 2];
            connection.read_exact(&mut bytes).expect("an answer");
            bytes.truncate(bytes.len() - 2);
            bytes
        }
        None => line[1..].into(),
    }
}

fn field(info: &str, name: &str) -> f64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {info}"))
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(product::target_directory()).expect("a directory")
}

#[test]
fn the_share_is_kept_whatever_the_size_of_values_is() {
    /// Of the value of a key.
    type Size = fn(usize) -> usize;
    let sizes: [(&str, usize, Size); 4] = [
        ("64 B", effort(60_000, 150_000), |_| 64),
        ("1 KiB", effort(15_000, 60_000), |_| 1024),
        ("16 KiB", effort(3_000, 9_000), |_| 16 << 10),
        ("mixed", effort(6_000, 18_000), |key| [64, 1 << 10, 16 << 10][key * 7 % 3]),
    ];
    for (name, keys, size) in sizes {
        for (tier, target) in [(THREE_QUARTERS, 0.75), ("0:0=2:1", 1.0 / 3.0)] {
            let mut redis = Redis::start(Some(tier), place());
            // Grown, and then replaced by others of the same sizes.
            redis.fill(0..keys, size, b'a');
            redis.fill(0..keys / 2, size, b'b');
            let tiers = tiers_of(redis.process.id()).expect("a report");
            assert!(
                (tiers.share() - target).abs() < 0.02,
                "{name} at {tier}: {tiers:?} is {:.3}",
                tiers.share()
            );
            // The program's own statistics are about both kinds; Redis looks at them ten times a second.
            let reported = (tiers.near + tiers.far) as f64;
            let agree = || {
                let info = redis.ask(&["INFO", "memory"]);
                let (allocated, used) = (field(&info, "allocator_allocated"), field(&info, "used_memory"));
                let is_near = |one: f64, other: f64| (one - other).abs() < 0.1 * other;
                (is_near(allocated, reported) && is_near(allocated, used)).then_some(())
            };
            wait::for_some("Redis and the library to agree", agree);
        }
    }
}

#[test]
fn a_snapshot_of_redis_has_no_value_from_after_it_began() {
    const KEYS: usize = 3000;
    let size = |key: usize| [64, 1 << 10, 16 << 10][key % 3];
    let mut redis = Redis::start(Some(THREE_QUARTERS), place());
    redis.fill(0..KEYS, size, b'a');
    // In microseconds for each key: long enough for all to be replaced meanwhile.
    assert_eq!(redis.ask(&["CONFIG", "SET", "rdb-key-save-delay", "300"]), "OK");
    assert_eq!(redis.ask(&["BGSAVE"]), "Background saving started");
    redis.fill(0..KEYS, size, b'b');
    let during = redis.ask(&["INFO", "persistence"]);
    assert_eq!(field(&during, "rdb_bgsave_in_progress"), 1.0, "it ended too early to prove anything");
    wait::for_some("a snapshot", || {
        let info = redis.ask(&["INFO", "persistence"]);
        (field(&info, "rdb_bgsave_in_progress") == 0.0).then_some(())
    });
    assert!(redis.ask(&["INFO", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    let mut stock = Redis::start(None, redis.stop());
    let later = (0..KEYS).filter(|key| {
        let value = stock.ask(&["GET", &format!("key:{key}")]);
        assert_eq!(value.len(), size(*key), "key {key}");
        value.bytes().any(|byte| byte != b'a')
    });
    assert_eq!(later.count(), 0, "values are from after the snapshot");
}

#[test]
fn redis_answers_about_its_allocator_as_it_does_without() {
    let about = |tier: Option<&str>| {
        let mut redis = Redis::start(tier, place());
        redis.fill(0..2000, |key| key % 5000 + 1, b'c');
        let said = [
            redis.ask(&["CONFIG", "SET", "activedefrag", "yes"]),
            redis.ask(&["MEMORY", "PURGE"]),
            redis.ask(&["MEMORY", "USAGE", "key:1999"]),
            redis.ask(&["DEBUG", "RELOAD"]),
            redis.ask(&["DEBUG", "DIGEST"]),
            redis.ask(&["FLUSHALL"]),
        ];
        let info = redis.ask(&["INFO", "memory"]);
        assert!(info.contains("mem_allocator:jemalloc-"), "{info}");
        (said, field(&info, "used_memory"))
    };
    let ((said, used), (stock_said, stock_used)) = (about(Some(THREE_QUARTERS)), about(None));
    assert_eq!(said, stock_said);
    assert!((used - stock_used).abs() < 0.05 * stock_used, "{used} and {stock_used}");
}

/// The same output, however its heap is divided.
fn is_right(command: &[&str], package: &str) {
    let program = tools::tool(command[0], package);
    let run = |tier: bool| {
        let mut one = Command::new(&program);
        one.args(&command[1..]);
        without_library(&mut one);
        if tier {
            one.env("LD_PRELOAD", format!("{}:{}", text(&jemalloc()), text(&product::tier_library())));
            one.env("HASTEN_TIER", "0:0=1:1");
        }
        String::from_utf8(tools::run(&mut one).stdout).expect("text")
    };
    let (with, without) = (run(true), run(false));
    assert!(!without.is_empty());
    assert_eq!(with, without, "{command:?}");
}

#[test]
fn programs_with_jemalloc_preloaded_are_right() {
    let python = "import json, subprocess, threading, hashlib\n\
        words = {str(i): 'x' * (i * 37 % 4000) for i in range(8000)}\n\
        text = json.dumps(words)\n\
        def work(n): [bytearray(i) for i in range(n)]\n\
        threads = [threading.Thread(target=work, args=(1500,)) for _ in range(4)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        print(hashlib.sha256(text.encode()).hexdigest(), json.loads(text) == words)\n\
        print(subprocess.run(['sh', '-c', 'echo child; seq 3'], capture_output=True, text=True).stdout)";
    is_right(&["python3", "-c", python], "python3");
    let perl = "my %h; $h{$_} = 'y' x ($_ * 31 % 5000) for 1..8000; my $n = 0; $n += length $h{$_} for sort keys %h; \
        delete $h{$_ * 2} for 1..4000; print scalar(keys %h), ' ', $n, ' ', `echo child`;";
    is_right(&["perl", "-e", perl], "perl");
    let sql = "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n \
        where i < 6000) insert into t select i, hex(zeroblob(i % 700)) from n; create index i on t(b); \
        select count(*), sum(length(b)), count(distinct b) from t; delete from t where a % 3 = 0; vacuum; \
        select count(*), sum(length(b)) from t;";
    is_right(&["sqlite3", ":memory:", sql], "sqlite3");
    is_right(&["sort", "--parallel=4", "-S", "8M", "/etc/services"], "coreutils");
    is_right(
        &[
            "bash",
            "-c",
            "for i in {1..300}; do a[$i]=$(printf '%*s' $((i % 90)) x); done; echo ${#a[*]} | cat",
        ],
        "bash",
    );
}

#[test]
fn run_says_why_a_program_is_left_alone() {
    let plan = |arguments: &[&str], command: &str| {
        let mut run = Command::new(product::hasten());
        without_library(&mut run);
        run.args(["run", "--dry-run"]).args(arguments).args(["--", command]);
        let output = run.output().expect("hasten runs");
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    };
    let redis = plan(&["--tier", THREE_QUARTERS], "redis-server");
    assert!(redis.contains("HASTEN_TIER='0:0=1:3'") && redis.contains("which it is linked with"), "{redis}");
    let other = plan(&["--tier", THREE_QUARTERS], "sh");
    assert!(
        other.contains("its allocator is not libjemalloc.so.2") && !other.contains("HASTEN_TIER="),
        "{other}"
    );
    let unasked = plan(&[], "redis-server");
    assert!(!unasked.contains("libhasten_tier.so"), "in no plan that nobody asked for: {unasked}");
    for (wrong, problem) in [
        ("0:999=1:3", "--tier: there is no node 999"),
        ("0:0=1:0", "--tier: a share of 0"),
        ("0:/mnt/pmem=1:3", "shared with a forked child"),
        ("0:0", "has no shares"),
    ] {
        let said = plan(&["--tier", wrong], "redis-server");
        assert!(said.contains(problem), "{wrong}: {said}");
    }
}
