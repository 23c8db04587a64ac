//! Resumed sessions and early data, while other handshakes are being batched.

use std::path::Path;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::openssl::{Session, s_client};
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, same_as_stock};

const PROTOCOLS: [&str; 2] = ["-tls1_2", "-tls1_3"];

#[test]
fn nginx_resumes_by_ticket() {
    let pki = Pki::new();
    resumes(&pki, &ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256)));
}

#[test]
fn nginx_resumes_from_its_cache() {
    let pki = Pki::new();
    let cache = "ssl_session_tickets off; ssl_session_cache shared:test:1m;";
    resumes(&pki, &ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::Rsa2048)).server_lines(cache));
}

#[test]
fn haproxy_resumes_by_ticket_and_from_its_cache() {
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::P256));
    resumes(&pki, &spec);
    resumes(&pki, &spec.server_lines("no-tls-tickets"));
}

fn resumes(pki: &Pki, spec: &ServerSpec) {
    let sessions = same_as_stock(spec, |server| {
        server.under_load(|| PROTOCOLS.map(|protocol| twice(server, pki.dir(), protocol, &[])))
    });
    for [first, second] in sessions {
        assert!(first.iter().any(|line| line.starts_with("New,")), "{first:#?}");
        assert!(second.iter().any(|line| line.starts_with("Reused,")), "{second:#?}");
    }
}

/// A full handshake, and another that offers its session.
fn twice(server: &Subject, dir: &Path, protocol: &str, second: &[&str]) -> [Vec<String>; 2] {
    let file = dir.join(format!("session{protocol}"));
    let file = file.to_str().expect("a temporary path is text");
    let full = s_client(server.address(), &[protocol, "-sess_out", file]);
    let resumed = s_client(server.address(), &[&[protocol, "-sess_in", file], second].concat());
    [full, resumed].map(|session: Session| session.essence())
}

#[test]
fn nginx_takes_early_data() {
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256));
    takes_early_data(&pki, &spec.server_lines("ssl_early_data on;"));
}

#[test]
fn haproxy_takes_early_data() {
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::P256));
    takes_early_data(&pki, &spec.server_lines("allow-0rtt"));
}

fn takes_early_data(pki: &Pki, spec: &ServerSpec) {
    let early = pki.write("early", "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let early = early.to_str().expect("a temporary path is text");
    let [_, second] = same_as_stock(spec, |server| {
        server.under_load(|| twice(server, pki.dir(), "-tls1_3", &["-early_data", early]))
    });
    let accepted = |line: &String| line.starts_with("Early data was") && line.ends_with("accepted");
    assert!(second.iter().any(accepted), "{second:#?}");
}
