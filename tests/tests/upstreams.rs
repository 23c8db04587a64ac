//! Proxies whose upstream connections are TLS: the handshakes of a client.

use std::net::SocketAddr;
use std::path::Path;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::{Algorithm, Counters, Event};
use hasten_tests::http::Client;
use hasten_tests::pki::Pki;
use hasten_tests::program::EVERY_BATCH;
use hasten_tests::subject::Side;
use hasten_tests::{Subject, same_as_stock};

/// Handshakes for each kind.
const EACH: u64 = 6;
/// The directory of a location, what its upstream connections are restricted to, and the secrets that count.
const KINDS: [(&str, &str, Algorithm); 5] = [
    ("x25519", "proxy_ssl_protocols TLSv1.3; proxy_ssl_conf_command Groups X25519;", Algorithm::X25519Derive),
    ("p256", "proxy_ssl_protocols TLSv1.3; proxy_ssl_conf_command Groups P-256;", Algorithm::P256Derive),
    ("p384", "proxy_ssl_protocols TLSv1.3; proxy_ssl_conf_command Groups P-384;", Algorithm::P384Derive),
    (
        "x25519-12",
        "proxy_ssl_protocols TLSv1.2; proxy_ssl_conf_command Groups X25519;",
        Algorithm::X25519Derive,
    ),
    ("p384-12", "proxy_ssl_protocols TLSv1.2; proxy_ssl_conf_command Groups P-384;", Algorithm::P384Derive),
];

/// nginx, in front of that server by TLS, on a socket without.
fn front(pki: &Pki, socket: &Path, upstream: SocketAddr) -> ServerSpec {
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let locations: String = KINDS
        .iter()
        .map(|(name, only, _)| format!("location /{name}/ {{ proxy_pass https://{upstream}/; {only} }}\n"))
        .collect();
    let lines = format!(
        "server {{ listen unix:{}; proxy_ssl_session_reuse off; proxy_ssl_name localhost;
        proxy_ssl_verify on; proxy_ssl_verify_depth 2; proxy_ssl_trusted_certificate {};\n{locations} }}",
        socket.display(),
        certificate.root.display()
    );
    let (name, value) = EVERY_BATCH;
    let spec = ServerSpec::new(ServerKind::Nginx, certificate).http_lines(&lines).env(name, value);
    // Nothing is said of the CPU, but nothing is to wait either if it has no lanes.
    spec.env("HASTEN_CPU_DISABLE_IFMA", "0")
}

fn secrets(counters: &Counters, algorithm: Algorithm) -> u64 {
    let one = counters[algorithm];
    one.batched + one.single + one.scalar
}

#[test]
fn nginx_reaches_its_upstream_by_keys_of_the_engines() {
    let pki = Pki::new();
    // In TLS 1.2, a certificate's curve would have to be among the groups.
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let upstream = Subject::start(&ServerSpec::new(ServerKind::Nginx, certificate), Side::Stock);
    let socket = pki.dir().join("front");
    let spec = front(&pki, &socket, upstream.address());
    let _ = same_as_stock(&spec, |server| {
        let client = Client::of(&socket);
        let answers: Vec<_> = KINDS
            .iter()
            .flat_map(|(name, ..)| (0..EACH).map(move |_| name))
            .map(|name| client.get(&format!("/{name}/")).expect("an answer"))
            .map(|answer| (answer.status, answer.body))
            .collect();
        let good = answers.iter().filter(|(status, _)| *status == 200).count();
        assert_eq!(good, answers.len(), "{}", server.log());
        if server.is_accelerated() {
            let counters = server.counters();
            assert_eq!(counters[Event::HandshakeFinished], 0, "nobody but the upstream");
            assert_eq!(counters[Event::ClientHandshake], EACH * KINDS.len() as u64);
            assert_eq!(counters[Event::ClientHybridHandshake], 0);
            assert!(counters[Event::HkdfDirect] > 0 && counters[Event::MacDirect] > 0, "{counters:#?}");
            for (_, _, algorithm) in KINDS {
                let sharing = KINDS.iter().filter(|(.., other)| *other == algorithm).count() as u64;
                assert_eq!(secrets(&counters, algorithm), EACH * sharing, "{algorithm}: {counters:#?}");
            }
        }
        answers
    });
    upstream.finish();
}
