//! Sessions that resume earlier ones, by ticket and from the server's cache.

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::{parallel, same_as_stock};
use rustls::HandshakeKind::{self, Full, Resumed};
use rustls::version::{TLS12, TLS13};

#[test]
fn sessions_are_resumed_by_ticket() {
    resumes(ServerKind::Nginx, "", "ssl_session_tickets on;");
    resumes(ServerKind::Haproxy, "tune.ssl.cachesize 0", "");
}

#[test]
fn sessions_are_resumed_from_the_cache() {
    resumes(ServerKind::Nginx, "", "ssl_session_tickets off; ssl_session_cache shared:sessions:1m;");
    resumes(ServerKind::Haproxy, "", "no-tls-tickets");
}

fn resumes(kind: ServerKind, main_lines: &str, server_lines: &str) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let spec = ServerSpec::new(kind, certificate.clone()).main_lines(main_lines).server_lines(server_lines);
    let visits = same_as_stock(&spec, |server| {
        let visit = |number: usize| {
            let version = [&TLS13, &TLS12][number % 2];
            let client = Client::trusting(&certificate.root).only(version).resuming().build();
            [(); 3].map(|()| {
                let answer = client.get(server.address()).unwrap();
                assert_eq!(answer.status, "HTTP/1.1 200 OK");
                answer.handshake
            })
        };
        server.under_load(|| parallel::repeat(8, 8, visit))
    });
    let expected: [HandshakeKind; 3] = [Full, Resumed, Resumed];
    assert!(visits.iter().all(|visit| *visit == expected), "{kind}: {visits:?}");
}
