//! The resources of one crowd of handshakes serve the next crowd, and do not grow.

use std::io::Write;
use std::net::TcpStream;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::footprint::accept_queue;
use hasten_tests::hello::{Reaction, reaction};
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, wait};

const CROWD: usize = 200;

/// The difference between crowds in what an allocator may retain, in KiB. Frames and connections of a whole crowd are
/// more.
const SLACK: u64 = 1024;

#[test]
fn nginx_needs_no_more_memory_for_the_tenth_crowd() {
    needs_no_more_memory_for_the_tenth_crowd(ServerKind::Nginx);
}

#[test]
fn haproxy_needs_no_more_memory_for_the_tenth_crowd() {
    needs_no_more_memory_for_the_tenth_crowd(ServerKind::Haproxy);
}

fn needs_no_more_memory_for_the_tenth_crowd(kind: ServerKind) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hello = Client::trusting(&certificate.root).build().hello();
    let server = Subject::accelerated(&ServerSpec::new(kind, certificate));
    let after = |crowds: usize| {
        (0..crowds).for_each(|_| comes_together(&server, &hello));
        server.idle().resident_kib
    };
    let few = after(3);
    let many = after(7);
    assert!(many <= few + SLACK, "{few} KiB after three crowds, {many} after ten");
    server.under_load(|| ());
    server.finish();
}

/// Sends hellos until most of them have been suspended at the same time.
fn comes_together(server: &Subject, hello: &[u8]) {
    wait::until("many handshakes at the same time", || {
        let before = server.counters()[Event::Suspended];
        let connect = |_| TcpStream::connect(server.address()).expect("the server accepts");
        let mut sockets: Vec<_> = (0..CROWD).map(connect).collect();
        wait::until("all to be accepted", || accept_queue(server.address()) == 0);
        server.while_paused(|| sockets.iter_mut().for_each(|socket| socket.write_all(hello).unwrap()));
        for socket in &mut sockets {
            assert_eq!(reaction(socket), Reaction::Handshake, "{}", server.log());
        }
        server.counters()[Event::Suspended] - before > CROWD as u64 / 2
    });
}
