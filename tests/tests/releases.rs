//! Handshakes with the OpenSSL of other releases: Ubuntu's 3.0 and 3.5, which are built with flags of their own.

use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{self, Group, Load, Protocol};
use hasten_telemetry::{Counters, Event};
use hasten_tests::guest::Guest;
use hasten_tests::image::Image;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{assert_perfect, batched, crowd};

const HYBRID: &str = "ubuntu-26.04";

/// Drives it until at least this many handshakes are done; their counters.
fn drive_well(guest: &Guest, load: &Load) -> (u64, Counters) {
    const ENOUGH: u64 = 300;
    let before = guest.counters();
    let mut handshakes = 0;
    while handshakes < ENOUGH {
        let outcome = drive::run(guest.target(), load).unwrap();
        assert_perfect(&outcome, &guest.log());
        handshakes += outcome.ops;
    }
    let after = guest.counters();
    // Where the original functions are fast and the machine is idle, groups are often too small to pay.
    let batched = batched(&after) - batched(&before);
    assert!(batched > handshakes / 20, "{}: {batched} in {handshakes} handshakes by {load:?}", guest.name());
    (handshakes, after)
}

fn load(group: Group, protocol: Protocol) -> Load {
    Load { duration: Duration::from_millis(500), group, protocol, ..crowd() }
}

#[test]
fn nginx_of_each_release_is_batched_by_every_group_and_protocol() {
    let pki = Pki::new();
    let images = Image::all().into_iter().filter(|image| image.has("libssl.so.3"));
    let names: Vec<_> = images.map(|image| image.name).collect();
    assert!(!names.is_empty(), "an image with nginx");
    for name in names {
        for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384] {
            let image = Image::named(&name).unwrap();
            let guest = Guest::start(image, &pki.certificate(kind), &[]);
            for (group, protocol) in [
                (Group::X25519, Protocol::Tls13),
                (Group::P256, Protocol::Tls12),
                (Group::P384, Protocol::Tls13),
            ] {
                let (_, counters) = drive_well(&guest, &load(group, protocol));
                // The trial found nothing amiss: the key schedule is not OpenSSL's.
                assert!(
                    counters[Event::HkdfDirect] > 0 && counters[Event::MacDirect] > 0,
                    "{}",
                    guest.name()
                );
            }
        }
    }
}

#[test]
fn hybrid_exchanges_are_batched_where_openssl_has_them() {
    let Some(image) = Image::named(HYBRID) else {
        assert!(!Image::all().is_empty(), "no image at all");
        return;
    };
    let pki = Pki::new();
    let guest = Guest::start(image, &pki.certificate(KeyKind::P256), &[]);
    let (handshakes, counters) = drive_well(&guest, &load(Group::X25519MlKem768, Protocol::Tls13));
    let hybrid = counters[Event::HybridExchange];
    // All but the first of each connection, and those that OpenSSL did before the trial.
    assert!(hybrid > handshakes / 2, "{hybrid} of {handshakes}");
}
