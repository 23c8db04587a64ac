//! What an administrator, or bad luck, does to a server that compresses: it is reloaded, replaced, or loses a worker.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::Event;
use hasten_tests::daemon::Daemon;
use hasten_tests::http::Client;
use hasten_tests::pki::Pki;
use hasten_tests::site::Site;
use hasten_tests::subject::{counters_of, send};
use hasten_tests::{Subject, bodies, wait};
use rustix::process::Signal;

const BODY: usize = 120_000;
const READERS: usize = 4;

fn site() -> Site {
    Site::new()
        .file("body.html", &bodies::page(BODY))
        .location("one", "gzip_comp_level 1;")
        .location("six", "gzip_comp_level 6; sendfile off;")
}

/// Runs `fate` while clients read; returns how many answers were right, and how many did not arrive.
fn under_readers(client: &Client, fate: impl FnOnce(&dyn Fn() -> usize)) -> (usize, usize) {
    let (stop, right, lost) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let body = bodies::page(BODY);
    let read = |path: &str| match client.get(path) {
        Ok(answer) => {
            assert!(answer.is_packed() && answer.plain().expect("a good body") == body, "{path}");
            right.fetch_add(1, Relaxed);
        }
        Err(_) => {
            lost.fetch_add(1, Relaxed);
        }
    };
    thread::scope(|scope| {
        for reader in 0..READERS {
            let path = if reader % 2 == 0 { "/one/body.html" } else { "/six/body.html" };
            scope.spawn({
                let (read, stop) = (&read, &stop);
                move || {
                    while !stop.load(Relaxed) {
                        read(path);
                    }
                }
            });
        }
        // Readers must end even if the fate ends in a panic.
        let _stop = StopAtTheEnd(&stop);
        fate(&|| right.load(Relaxed));
    });
    (right.into_inner(), lost.into_inner())
}

struct StopAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Waits until more readers have been served.
fn wait_for_readers(right: &dyn Fn() -> usize) {
    let before = right();
    wait::until("answers", || right() >= before + 2 * READERS);
}

#[test]
fn reloads_under_load() {
    let site = site();
    let server = Subject::accelerated(&site.spec().workers(2));
    let (right, lost) = under_readers(&site.client(), |right| {
        for _ in 0..5 {
            wait_for_readers(right);
            let before = server.workers();
            server.signal(Signal::HUP).unwrap();
            wait::until("new workers", || server.workers().iter().all(|worker| !before.contains(worker)));
        }
        wait_for_readers(right);
    });
    assert_eq!(lost, 0, "of {right}");
    assert!(server.counters()[Event::DeflateStreams] >= right as u64);
    server.finish();
}

#[test]
fn a_worker_that_is_killed() {
    let site = site();
    let server = Subject::accelerated(&site.spec().workers(2));
    under_readers(&site.client(), |right| {
        for _ in 0..3 {
            wait_for_readers(right);
            let victim = server.workers()[0];
            send(victim, Signal::KILL);
            wait::until("another worker", || {
                let workers = server.workers();
                workers.len() == 2 && !workers.contains(&victim)
            });
        }
        wait_for_readers(right);
    });
    let alarms = server.end();
    assert!(alarms.iter().all(|alarm| alarm.ends_with("exited on signal ")), "{alarms:#?}");
}

/// nginx clears the environment for its successor, which must still be accelerated.
#[test]
fn a_binary_upgrade_with_gzip_alone() {
    let (site, pki) = (site(), Pki::new());
    let daemon = Daemon::under("gzip", &pki.certificate(KeyKind::P256), 1, &site.lines());
    let first = daemon.master();
    let (right, lost) = under_readers(&site.client(), |right| {
        wait_for_readers(right);
        let second = daemon.upgrade();
        wait_for_readers(right);
        daemon.retire(first);
        let streams = || counters_of(second)[Event::DeflateStreams];
        let before = streams();
        wait_for_readers(right);
        wait::until("streams of the second master's workers", || streams() > before);
    });
    assert_eq!(lost, 0, "of {right}\n{}", daemon.log());
    let alarms = hasten_tests::subject::alarms(&daemon.log());
    assert!(alarms.is_empty(), "{alarms:#?}");
}
