//! The driver and the fixtures against real servers.

use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Load, Protocol};
use hasten_bench::server::{ServerKind, ServerSpec};

fn load(protocol: Protocol, concurrency: usize) -> Load {
    Load { protocol, concurrency, duration: Duration::from_millis(200), ..Load::default() }
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
                assert!(outcome.ops > 16, "{what}: {} operations", outcome.ops);
                assert_eq!(outcome.latency.len(), outcome.ops, "{what}");
                let per_op = used.as_secs_f64() * 1e6 / outcome.ops as f64;
                assert!((50.0..50_000.0).contains(&per_op), "{what}: {per_op} µs per operation");
            }
            server.stop().unwrap();
        }
    }
}
