//! The driver and the fixtures against real servers.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, FailureKind, Load, Protocol};
use hasten_bench::server::{Server, ServerError, ServerKind, ServerSpec};
use tempfile::TempDir;

fn load(protocol: Protocol, concurrency: usize) -> Load {
    Load { protocol, concurrency, duration: Duration::from_millis(200), ..Load::default() }
}

/// A server of one kind, and the directory of its certificate.
fn spec(kind: ServerKind) -> (ServerSpec, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let certificate = Certificate::create(dir.path(), KeyKind::P256).unwrap();
    (ServerSpec::new(kind, certificate), dir)
}

fn processes(server: &Server) -> Vec<u32> {
    [server.workers(), vec![server.pid()]].concat()
}

fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting for: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_certificate_and_protocol_of_the_matrix_without_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    for key in KeyKind::ALL {
        let certificate = Certificate::create(dir.path(), key).unwrap();
        for kind in ServerKind::ALL {
            let server = ServerSpec::new(kind, certificate.clone()).start().unwrap();
            for protocol in [Protocol::Tls13, Protocol::Tls12] {
                let before = server.cpu_times();
                let outcome = drive::run(server.target(), &load(protocol, 16)).unwrap();
                let used = server.cpu_times().since(&before);
                let what = format!("{kind} {key} {protocol}");
                assert_eq!(outcome.failures.total(), 0, "{what}: {}\n{}", outcome.failures, server.log());
                assert!(outcome.ops >= 16, "{what}: {} operations", outcome.ops);
                assert_eq!(outcome.latency.len(), outcome.ops, "{what}");
                let per_op = used.as_secs_f64() * 1e6 / outcome.ops as f64;
                assert!((50.0..50_000.0).contains(&per_op), "{what}: {per_op} µs per operation");
            }
            server.stop().unwrap();
        }
    }
}

#[test]
fn the_driver_gives_the_server_no_reason_to_complain() {
    let (spec, _dir) = spec(ServerKind::Nginx);
    let server = spec.main_lines("error_log stderr info;").start().unwrap();
    let outcome = drive::run(server.target(), &load(Protocol::Tls13, 32)).unwrap();
    assert_eq!(outcome.failures.total(), 0, "{}", outcome.failures);
    let log = server.log();
    for complaint in ["[error]", "[crit]", "[alert]", "reset by peer", "SSL_"] {
        assert!(!log.contains(complaint), "{log}");
    }
}

#[test]
fn a_server_that_answers_something_else_fails_every_operation() {
    for kind in ServerKind::ALL {
        let (spec, _dir) = spec(kind);
        let server = spec.body("something else").start().unwrap();
        let mut target = server.target().clone();
        target.body = Some(b"the expected answer".to_vec());
        let outcome = drive::run(&target, &load(Protocol::Tls13, 4)).unwrap();
        assert_eq!(outcome.ops, 0);
        assert!(outcome.failures.count(FailureKind::Body) > 0, "{kind}: {}", outcome.failures);
    }
}

#[test]
fn a_killed_server_is_a_failure_and_not_an_endless_wait() {
    let (spec, _dir) = spec(ServerKind::Nginx);
    let server = spec.start().unwrap();
    let target = server.target().clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(server);
    });
    let outcome =
        drive::run(&target, &Load { duration: Duration::from_millis(400), ..load(Protocol::Tls13, 4) });
    killer.join().unwrap();
    let outcome = outcome.unwrap();
    assert!(outcome.ops > 0);
    assert!(outcome.failures.count(FailureKind::Connect) > 0, "{}", outcome.failures);
    assert_eq!(outcome.failures.count(FailureKind::Timeout), 0, "{}", outcome.failures);
}

#[test]
fn no_process_outlives_its_fixture() {
    for kind in ServerKind::ALL {
        let (spec, _dir) = spec(kind);
        let stopped = spec.clone().workers(2).start().unwrap();
        wait_for("two workers", || kind == ServerKind::Haproxy || stopped.workers().len() == 2);
        let pids = processes(&stopped);
        assert!(stopped.stop().unwrap().is_some(), "{kind} had to be killed");
        wait_for("the end of all processes", || !pids.iter().any(|&pid| is_running(pid)));

        let dropped = spec.start().unwrap();
        let pids = processes(&dropped);
        let directory = dropped.dir().to_owned();
        drop(dropped);
        wait_for("the end of all processes", || !pids.iter().any(|&pid| is_running(pid)));
        assert!(!directory.exists());
    }
}

#[test]
fn workers_of_a_killed_master_end_with_the_fixture() {
    let (spec, _dir) = spec(ServerKind::Nginx);
    let server = spec.start().unwrap();
    wait_for("a worker", || !server.workers().is_empty());
    let pids = processes(&server);
    server.signal(rustix::process::Signal::KILL).unwrap();
    drop(server);
    wait_for("the end of all processes", || !pids.iter().any(|&pid| is_running(pid)));
}

#[test]
fn a_server_that_does_not_start_shows_its_own_words() {
    let (spec, _dir) = spec(ServerKind::Nginx);
    let error = spec.server_lines("no_such_directive on;").start().unwrap_err();
    assert!(matches!(error, ServerError::Start { .. }));
    let message = error.to_string();
    assert!(message.starts_with("nginx did not start"), "{message}");
    assert!(message.contains("unknown directive \"no_such_directive\""), "{message}");

    let (spec, _dir) = self::spec(ServerKind::Haproxy);
    let message = spec.main_lines("no-such-keyword").start().unwrap_err().to_string();
    assert!(message.contains("no-such-keyword"), "{message}");
}

#[test]
fn a_server_stays_on_its_cpu() {
    let cpu = hasten_bench::affinity::allowed()[0];
    let (spec, _dir) = spec(ServerKind::Nginx);
    let server = spec.cpu(Some(cpu)).start().unwrap();
    wait_for("a worker", || !server.workers().is_empty());
    for pid in processes(&server) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!(list.trim(), cpu.to_string());
    }
}

#[test]
fn two_certificates_on_one_port() {
    for kind in ServerKind::ALL {
        let (spec, dir) = spec(kind);
        let second = Certificate::create(dir.path(), KeyKind::Rsa2048).unwrap();
        let server = spec.also(second).start().unwrap();
        // The driver offers both algorithms; ECDSA comes first with every server, and it is the pinned one.
        let outcome = drive::run(server.target(), &load(Protocol::Tls13, 2)).unwrap();
        assert_eq!(outcome.failures.total(), 0, "{kind}: {}", outcome.failures);
    }
}
