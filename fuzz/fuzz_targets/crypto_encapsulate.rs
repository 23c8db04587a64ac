//! A client's encapsulation key may be any bytes: accepted ones give the same secret each time, others none.

#![no_main]

use hasten_crypto::{LaneEngine, ML_KEM_CIPHERTEXT, ML_KEM_KEY, Single};
use libfuzzer_sys::fuzz_target;

/// The modulus of ML-KEM's coefficients, which have 12 bits each.
const MODULUS: u16 = 3329;
const COEFFICIENTS: usize = 1152;

fuzz_target!(|data: &[u8]| {
    let Some(scalar) = Single::detect() else { return };
    let Some(key) = data.first_chunk::<ML_KEM_KEY>() else { return };
    let in_range = key[..COEFFICIENTS].chunks_exact(3).all(|three| {
        let (low, middle, high) = (u16::from(three[0]), u16::from(three[1]), u16::from(three[2]));
        (low | (middle & 15) << 8) < MODULUS && (middle >> 4 | high << 4) < MODULUS
    });
    assert_eq!(scalar.is_ml_kem_key(key), in_range);
    let encapsulate = || {
        let (mut message, mut ciphertext, mut secret) = ([7; 32], [0; ML_KEM_CIPHERTEXT], [0; 32]);
        let done = scalar.ml_kem_encapsulate(key, &mut message, &mut ciphertext, &mut secret);
        assert_eq!((done, message), (in_range, [0; 32]));
        (ciphertext, secret)
    };
    assert!(encapsulate() == encapsulate());
});
