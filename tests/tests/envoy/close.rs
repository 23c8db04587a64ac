//! How connections end: Envoy tells its client with an alert, `close_notify`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use rustls::version;

use crate::subject::{How, Place, RELEASES, build};
use crate::tls::{full, start};

/// What a client saw last.
#[derive(Debug, PartialEq, Eq)]
enum End {
    CloseNotify,
    Bare,
    Reset,
}

/// Asks for one answer, after which Envoy closes, and reads to the end.
fn end(client: &Client, address: SocketAddr) -> End {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut tls = client.connection();
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = Vec::new();
    let result = stream.read_to_end(&mut answer);
    match result.map_err(|error| error.kind()) {
        Ok(_) => {
            assert!(answer.ends_with(b"It works."), "{}", String::from_utf8_lossy(&answer));
            End::CloseNotify
        }
        Err(ErrorKind::UnexpectedEof) => End::Bare,
        Err(ErrorKind::ConnectionReset) => End::Reset,
        Err(other) => panic!("{other}"),
    }
}

/// The interface of what is replaced changed between the two releases.
#[test]
fn every_connection_ends_with_an_alert() {
    const ROUNDS: usize = 12;
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P256);
    for (release, how) in
        RELEASES.iter().flat_map(|release| [(release, How::Stock), (release, How::Preloaded)])
    {
        let (envoy, addresses) = start(&place, &build(release), &[full(&certificate)], how);
        for version in [&version::TLS13, &version::TLS12] {
            let client = Client::trusting(&certificate.root).only(version).build();
            let ends: Vec<_> = (0..ROUNDS).map(|_| end(&client, addresses[0])).collect();
            let is_told = ends.iter().all(|end| *end == End::CloseNotify);
            assert!(is_told, "{release} {how:?} {:?}: {ends:?}", version.version);
        }
        if matches!(how, How::Preloaded) {
            assert_eq!(
                envoy.counters()[Event::HandshakeFinished],
                2 * ROUNDS as u64,
                "{release}: {}",
                envoy.note()
            );
        }
        envoy.finish();
    }
}
