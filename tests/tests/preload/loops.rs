//! Event loops of every style: handshakes are suspended only where the server will come back to them.

use hasten_telemetry::{Algorithm, Counters, Event, Reason};
use hasten_tests::lanes;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program, SUSPEND_ONLY};

/// All in TLS 1.3, and TLS 1.2 in passing: the latter with every handshake suspended and none batched.
fn counters(style: &str, key: &str) -> [Counters; 2] {
    counters_of(&Program::named("loop"), style, key)
}

fn counters_of(server: &Program, style: &str, key: &str) -> [Counters; 2] {
    let stock = server.stock(&[style, key, "1.3"]).succeeded();
    let eager = server.preloaded(&[style, key, "1.3"], &[EAGER, EVERY_BATCH]).succeeded();
    let suspended = server.preloaded(&[style, key, "1.2"], &[EAGER, SUSPEND_ONLY]).succeeded();
    assert_eq!(stock.output, ["served 64, failed 0, errors left 0"]);
    assert_eq!([&eager.output, &suspended.output], [&stock.output; 2]);
    [eager.counters, suspended.counters]
}

/// This style's handshakes are suspended, except for the first few, which show how the server waits.
fn suspends(style: &str) {
    are_suspended(style, &counters(style, "rsa-2048"));
}

/// The same for a known server.
fn suspends_if_proven(style: &str) {
    are_suspended(style, &counters_of(&Program::named("loop").proven(), style, "rsa-2048"));
}

fn are_suspended(style: &str, [eager, suspend_only]: &[Counters; 2]) {
    for counters in [eager, suspend_only] {
        let [suspended, least] = [counters[Event::Suspended], if lanes::exist() { 60 } else { 30 }];
        assert!(suspended > least, "{style}: only {suspended}");
        assert_eq!(counters[Event::Resumed], counters[Event::Suspended]);
        assert_eq!(counters[Event::HandshakeFinished], 64);
    }
    if lanes::exist() {
        assert!(eager[Algorithm::Rsa2048Sign].batched > 30 && eager[Algorithm::X25519Derive].batched > 30);
    }
    assert_eq!(suspend_only[Algorithm::Rsa2048Sign].batched, 0);
}

/// The server would not, or not certainly, come back to a suspended handshake.
fn does_not_suspend(style: &str) {
    for counters in counters(style, "rsa-2048") {
        assert_eq!(counters[Event::Suspended], 0, "{style}");
        assert_eq!(counters[Event::SyntheticWakeups], 0, "{style}");
    }
}

macro_rules! styles {
    ($($what:ident: $($name:ident => $style:literal)+;)+) => {
        $($(#[test] fn $name() { $what($style) })+)+
    };
}

styles! {
    suspends:
        level_triggered => "level"
        edge_triggered => "edge"
        registered_for_one_direction => "one-direction"
        ssl_accept_and_plain_accept => "accept"
        early_data_function => "early-data"
        epoll_pwait => "pwait"
        takes_no_notice_at_first => "ignores"
        one_event_at_a_time => "small-batches"
        a_new_epoll_instance_under_the_same_number => "reopens";
    suspends_if_proven:
        registered_when_it_has_to_wait => "late"
        a_bio_of_its_own => "own-bio";
    does_not_suspend:
        a_bio_of_its_own_in_a_server_that_nobody_knows => "own-bio"
        oneshot => "oneshot"
        late_oneshot => "late-oneshot"
        no_handshake_function_at_all => "read-only"
        asleep_in_poll => "asleep-in-poll"
        one_epoll_inside_another => "nested"
        again_and_again_until_it_is_done => "impatient"
        waits_for_the_one_connection_on_the_spot => "polls-inside";
}

#[test]
fn a_loop_for_each_thread() {
    let server = Program::named("loop");
    let counters = server.same_as_stock(&["edge", "p-256", "1.3", "4"], &[EAGER, EVERY_BATCH]);
    let least = if lanes::exist() { 30 } else { 15 };
    assert!(counters[Event::Suspended] > 4 * least, "{}", counters[Event::Suspended]);
}

#[test]
fn without_company_nothing_waits() {
    let counters = Program::named("suspended").same_as_stock(&["ordinary"], &[EVERY_BATCH]);
    assert_eq!(counters[Event::Suspended], 0);
}

/// What the engine does for a kind of key: sign, or leave it to OpenSSL.
fn signs(key: &str, algorithm: Option<Algorithm>) {
    if lanes::are_missing() {
        return;
    }
    for counters in counters("edge", key) {
        for rsa in [Algorithm::Rsa2048Sign, Algorithm::Rsa3072Sign, Algorithm::Rsa4096Sign] {
            let signed = counters[rsa].queued();
            assert_eq!(signed >= 60, Some(rsa) == algorithm, "{key}: {rsa} {signed}");
        }
        // The key exchange does not depend on the certificate. Those of the clients are counted from their trial on.
        let derived = counters[Algorithm::X25519Derive].queued();
        assert!((64..=128).contains(&derived), "{key}: {derived}");
    }
}

#[test]
fn rsa_keys_of_usual_sizes() {
    signs("rsa-3072", Some(Algorithm::Rsa3072Sign));
    signs("rsa-4096", Some(Algorithm::Rsa4096Sign));
}

#[test]
fn keys_that_the_engine_does_not_have() {
    for key in ["rsa-2056", "rsa-e3", "rsa-three-primes", "rsa-pss", "p-521", "ed25519", "ed448"] {
        signs(key, None);
    }
}

/// A damaged key is left to OpenSSL, which signs another way.
#[test]
fn a_key_with_a_wrong_exponent() {
    let [eager, _] = counters("edge", "rsa-bad-crt");
    assert_eq!((eager[Algorithm::Rsa2048Sign].batched, eager[Event::VerifyFailed]), (0, 0));
    assert!(eager[Reason::UnsupportedKey] > 30, "{}", eager[Reason::UnsupportedKey]);
}

/// The engine's result does not verify and is not released; OpenSSL's, made another way, is. Lanes are not used after
/// that.
#[test]
fn a_key_whose_signatures_do_not_verify() {
    if lanes::are_missing() {
        return;
    }
    let [eager, _] = counters("edge", "rsa-composite");
    let rsa = eager[Algorithm::Rsa2048Sign];
    assert!(eager[Event::VerifyFailed] > 0 && rsa.failed >= rsa.batched && rsa.single == 0, "{rsa:?}");
    assert_eq!(eager[Event::BreakerOpened], 1);
    assert!(eager[Reason::BreakerOpen] > 0);
}
