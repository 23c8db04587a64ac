//! Servers whose handshakes cannot be suspended.

use hasten_telemetry::{Algorithm, Counters, Event};
use hasten_tests::lanes;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

fn same_as_stock(what: &str) -> Counters {
    let counters = Program::named("plain").same_as_stock(&[what], &[EAGER, EVERY_BATCH]);
    assert_eq!(counters[Event::Suspended], 0, "{what}");
    assert_eq!(counters[Event::SyntheticWakeups], 0, "{what}");
    counters
}

#[test]
fn server_and_client_connected_by_memory() {
    let counters = same_as_stock("memory");
    assert_eq!(counters[Event::HandshakeFinished], 50);
    let derive = counters[Algorithm::X25519Derive];
    // One on each side; where all would be the original's, it is not asked.
    assert_eq!((derive.batched, derive.queued()), (0, if lanes::exist() { 100 } else { 0 }));
}

/// In little more than OpenSSL itself needs, which is 13 KiB: lanes and the trial need more.
#[test]
fn coroutines_with_small_stacks() {
    for size in ["16", "96"] {
        let counters = Program::named("plain").same_as_stock(&["small-stacks", size], &[EAGER, EVERY_BATCH]);
        assert_eq!((counters[Event::HandshakeFinished], counters.total().batched), (54, 0), "{size} KiB");
    }
}

#[test]
fn memory_beside_an_event_loop() {
    assert_eq!(same_as_stock("memory-beside-epoll")[Event::HandshakeFinished], 40);
}

#[test]
fn a_thread_for_each_connection() {
    assert_eq!(same_as_stock("threads")[Event::HandshakeFinished], 400);
}

#[test]
fn select_and_poll() {
    assert_eq!(same_as_stock("select")[Event::HandshakeFinished], 32);
    assert_eq!(same_as_stock("poll")[Event::HandshakeFinished], 32);
}

#[test]
fn failure_counts_once_however_often_the_server_calls() {
    let counters = same_as_stock("failing");
    assert_eq!((counters[Event::HandshakeStarted], counters[Event::HandshakeFailed]), (2, 2));
}

#[test]
fn datagrams() {
    assert_eq!(same_as_stock("datagrams")[Event::HandshakeFinished], 6);
}
