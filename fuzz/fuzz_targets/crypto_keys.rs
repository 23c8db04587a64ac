//! The numbers of a key come from a host library that may have read them from anywhere.

#![no_main]

use hasten_crypto::{Curve, EcKey, RsaKey, RsaParts};
use libfuzzer_sys::fuzz_target;
use openssl::bn::{BigNum, BigNumContext};

fuzz_target!(|parts: [Vec<u8>; 7]| {
    let [n, e, p, q, dp, dq, qinv] = &parts;
    if let Ok(key) = RsaKey::new(&RsaParts { n, e, p, q, dp, dq, qinv }) {
        let [n, p, q] = [n, p, q].map(|bytes| number(bytes));
        let mut product = BigNum::new().unwrap();
        product.checked_mul(&p, &q, &mut BigNumContext::new().unwrap()).unwrap();
        assert_eq!(product, n);
        assert_eq!(n.num_bits() as usize, key.size().bits());
    }
    for curve in [Curve::P256, Curve::P384] {
        if EcKey::new(curve, n).is_ok() {
            let scalar = number(n);
            assert!(scalar.num_bits() > 0 && scalar.num_bits() as usize <= curve.bytes() * 8);
        }
    }
});

fn number(little_endian: &[u8]) -> BigNum {
    let big_endian: Vec<u8> = little_endian.iter().rev().copied().collect();
    BigNum::from_slice(&big_endian).unwrap()
}
