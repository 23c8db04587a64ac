//! Reload, binary upgrade, crash and end of a server under load.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::thread;

use hasten_bench::certificates::KeyKind;
use hasten_bench::cpu::children;
use hasten_bench::drive::FailureKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::daemon::Daemon;
use hasten_tests::footprint::{accept_queue, is_preloaded};
use hasten_tests::pki::Pki;
use hasten_tests::reload::{haproxy_master, reload};
use hasten_tests::subject::{alarms, assert_perfect, batched, counters_of, crowd, send};
use hasten_tests::traffic::Traffic;
use hasten_tests::{Subject, wait};
use rustix::process::Signal;

fn nginx(pki: &Pki) -> ServerSpec {
    ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256))
}

#[test]
fn reloading_again_and_again_loses_no_client() {
    let pki = Pki::new();
    let nginx = Subject::accelerated(&nginx(&pki).workers(2));
    nginx.under_load(|| {
        for _ in 0..6 {
            reload(&nginx);
        }
    });
    nginx.finish();
}

#[test]
fn haproxy_reloads_again_and_again_without_losing_a_client() {
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::P256)).workers(2);
    let spec = spec.main_lines(&haproxy_master(pki.dir()));
    let haproxy = Subject::accelerated(&spec);
    let traffic = Traffic::start(haproxy.target(), &crowd());
    for _ in 0..4 {
        wait_for_batches(worker(&haproxy));
        reload(&haproxy);
    }
    wait_for_batches(worker(&haproxy));
    assert_perfect(&traffic.stop(), &haproxy.log());
    haproxy.finish();
}

#[test]
fn a_binary_upgrade_stays_accelerated() {
    let pki = Pki::new();
    let nginx = Daemon::accelerated(&pki.certificate(KeyKind::P256), 2);
    let old = nginx.master();
    let traffic = Traffic::start(nginx.target(), &crowd());
    wait_for_batches(old);
    let new = nginx.upgrade();
    nginx.retire(old);

    for process in children(new).into_iter().chain([new]) {
        assert!(is_preloaded(process), "{process} has lost the library");
    }
    wait_for_batches(new);

    // The new one can be upgraded in turn: what was passed on is passed on again.
    let third = nginx.upgrade();
    nginx.retire(new);
    wait_for_batches(third);
    assert_perfect(&traffic.stop(), &nginx.log());
    assert!(alarms(&nginx.log()).is_empty(), "{}", nginx.log());
}

#[test]
fn an_upgrade_that_is_taken_back_loses_no_client() {
    let pki = Pki::new();
    let nginx = Daemon::accelerated(&pki.certificate(KeyKind::P256), 1);
    let traffic = Traffic::start(nginx.target(), &crowd());
    let new = nginx.upgrade();
    wait_for_batches(new);
    nginx.retire(new);
    wait_for_batches(nginx.master());
    assert_perfect(&traffic.stop(), &nginx.log());
    assert!(alarms(&nginx.log()).is_empty(), "{}", nginx.log());
}

#[test]
fn a_killed_worker_takes_nothing_with_it_but_its_own_connections() {
    let pki = Pki::new();
    let nginx = Subject::accelerated(&nginx(&pki));
    for _ in 0..3 {
        let traffic = Traffic::start(nginx.target(), &crowd());
        wait_for_batches(nginx.pid());
        let old = worker(&nginx);
        send(old, Signal::KILL);
        wait::until("another worker", || !workers(&nginx).is_empty() && !workers(&nginx).contains(&old));
        wait_for_batches(nginx.pid());
        let outcome = traffic.stop();
        let lost =
            outcome.failures.count(FailureKind::ClosedEarly) + outcome.failures.count(FailureKind::Connect);
        assert_eq!(outcome.failures.total(), lost, "{}", outcome.failures);
        assert!(lost <= crowd().concurrency as u64, "{lost} of {} connections lost", crowd().concurrency);
    }
    nginx.under_load(|| ());
    let log = nginx.log();
    let ends = ["exited on signal 9", "exited on signal"].map(|words| log.matches(words).count());
    assert_eq!(ends, [3, 3], "{log}");
    assert!(nginx.end().iter().all(|alarm| alarm.contains("exited on signal")), "{log}");
}

/// The clients' hellos are accepted, many of the handshakes are suspended, and then the server is told to end.
#[test]
fn a_graceful_quit_serves_whom_it_has_accepted() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let client = Client::trusting(&certificate.root).build();
    for round in 0..3 {
        let nginx = Subject::accelerated(&ServerSpec::new(ServerKind::Nginx, certificate.clone()));
        let served = thread::scope(|scope| {
            let waiting: Vec<_> = nginx.while_paused(|| {
                let connect = || scope.spawn(|| client.get(nginx.address()));
                let waiting = (0..200).map(|_| connect()).collect();
                wait::until("all to connect", || accept_queue(nginx.address()) >= 200);
                waiting
            });
            wait::until("all to be accepted", || accept_queue(nginx.address()) == 0);
            nginx.signal(Signal::QUIT).unwrap();
            waiting.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        for answer in served {
            let answer = answer.unwrap_or_else(|error| panic!("round {round}: {error}\n{}", nginx.log()));
            assert_eq!(answer.status, "HTTP/1.1 200 OK");
        }
        wait::until("the graceful end", || nginx.log().contains("gracefully shutting down"));
        nginx.finish();
    }
}

/// A worker told to end at once abandons suspended handshakes; it must do so cleanly.
#[test]
fn a_fast_end_in_the_middle_of_handshakes_is_clean() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hello = Client::trusting(&certificate.root).build().hello();
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&ServerSpec::new(kind, certificate.clone()));
        // Only an event loop that has been seen to come back is trusted to do so again.
        server.under_load(|| ());
        let before = server.counters()[Event::Suspended];
        let _held: Vec<_> = server.while_paused(|| (0..200).map(|_| greet(&server, &hello)).collect());
        wait::until("suspended handshakes", || server.counters()[Event::Suspended] > before);
        server.finish();
    }
}

fn greet(server: &Subject, hello: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).expect("the system accepts for the server");
    socket.write_all(hello).unwrap();
    socket
}

fn workers(subject: &Subject) -> BTreeSet<u32> {
    subject.workers().into_iter().collect()
}

fn worker(subject: &Subject) -> u32 {
    wait::for_some("a worker", || subject.workers().first().copied())
}

/// Waits until the processes around `pid` batch.
fn wait_for_batches(pid: u32) {
    let before = batched(&counters_of(pid));
    wait::until("batches", || batched(&counters_of(pid)) > before);
}
