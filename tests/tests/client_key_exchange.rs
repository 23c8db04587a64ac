//! The client's half of a TLS 1.2 key exchange, made up: the server accepts and rejects exactly what it did before.
//!
//! It is in plain text, so a client needs no cryptography to send arbitrary bytes. Valid input gets no answer,
//! because the server waits for the rest; invalid input gets an alert.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::hello::{Reaction, reaction};
use hasten_tests::pki::Pki;
use hasten_tests::{parallel, same_as_stock};
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::version::TLS12;

/// The base point of P-256.
const P256_X: &str = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296";
const P256_Y: &str = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
/// The base point of P-384.
const P384_X: &str =
    "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7";
const P384_Y: &str =
    "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f";

#[test]
fn x25519() {
    let mut points = lengths(32);
    // The base point, points of small order, and numbers that are not reduced.
    points.extend([9, 0, 1].map(|low| [&[low][..], &[0; 31]].concat()));
    points.extend([0xec, 0xed, 0xee, 0xff].map(|low| [&[low][..], &[0xff; 30], &[0x7f]].concat()));
    points.extend([0xda, 0xff].map(|low| [&[low][..], &[0xff; 31]].concat()));
    same_reactions(kx_group::X25519, &points);
}

#[test]
fn p256() {
    same_reactions(kx_group::SECP256R1, &encodings(P256_X, P256_Y));
}

#[test]
fn p384() {
    same_reactions(kx_group::SECP384R1, &encodings(P384_X, P384_Y));
}

fn same_reactions(group: &'static dyn SupportedKxGroup, points: &[Vec<u8>]) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let hello = Client::trusting(&certificate.root).only(&TLS12).groups(&[group]).build().hello();
    let spec = ServerSpec::new(ServerKind::Nginx, certificate);
    let spec = spec.server_lines("ssl_ecdh_curve X25519:P-256:P-384;");
    let reactions = same_as_stock(&spec, |server| {
        let send = |number: usize| {
            let point = &points[number % points.len()];
            (point.clone(), exchange(server.address(), &hello, point))
        };
        server.under_load(|| parallel::repeat(4, points.len(), send))
    });
    assert!(reactions.iter().any(|(_, reaction)| *reaction == Reaction::Closed), "some are good");
    assert!(reactions.iter().any(|(_, reaction)| matches!(reaction, Reaction::Alert(_))), "some are bad");
}

/// Performs the handshake up to the client's half, sends that, and returns the reaction.
fn exchange(address: SocketAddr, hello: &[u8], point: &[u8]) -> Reaction {
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(hello).expect("the server reads");
    skip_to_hello_done(&mut socket);
    let body = [&[u8::try_from(point.len()).unwrap()], point].concat();
    let message = [&[16, 0][..], &u16::try_from(body.len()).unwrap().to_be_bytes(), &body].concat();
    let record = [&[22, 3, 3][..], &u16::try_from(message.len()).unwrap().to_be_bytes(), &message].concat();
    socket.write_all(&record).expect("the server reads");
    let _ = socket.shutdown(Shutdown::Write);
    reaction(&mut socket)
}

fn skip_to_hello_done(socket: &mut TcpStream) {
    const HELLO_DONE: [u8; 4] = [14, 0, 0, 0];
    let mut messages = Vec::new();
    while !messages.ends_with(&HELLO_DONE) {
        let mut header = [0; 5];
        socket.read_exact(&mut header).expect("a record");
        assert_eq!(header[0], 22, "the server goes on with the handshake");
        let mut record = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        socket.read_exact(&mut record).expect("a whole record");
        messages.extend(record);
    }
}

/// No bytes, and one byte too few and too many.
fn lengths(right: usize) -> Vec<Vec<u8>> {
    [0, 1, right - 1, right + 1, 255].map(|length| vec![7; length]).to_vec()
}

/// One good point in every existing form, and in some that do not exist.
fn encodings(x: &str, y: &str) -> Vec<Vec<u8>> {
    let (x, y) = (bytes(x), bytes(y));
    let negative = y[y.len() - 1] & 1;
    let form = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
    let mut off = y.clone();
    off[3] ^= 1;
    let beyond = vec![0xff; x.len()];
    let mut points = lengths(1 + 2 * x.len());
    points.extend([
        form(4, &[&x, &y]),
        form(2 + negative, &[&x]),
        form(3 - negative, &[&x]),
        form(6 + negative, &[&x, &y]),
        form(7 - negative, &[&x, &y]),
        form(4, &[&x, &off]),
        form(4, &[&beyond, &y]),
        form(2, &[&beyond]),
        form(4, &[&y, &x]),
        form(5, &[&x, &y]),
        vec![0],
        vec![0; 1 + 2 * x.len()],
    ]);
    points
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
