//! Keys and algorithms that appear, disappear, and change while handshakes use them.

use hasten_telemetry::{Algorithm, Counters, Event};
use hasten_tests::lanes;
use hasten_tests::program::{EVERY_BATCH, NO_SHORTCUTS, Program};

/// Enough of these. There are no pools to take keys from without lanes, and no batches.
fn is_enough(count: u64, expected: u64) -> bool {
    count >= expected || !lanes::exist()
}

fn same_as_stock(what: &str) -> Counters {
    let program = Program::named("keys");
    let counters = program.same_as_stock(&[what], &[EVERY_BATCH]);
    let _ = program.same_as_stock(&[what], &[NO_SHORTCUTS]);
    counters
}

#[test]
fn hundreds_one_after_the_other() {
    let counters = same_as_stock("many");
    let signed = [Algorithm::P256Sign, Algorithm::P384Sign].map(|algorithm| counters[algorithm].batched);
    assert_eq!(signed, if lanes::exist() { [480, 240] } else { [0, 0] });
}

#[test]
fn hundreds_at_once() {
    assert_eq!(same_as_stock("many-at-once")[Event::HandshakeFinished], 334);
}

#[test]
fn a_copy_of_a_key_is_a_key_of_its_own() {
    assert!(is_enough(same_as_stock("copied")[Algorithm::P256Sign].batched, 1));
}

#[test]
fn a_server_may_look_at_its_half_of_the_exchange() {
    for what in ["temporary", "temporary-kept", "temporary-copied"] {
        assert!(is_enough(same_as_stock(what)[Event::PoolHit], 48), "{what}");
    }
}

/// libssl keeps it until the SSL ends, in TLS 1.3.
#[test]
fn its_half_of_the_exchange_is_complete_afterwards() {
    assert!(is_enough(same_as_stock("halves")[Event::PoolHit], 12));
}

#[test]
fn a_server_may_derive_keys_in_a_callback() {
    // libssl's, of both sides, and not the callback's own.
    assert_eq!(same_as_stock("computed")[Event::MacDirect], 8);
}

#[test]
fn a_library_context_of_its_own_is_left_alone() {
    assert_eq!(same_as_stock("own-context").total().scalar, 0);
}

/// Four handshakes before, none after, while all twelve succeed.
#[test]
fn reconfiguring_openssl_stops_the_shortcuts() {
    for what in ["provider-load", "provider-try-load", "properties", "fips"] {
        let counters = same_as_stock(what);
        // Work that the default provider no longer does is not even counted.
        let counted = if what == "fips" { 4 } else { 12 };
        assert_eq!(counters[Event::HandshakeFinished], counted, "{what}");
        // A key for each side.
        assert_eq!(counters[Event::PoolHit], if lanes::exist() { 8 } else { 0 }, "{what}");
    }
}
