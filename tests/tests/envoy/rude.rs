//! Clients that do not behave: the answer is that of stock Envoy, to the byte where it is the same each time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use rustls::crypto::aws_lc_rs::kx_group;

use crate::tls::{answered, full, same_as_stock};

/// More than there are workers: the first handshake of each does not wait.
const ROUNDS: usize = 6;

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    socket.set_nodelay(true).expect("an option");
    socket
}

/// Everything that comes, until the connection ends in whatever way.
fn rest(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = socket.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    }
    bytes
}

/// The same hello with a key of X25519 by which every secret is zero.
fn with_weak_key(hello: &[u8]) -> Vec<u8> {
    const X25519: &[u8] = &[0x00, 0x1d, 0x00, 0x20];
    let at = hello.windows(X25519.len()).position(|bytes| bytes == X25519).expect("a key");
    let mut hello = hello.to_vec();
    hello[at + X25519.len()..][..32].fill(0);
    hello
}

#[test]
fn garbage_is_refused_with_the_same_alert() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let client = Client::trusting(&certificate.root).groups(&[kx_group::X25519]).build();
    let hello = client.hello();
    let mut too_long = hello.clone();
    too_long[6] = 0xff;
    let garbage = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        vec![0xa5; 3000],
        vec![22, 3, 1, 0, 0],
        vec![21, 3, 3, 0, 2, 2, 40],
        too_long,
        with_weak_key(&hello),
    ];
    let outcome = same_as_stock(&full(&certificate), |address| {
        let refuse = |bytes: &Vec<u8>| {
            assert!(answered(&client, address).is_ok());
            let mut socket = connect(address);
            socket.write_all(bytes).expect("garbage");
            // What is not refused at once is refused at its end; what is may have been reset by now.
            let _ = socket.shutdown(Shutdown::Write);
            rest(socket)
        };
        (0..ROUNDS).flat_map(|_| garbage.iter()).map(refuse).collect::<Vec<_>>()
    });
    const ILLEGAL_PARAMETER: &[u8] = &[21, 3, 3, 0, 2, 2, 47];
    assert!(
        outcome.iter().skip(5).step_by(garbage.len()).all(|bytes| bytes == ILLEGAL_PARAMETER),
        "{outcome:?}"
    );
}

/// The hello and the end of what the client sends may come in one event.
#[test]
fn half_closed_client_gets_what_it_gets_of_stock() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let client = Client::trusting(&certificate.root).groups(&[kx_group::X25519]).build();
    let outcome = same_as_stock(&full(&certificate), |address| {
        let half_close = |_| {
            assert!(answered(&client, address).is_ok());
            let mut socket = connect(address);
            socket.write_all(&client.hello()).expect("a hello");
            let _ = socket.shutdown(Shutdown::Write);
            // The record's kind, and the message's: the rest differs each time.
            let bytes = rest(socket);
            (bytes.first().copied(), bytes.get(5).copied())
        };
        (0..ROUNDS).map(half_close).collect::<Vec<_>>()
    });
    const SERVER_HELLO: (Option<u8>, Option<u8>) = (Some(22), Some(2));
    assert_eq!(outcome, [SERVER_HELLO; ROUNDS]);
}

/// Sends a few bytes at a time.
struct Slow(TcpStream);

impl Read for Slow {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_micros(300));
        self.0.write(&bytes[..bytes.len().min(7)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn slow_client_is_served() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P384);
    let client = Client::trusting(&certificate.root).groups(&[kx_group::X25519]).build();
    let outcome = same_as_stock(&full(&certificate), |address| {
        let get = |_| client.get_over(Slow(connect(address))).map(|answer| answer.body);
        (0..ROUNDS).map(get).collect::<Vec<_>>()
    });
    assert!(outcome.iter().all(|answer| answer.as_deref() == Ok("It works.")), "{outcome:?}");
}
