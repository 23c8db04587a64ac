//! Handshakes with the OpenSSL of other releases: Ubuntu's 3.0 and 3.5, which are built with flags of their own.

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{Group, Protocol};
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::guest::{Guest, load};
use hasten_tests::hello::{Reaction, react, with_key_share};
use hasten_tests::image::Image;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{assert_perfect, batched};
use hasten_tests::traffic::Traffic;
use hasten_tests::wait;
use rustls::crypto::aws_lc_rs::kx_group;

const HYBRID: &str = "ubuntu-26.04";

#[test]
fn nginx_of_each_release_is_batched_by_every_group_and_protocol() {
    let pki = Pki::new();
    let images = Image::all().into_iter().filter(|image| image.has("libssl.so.3"));
    let names: Vec<_> = images.map(|image| image.name).collect();
    assert!(!names.is_empty(), "an image with nginx");
    for name in names {
        for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384] {
            let image = Image::named(&name).unwrap();
            let guest = Guest::accelerated(image, &pki.certificate(kind));
            for (group, protocol) in [
                (Group::X25519, Protocol::Tls13),
                (Group::P256, Protocol::Tls12),
                (Group::P384, Protocol::Tls13),
            ] {
                let (_, counters) = guest.drive_well(&load(group, protocol));
                // The trial found nothing amiss: the key schedule is not OpenSSL's.
                assert!(
                    counters[Event::HkdfDirect] > 0 && counters[Event::MacDirect] > 0,
                    "{}",
                    guest.name()
                );
            }
            assert!(batched(&guest.counters()) > 0, "{} with {kind}", guest.name());
        }
    }
}

/// The image, unless this network lacks its packages.
fn with_hybrid() -> Option<Image> {
    assert!(!Image::all().is_empty(), "no image at all");
    Image::named(HYBRID)
}

#[test]
fn hybrid_exchanges_are_batched_where_openssl_has_them() {
    let Some(image) = with_hybrid() else { return };
    let pki = Pki::new();
    let guest = Guest::accelerated(image, &pki.certificate(KeyKind::P256));
    let (handshakes, counters) = guest.drive_well(&load(Group::X25519MlKem768, Protocol::Tls13));
    let hybrid = counters[Event::HybridExchange];
    // All but the first of each connection, and those that OpenSSL did before the trial.
    assert!(hybrid > handshakes / 2, "{hybrid} of {handshakes}");
}

/// Coefficients out of range, an X25519 point of small order, both, and shares of other lengths.
fn bad_shares(good: &[u8]) -> Vec<Vec<u8>> {
    let (key, point) = good.split_at(ML_KEM_KEY);
    let out_of_range = |at: usize| {
        let mut key = key.to_vec();
        key[at..at + 3].copy_from_slice(&[0xff; 3]);
        key
    };
    let zero = vec![0; point.len()];
    let wrong_keys = [0, 3, ML_KEM_KEY - 32 - 3].map(|at| [&out_of_range(at), point].concat());
    let lengths = [0, 1, 32, ML_KEM_KEY, SHARE - 1].map(|length| good[..length].to_vec());
    let mut shares: Vec<_> = wrong_keys.into_iter().chain(lengths).collect();
    shares.extend([[key, &zero].concat(), [&out_of_range(0), &zero[..]].concat(), [good, &[0]].concat()]);
    // Any 32 bytes are a point, and any seed gives a matrix: these two are no worse than the client's own.
    shares.extend([[key, &[9; 32]].concat(), [&key[..ML_KEM_KEY - 32], &[7; 32], point].concat()]);
    shares
}

const ML_KEM_KEY: usize = 1184;
const SHARE: usize = ML_KEM_KEY + 32;

#[test]
fn bad_hybrid_shares_are_refused_as_by_openssl_beside_good_ones() {
    const X25519_ML_KEM_768: u16 = 0x11ec;
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let hello = Client::trusting(&certificate.root).groups(&[kx_group::X25519MLKEM768]).build().hello();
    let header = [X25519_ML_KEM_768.to_be_bytes(), (SHARE as u16).to_be_bytes()].concat();
    let at = hello.windows(4).position(|window| window == header).unwrap() + 4;
    let shares = bad_shares(&hello[at..at + SHARE]);
    let hellos: Vec<_> =
        shares.iter().map(|share| with_key_share(&hello, X25519_ML_KEM_768, SHARE, share)).collect();
    let reactions = |guest: &Guest| -> Vec<Reaction> {
        hellos.iter().map(|hello| react(guest.target().address, hello)).collect()
    };
    let (Some(image), Some(other)) = (with_hybrid(), with_hybrid()) else { return };
    let expected = reactions(&Guest::stock(image, &certificate));
    let guest = Guest::accelerated(other, &certificate);
    let traffic = Traffic::start(guest.target(), &load(Group::X25519MlKem768, Protocol::Tls13));
    wait::until("a hybrid exchange", || guest.counters()[Event::HybridExchange] > 0);
    for _ in 0..4 {
        assert_eq!(reactions(&guest), expected, "accelerated (left) and stock\n{}", guest.log());
    }
    assert_perfect(&traffic.stop(), &guest.log());
    let alerts = expected.iter().filter(|reaction| matches!(reaction, Reaction::Alert(_))).count();
    assert_eq!(alerts, shares.len() - 2, "{expected:?}");
}
