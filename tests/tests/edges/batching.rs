//! Batches form wherever there is a crowd, starting with its first handshakes.

use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{self, Group, Load, Protocol};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::{Algorithm, Event};
use hasten_tests::footprint::is_preloaded;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{assert_perfect, batched, crowd};
use hasten_tests::{Subject, lanes, wait};

/// What an idle machine completes in a fraction of a round.
const ENOUGH: u64 = 500;

/// A server that is never idle need not become so: it may have learned everything necessary before its first client.
#[test]
fn a_crowd_is_batched_from_the_start() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    for kind in ServerKind::ALL {
        for workers in [1, 2] {
            let server = Subject::accelerated(&ServerSpec::new(kind, certificate.clone()).workers(workers));
            let load = Load { duration: Duration::from_millis(200), ..crowd() };
            let mut handshakes = 0;
            // On a busy machine, the first round may contain no more than each connection's first handshake, and
            // the very first are watched, not suspended.
            while handshakes < ENOUGH {
                let outcome = drive::run(server.target(), &load).unwrap();
                assert_perfect(&outcome, &server.log());
                handshakes += outcome.ops;
            }
            // A handshake has two operations, and is suspended for each unless it is alone.
            let suspended = server.counters()[Event::Suspended];
            assert!(suspended > handshakes / 2, "{kind}: {suspended} times in {handshakes} handshakes");
            server.finish();
        }
    }
}

/// Where OpenSSL takes two to three times as long, even a connection without company has the engine sign.
#[test]
fn a_lone_connection_has_its_rsa_signature_from_the_engine() {
    if lanes::are_missing() {
        return;
    }
    let pki = Pki::new();
    for (key, algorithm) in
        [(KeyKind::Rsa3072, Algorithm::Rsa3072Sign), (KeyKind::Rsa4096, Algorithm::Rsa4096Sign)]
    {
        let certificate = pki.certificate(key);
        for kind in ServerKind::ALL {
            for protocol in [Protocol::Tls12, Protocol::Tls13] {
                let server = Subject::accelerated(&ServerSpec::new(kind, certificate.clone()));
                let load = Load { concurrency: 1, duration: Duration::from_millis(300), protocol, ..crowd() };
                assert_perfect(&drive::run(server.target(), &load).unwrap(), &server.log());
                let signed = server.counters()[algorithm];
                assert!(signed.single > 0 && signed.failed == 0, "{kind} {key}: {signed:?}");
                server.finish();
            }
        }
    }
}

#[test]
fn every_key_and_group_is_batched_in_both_protocols() {
    let pki = Pki::new();
    let ways = [
        (KeyKind::Rsa2048, Group::P256, Protocol::Tls12),
        (KeyKind::Rsa3072, Group::P384, Protocol::Tls13),
        (KeyKind::Rsa4096, Group::X25519, Protocol::Tls12),
        (KeyKind::P256, Group::P384, Protocol::Tls12),
        (KeyKind::P384, Group::P256, Protocol::Tls13),
    ];
    for (key, group, protocol) in ways {
        let certificate = pki.certificate(key);
        for kind in ServerKind::ALL {
            let spec = ServerSpec::new(kind, certificate.clone());
            let server = Subject::accelerated(&match kind {
                ServerKind::Nginx => spec.server_lines("ssl_ecdh_curve X25519:P-256:P-384;"),
                ServerKind::Haproxy => spec.server_lines("curves X25519:P-256:P-384"),
                ServerKind::Envoy | ServerKind::HaproxyAwsLc => unreachable!("not one of the distribution's"),
            });
            server.under(&Load { group, protocol, ..crowd() }, || ());
            server.finish();
        }
    }
}

#[test]
fn every_one_of_many_workers_batches() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    // A socket per worker distributes connections; otherwise the first to wake takes most of them.
    let fair = "server { listen {address} ssl reuseport; server_name other.test; ssl_reject_handshake on; }";
    for (kind, lines) in [(ServerKind::Nginx, fair), (ServerKind::Haproxy, "")] {
        let spec = ServerSpec::new(kind, certificate.clone()).workers(4).http_lines(lines);
        let server = Subject::accelerated(&spec);
        server.under_load(|| {
            wait::until("all four to batch", || server.writers_that(|counters| batched(counters) > 0) == 4);
        });
        assert!(server.serving().into_iter().all(is_preloaded));
        server.finish();
    }
}
