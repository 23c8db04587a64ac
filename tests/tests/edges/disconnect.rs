//! Clients that leave in the middle of their handshake, and handshakes that take too long.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{Load, Protocol};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::footprint::Footprint;
use hasten_tests::hello::{Farewell, reaction};
use hasten_tests::pki::Pki;
use hasten_tests::subject::crowd;
use hasten_tests::{Subject, lanes, parallel, same_as_stock, wait};
use rustls::version::{TLS12, TLS13};

#[test]
fn nginx_forgets_thousands_of_clients_that_vanish() {
    forgets_clients_that_vanish(ServerKind::Nginx, KeyKind::Rsa2048, Protocol::Tls13);
}

#[test]
fn haproxy_forgets_thousands_of_clients_that_vanish() {
    forgets_clients_that_vanish(ServerKind::Haproxy, KeyKind::Rsa2048, Protocol::Tls12);
}

fn forgets_clients_that_vanish(kind: ServerKind, key: KeyKind, protocol: Protocol) {
    let pki = Pki::new();
    let certificate = pki.certificate(key);
    let version = if protocol == Protocol::Tls12 { &TLS12 } else { &TLS13 };
    let hello = Client::trusting(&certificate.root).only(version).build().hello();
    let load = Load { protocol, ..crowd() };
    let server = Subject::accelerated(&ServerSpec::new(kind, certificate));
    let process = server.serving()[0];
    let storm = || parallel::repeat(4, 500, |number| vanish(&server, &hello, number));

    server.under(&load, storm);
    let idle = server.idle();
    server.under(&load, storm);
    wait::until("the descriptors of clients that are gone", || {
        Footprint::of(process).descriptors <= idle.descriptors
    });
    let growth = Footprint::of(process).resident_kib.saturating_sub(idle.resident_kib);
    assert!(growth < 6 << 10, "the second storm, like the first, costs {growth} KiB");
    server.finish();
}

/// Leaves in one of two ways, after nothing, half of a hello, all of it, or the first bytes of the answer.
fn vanish(server: &Subject, hello: &[u8], number: usize) {
    let mut socket = TcpStream::connect(server.address()).expect("the server accepts");
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let sent = match number % 8 / 2 {
        0 => &[],
        1 => &hello[..hello.len() / 2],
        _ => hello,
    };
    socket.write_all(sent).expect("the server reads");
    if number % 8 / 2 == 3 {
        socket.read_exact(&mut [0; 64]).expect("the server answers");
    }
    let farewell = if number.is_multiple_of(2) { Farewell::Close } else { Farewell::Reset };
    farewell.to(socket);
}

#[test]
fn nginx_gives_up_suspended_handshakes_in_time() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hasty = pki.dir().join("hasty");
    let http = format!(
        "server {{
            listen unix:{} ssl;
            client_header_timeout 1ms;
            ssl_certificate {};
            ssl_certificate_key {};
        }}",
        hasty.display(),
        certificate.chain.display(),
        certificate.key.display()
    );
    let spec = ServerSpec::new(ServerKind::Nginx, certificate.clone()).http_lines(&http);
    gives_up_suspended_handshakes(&spec, &certificate, &hasty);
}

#[test]
fn haproxy_gives_up_suspended_handshakes_in_time() {
    // Nothing waits for long enough.
    if lanes::are_missing() {
        return;
    }
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hasty = pki.dir().join("hasty");
    let frontend = format!(
        "
frontend hasty
    timeout client 1
    bind unix@{} ssl crt {}
    http-request return status 200
",
        hasty.display(),
        certificate.bundle.display()
    );
    let spec = ServerSpec::new(ServerKind::Haproxy, certificate.clone()).http_lines(&frontend);
    gives_up_suspended_handshakes(&spec, &certificate, &hasty);
}

fn gives_up_suspended_handshakes(spec: &ServerSpec, certificate: &Certificate, hasty: &std::path::Path) {
    let hello = Client::trusting(&certificate.root).build().hello();
    let server = Subject::accelerated(spec);
    server.under_load(|| {
        wait::until("handshakes that were given up while they were suspended", || {
            parallel::repeat(16, 8, |_| {
                let mut socket = UnixStream::connect(hasty).expect("the server accepts");
                // The server may have lost patience already.
                let _ = socket.write_all(&hello);
                let _ = socket.read_to_end(&mut Vec::new());
            });
            server.counters()[Event::Cancelled] >= 100
        });
    });
    let (before, ()) = (server.idle(), server.under_load(|| ()));
    assert_eq!(server.idle().descriptors, before.descriptors);
    server.finish();
}

/// A client may close its direction at once and still want an answer, which servers then start to give.
#[test]
fn a_half_closed_connection_gets_the_same_answer() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hello = Client::trusting(&certificate.root).build().hello();
    for kind in ServerKind::ALL {
        same_as_stock(&ServerSpec::new(kind, certificate.clone()), |server| {
            let half_close = |_| {
                let mut socket = TcpStream::connect(server.address()).expect("the server accepts");
                socket.write_all(&hello).unwrap();
                socket.shutdown(Shutdown::Write).unwrap();
                reaction(&mut socket)
            };
            server.under_load(|| parallel::repeat(8, 10, half_close))
        });
    }
}
