//! What a crowd of handshakes takes is given back when it is over.

use std::io::Write;
use std::net::TcpStream;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::Load;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::footprint::{accept_queue, stacks};
use hasten_tests::hello::{Reaction, reaction};
use hasten_tests::pki::Pki;
use hasten_tests::subject::crowd;
use hasten_tests::{Subject, wait};

const CROWD: usize = 200;

/// Stacks that a thread keeps for the next handshakes.
const KEPT: usize = 32;

#[test]
fn nginx_gives_the_stacks_of_a_crowd_back() {
    gives_the_stacks_of_a_crowd_back(ServerKind::Nginx);
}

#[test]
fn haproxy_gives_the_stacks_of_a_crowd_back() {
    gives_the_stacks_of_a_crowd_back(ServerKind::Haproxy);
}

fn gives_the_stacks_of_a_crowd_back(kind: ServerKind) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hello = Client::trusting(&certificate.root).build().hello();
    let server = Subject::accelerated(&ServerSpec::new(kind, certificate));
    let few = Load { concurrency: 12, ..crowd() };
    // While it has other handshakes to do, so that it never sleeps for long…
    server.under(&few, || {
        comes_together(&server, &hello);
        wait::until("a busy server to give stacks back", || stacks(server.serving()[0]) <= KEPT);
    });
    // …and when it has nothing to do at all, without ever being woken for that.
    comes_together(&server, &hello);
    wait::until("a sleeping server to give stacks back", || stacks(server.serving()[0]) <= KEPT);
    // Those that are mapped anew serve as well as the first.
    comes_together(&server, &hello);
    server.under_load(|| ());
    server.finish();
}

/// Sends hellos until so many were being answered at once that more stacks than usual were needed.
fn comes_together(server: &Subject, hello: &[u8]) {
    wait::until("many handshakes at the same time", || {
        let connect = |_| TcpStream::connect(server.address()).expect("the server accepts");
        let mut sockets: Vec<_> = (0..CROWD).map(connect).collect();
        wait::until("all to be accepted", || accept_queue(server.address()) == 0);
        server.while_paused(|| sockets.iter_mut().for_each(|socket| socket.write_all(hello).unwrap()));
        let mut most = 0;
        for socket in &mut sockets {
            assert_eq!(reaction(socket), Reaction::Handshake, "{}", server.log());
            most = most.max(stacks(server.serving()[0]));
        }
        most > 2 * KEPT
    });
}
