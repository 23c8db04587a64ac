//! Requests sent with the first bytes of a resumed session.

use std::fs;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::openssl::s_client;
use hasten_tests::pki::Pki;
use hasten_tests::{parallel, same_as_stock};

const WILLING: [(ServerKind, &str); 2] =
    [(ServerKind::Nginx, "ssl_early_data on;"), (ServerKind::Haproxy, "allow-0rtt")];

#[test]
fn early_requests_are_answered() {
    for (kind, lines) in WILLING {
        let early = early_requests(kind, lines);
        assert!(early.iter().all(|early| *early == [false, true, true]), "{kind}: {early:?}");
    }
}

#[test]
fn early_requests_that_are_refused_are_answered_when_repeated() {
    for kind in ServerKind::ALL {
        let early = early_requests(kind, "");
        assert!(early.iter().all(|early| *early == [false; 3]), "{kind}: {early:?}");
    }
}

/// Whether the first and later requests of many clients were accepted as early data.
fn early_requests(kind: ServerKind, lines: &str) -> Vec<[bool; 3]> {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let spec = ServerSpec::new(kind, certificate.clone()).server_lines(lines);
    same_as_stock(&spec, |server| {
        let visit = |_| {
            let client = Client::trusting(&certificate.root).resuming().with_early_data().build();
            [(); 3].map(|()| {
                let answer = client.get(server.address()).unwrap();
                assert_eq!(answer.body, "hello from the fixture\n");
                answer.early
            })
        };
        server.under_load(|| parallel::repeat(8, 6, visit))
    })
}

/// More early data than fits into one small record, from the reference client.
#[test]
fn openssl_sends_a_long_early_request() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let request = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\nConnection: close\r\n\r\n",
        "x".repeat(6000)
    );
    let request = pki.write("request", &request).display().to_string();
    for (kind, lines) in WILLING {
        let spec = ServerSpec::new(kind, certificate.clone()).server_lines(lines);
        let answers = same_as_stock(&spec, |server| {
            let visit = |number: usize| {
                let session = pki.dir().join(format!("session-{number}")).display().to_string();
                let first = s_client(server.address(), &["-tls1_3", "-sess_out", &session]);
                assert!(first.was_served(), "{}", first.output);
                let options =
                    ["-tls1_3", "-sess_in", &session, "-early_data", &request, "-max_send_frag", "1000"];
                let second = s_client(server.address(), &options);
                fs::remove_file(&session).unwrap();
                (second.output.contains("Early data was accepted"), second.was_served())
            };
            server.under_load(|| parallel::repeat(4, 3, visit))
        });
        assert!(answers.iter().all(|answer| *answer == (true, true)), "{kind}: {answers:?}");
    }
}
