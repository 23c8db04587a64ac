//! Bytes that are not a hello, or not quite one.

use std::net::TcpStream;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::hello::{Dripping, Reaction, fragmented, react, with_key_share};
use hasten_tests::pki::Pki;
use hasten_tests::{parallel, same_as_stock};
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;

#[test]
fn nginx_answers_garbage_as_it_always_did() {
    answers_garbage_as_it_always_did(ServerKind::Nginx);
}

#[test]
fn haproxy_answers_garbage_as_it_always_did() {
    answers_garbage_as_it_always_did(ServerKind::Haproxy);
}

fn answers_garbage_as_it_always_did(kind: ServerKind) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let hello = Client::trusting(&certificate.root).build().hello();
    let attacks: Vec<_> =
        garbage(&hello).into_iter().chain(flipped(&hello)).chain(truncated(&hello)).collect();
    let reactions = same_as_stock(&ServerSpec::new(kind, certificate), |server| {
        let attack = |number: usize| react(server.address(), &attacks[number % attacks.len()]);
        server.under_load(|| parallel::repeat(4, attacks.len().div_ceil(4), attack))
    });
    assert!(reactions.contains(&Reaction::Handshake), "some flipped bits do no harm");
    assert!(reactions.iter().any(|reaction| matches!(reaction, Reaction::Alert(_))), "others do");
}

#[test]
fn nginx_refuses_bad_key_shares_beside_good_ones() {
    refuses_bad_key_shares_beside_good_ones(ServerKind::Nginx);
}

#[test]
fn haproxy_refuses_bad_key_shares_beside_good_ones() {
    refuses_bad_key_shares_beside_good_ones(ServerKind::Haproxy);
}

/// The other lanes of a batch belong to other clients' handshakes: one bad point must neither spoil them nor
/// be accepted.
fn refuses_bad_key_shares_beside_good_ones(kind: ServerKind) {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let mut attacks = Vec::new();
    for (group, id, len) in
        [(kx_group::X25519, 0x1d_u16, 32), (kx_group::SECP256R1, 0x17, 65), (kx_group::SECP384R1, 0x18, 97)]
    {
        let hello = Client::trusting(&certificate.root).groups(&[group]).build().hello();
        attacks.extend(bad_shares(len).into_iter().map(|share| with_key_share(&hello, id, len, &share)));
    }
    let reactions = same_as_stock(&ServerSpec::new(kind, certificate), |server| {
        let attack = |number: usize| react(server.address(), &attacks[number % attacks.len()]);
        server.under_load(|| parallel::repeat(4, attacks.len(), attack))
    });
    assert!(reactions.iter().any(|reaction| matches!(reaction, Reaction::Alert(_))));
}

/// Points of small order, off the curve, at infinity, beyond the field, and of the wrong form.
fn bad_shares(len: usize) -> Vec<Vec<u8>> {
    let filled = |first: u8, rest: u8| [&[first][..], &vec![rest; len - 1]].concat();
    let mut one = vec![0; len];
    one[0] = 1;
    // An X25519 point of order eight.
    let mut small = vec![0; len];
    small[..32].copy_from_slice(&[
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ]);
    let shares =
        [filled(0, 0), one, small, filled(4, 0), filled(4, 0xff), filled(4, 7), filled(2, 7), filled(6, 7)];
    // Off the curve; for X25519, the numbers p, p + 1 and the largest.
    let near = [0xed_u8, 0xee, 0xff].map(|low| {
        let mut number = vec![0xff; len];
        number[0] = low;
        number[len - 1] = 0x7f;
        number
    });
    shares.into_iter().chain(near).collect()
}

fn garbage(hello: &[u8]) -> Vec<Vec<u8>> {
    let mut noise = vec![0; 600];
    let mut state = 1_u32;
    noise.fill_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let record = |kind: u8, payload: &[u8]| {
        [&[kind, 3, 1][..], &u16::try_from(payload.len()).unwrap().to_be_bytes(), payload].concat()
    };
    vec![
        Vec::new(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        noise.clone(),
        record(22, &noise[..500]),
        record(22, &[]),
        record(23, &noise[..64]),
        record(21, &[2, 40]),
        record(21, &[1, 0]),
        record(20, &[1]),
        // An SSLv2 hello.
        [&[0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10][..], &noise[..37]].concat(),
        // Longer than a record may be.
        [&[22, 3, 1, 0x48, 1][..], &noise].concat(),
        // A handshake message that announces 16 MiB.
        record(22, &[1, 0xff, 0xff, 0xff, 3, 3]),
        // Two hellos; a hello and something else in one record.
        [hello, hello].concat(),
        record(22, &[&hello[5..], &noise[..20]].concat()),
        // A server's message instead.
        record(22, &[&[2], &hello[6..]].concat()),
        [hello, &record(23, &noise[..100])].concat(),
    ]
}

/// The hello with one bit wrong, at positions all over it.
fn flipped(hello: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..hello.len() * 8).step_by(11).map(|bit| {
        let mut wrong = hello.to_vec();
        wrong[bit / 8] ^= 1 << (bit % 8);
        wrong
    })
}

/// Truncated hellos, with lengths that promise more, or that do not.
fn truncated(hello: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..hello.len()).step_by(7).map(|len| hello[..len].to_vec());
    let shortened = (10..hello.len()).step_by(9).map(|len| {
        let mut record = hello[..len].to_vec();
        record[3..5].copy_from_slice(&u16::try_from(len - 5).unwrap().to_be_bytes());
        record
    });
    cut.chain(shortened)
}

#[test]
fn hellos_in_small_pieces_are_understood() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let client = Client::trusting(&certificate.root).build();
    for kind in ServerKind::ALL {
        same_as_stock(&ServerSpec::new(kind, certificate.clone()), |server| {
            server.under_load(|| {
                let hello = client.hello();
                let pieces = [1, 7, 100].map(|size| react(server.address(), &fragmented(&hello, size)));
                let drip = |_| {
                    let socket = TcpStream::connect(server.address()).expect("the server accepts");
                    socket.set_nodelay(true).unwrap();
                    client.get_over(Dripping(socket)).map(|answer| answer.body)
                };
                (pieces, parallel::repeat(4, 4, drip))
            })
        });
    }
}

/// The client's first share is for a group that the server does not want: it requests another.
#[test]
fn a_hello_retry_is_followed() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let groups: &[&dyn SupportedKxGroup] = &[kx_group::SECP384R1, kx_group::X25519];
    let lines = [(ServerKind::Nginx, "ssl_ecdh_curve X25519;"), (ServerKind::Haproxy, "curves X25519")];
    for (kind, lines) in lines {
        let spec = ServerSpec::new(kind, certificate.clone()).server_lines(lines);
        let answers = same_as_stock(&spec, |server| {
            let get = |_| {
                let client = Client::trusting(&certificate.root).groups(groups).build();
                client.get(server.address()).map(|answer| (answer.handshake, answer.body))
            };
            server.under_load(|| parallel::repeat(8, 8, get))
        });
        for answer in answers {
            assert_eq!(answer.unwrap().0, rustls::HandshakeKind::FullWithHelloRetryRequest);
        }
    }
}
