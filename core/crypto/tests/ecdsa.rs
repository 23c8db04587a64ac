//! Signatures from prepared nonces, against OpenSSL.

mod support;

use hasten_crypto::{Curve, EcdsaSignature, NoncePool};
use openssl::ecdsa::EcdsaSig;

use crate::support::{ec_key, engine, random};

#[test]
fn openssl_verifies_signatures_of_several_keys_from_one_pool() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for curve in [Curve::P256, Curve::P384] {
        let mut pool = NoncePool::new(curve).unwrap();
        let keys: Vec<_> = (0..3).map(|_| ec_key(curve)).collect();
        assert_eq!(pool.refill(ifma, &mut scratch, &mut random), 8);
        assert!(scratch.is_zero());
        for i in 0..8 {
            let (host, key) = &keys[i % 3];
            let mut digest = [0; 64];
            random(&mut digest);
            let digest = &digest[..[20, 28, 32, 48, 64][i % 5]];
            let signature = pool.sign(key, digest).unwrap();
            let mut der = [0; EcdsaSignature::MAX_DER];
            let length = signature.to_der(&mut der).unwrap();
            let parsed = EcdsaSig::from_der(&der[..length]).unwrap();
            assert!(parsed.verify(digest, host).unwrap(), "{curve:?} signature {i}");
            assert_eq!(parsed.to_der().unwrap(), &der[..length], "DER is minimal");
        }
        assert!(pool.sign(&keys[0].1, &[1; 32]).is_none(), "the pool is empty");
    }
}
