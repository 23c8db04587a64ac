//! Connections that get stuck half-way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::Load;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::footprint::{Footprint, accept_queue};
use hasten_tests::pki::Pki;
use hasten_tests::subject::crowd;
use hasten_tests::{Side, Subject, parallel, same_as_stock, wait};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit for the library's stacks and buffers, however many connections there are.
const BOUND_KIB: u64 = 48 << 10;

#[test]
fn nginx_serves_on_among_thousands_of_half_open_handshakes() {
    serves_on_among_half_open_handshakes(ServerKind::Nginx, "worker_rlimit_nofile 16384;");
}

#[test]
fn haproxy_serves_on_among_thousands_of_half_open_handshakes() {
    serves_on_among_half_open_handshakes(ServerKind::Haproxy, "");
}

fn serves_on_among_half_open_handshakes(kind: ServerKind, main_lines: &str) {
    allow_many_descriptors();
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let hello = Client::trusting(&certificate.root).build().hello();
    let spec = ServerSpec::new(kind, certificate).connections(7000).main_lines(main_lines);
    let [stock, accelerated] = [Side::Stock, Side::Accelerated].map(|side| {
        let server = Subject::start(&spec, side);
        let process = server.serving()[0];
        let idle = server.idle();
        let held = server.under_load(|| {
            let held = parallel::repeat(3, 1200, |number| hold(&server, &hello, number));
            wait::until("all to be accepted", || accept_queue(server.address()) == 0);
            held
        });
        let open = Footprint::of(process);
        assert!(open.descriptors >= held.len(), "{open:?} for {} connections", held.len());
        drop(held);
        wait::until("their descriptors", || Footprint::of(process).descriptors <= idle.descriptors);
        server.finish();
        open.resident_kib
    });
    assert!(accelerated < stock + BOUND_KIB, "{accelerated} KiB instead of {stock}");
}

/// Stops after nothing, half of a hello, or the server's first bytes.
fn hold(server: &Subject, hello: &[u8], number: usize) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).expect("the server accepts");
    match number % 3 {
        0 => {}
        1 => socket.write_all(&hello[..hello.len() / 2]).unwrap(),
        _ => {
            socket.write_all(hello).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            socket.read_exact(&mut [0; 64]).expect("the server answers");
        }
    }
    socket
}

#[test]
fn nginx_recovers_when_its_connections_were_exhausted() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let hello = Client::trusting(&certificate.root).build().hello();
    let spec = ServerSpec::new(ServerKind::Nginx, certificate).connections(80);
    let few = Load { concurrency: 40, ..crowd() };
    same_as_stock(&spec, |nginx| {
        nginx.under(&few, || ());
        let idle = nginx.idle().descriptors;
        for _ in 0..4 {
            let greedy: Vec<_> = (0..150).map(|_| greet(nginx, &hello)).collect();
            wait::until("the complaint", || nginx.log().contains("80 worker_connections are not enough"));
            drop(greedy);
        }
        wait::until("all descriptors", || Footprint::of(nginx.serving()[0]).descriptors <= idle);
        nginx.under(&few, || ());
    });
}

/// Sends a hello, whether or not anybody listens.
fn greet(server: &Subject, hello: &[u8]) -> Option<TcpStream> {
    let mut socket = TcpStream::connect(server.address()).ok()?;
    socket.write_all(hello).ok()?;
    Some(socket)
}

/// As many as this process may allow itself.
fn allow_many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
