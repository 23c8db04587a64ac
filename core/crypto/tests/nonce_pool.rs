//! Signatures from prepared nonces, against OpenSSL and the vectors of RFC 6979.

mod support;

use std::collections::HashSet;

use hasten_crypto::{Curve, EcKey, EcdsaSignature, Group, LANES, NoncePool, UnsupportedKey};
use openssl::bn::BigNum;
use openssl::ec::EcKey as HostEcKey;
use openssl::ecdsa::EcdsaSig;
use openssl::pkey::Private;
use proptest::prelude::*;

use crate::support::{ec_key, engine, host_key, little_endian, random};

const CURVES: [Curve; 2] = [Curve::P256, Curve::P384];

fn order(curve: Curve) -> BigNum {
    BigNum::from_hex_str(match curve {
        Curve::P256 => "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
        Curve::P384 => {
            "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"
        }
    })
    .unwrap()
}

fn der(signature: &EcdsaSignature) -> Vec<u8> {
    let mut out = [0; EcdsaSignature::MAX_DER];
    let length = signature.to_der(&mut out).unwrap();
    out[..length].to_vec()
}

fn verifies(host: &HostEcKey<Private>, digest: &[u8], signature: &EcdsaSignature) -> bool {
    EcdsaSig::from_der(&der(signature)).unwrap().verify(digest, host).unwrap()
}

/// A random source that hands out the given scalars, in the engine's byte order, over and over.
fn fixed(scalars: Vec<BigNum>, bytes: usize) -> impl FnMut(&mut [u8]) -> bool {
    let mut turn = 0;
    move |out: &mut [u8]| {
        assert_eq!(out.len(), bytes);
        out.copy_from_slice(&scalars[turn % scalars.len()].to_vec_padded(bytes as i32).unwrap());
        out.reverse();
        turn += 1;
        true
    }
}

#[test]
fn openssl_verifies_signatures_of_several_keys_from_one_pool() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for curve in CURVES {
        let mut pool = NoncePool::new(curve).unwrap();
        let keys: Vec<_> = (0..3).map(|_| ec_key(curve)).collect();
        assert_eq!(pool.refill(ifma, &mut scratch, &mut random), LANES);
        assert!(scratch.is_zero());
        for i in 0..LANES {
            let (host, key) = &keys[i % 3];
            let mut digest = [0; 64];
            random(&mut digest);
            let digest = &digest[..[20, 28, 32, 48, 64][i % 5]];
            let signature = pool.sign(key, digest).unwrap();
            assert!(verifies(host, digest, &signature), "{curve:?} signature {i}");
            assert_eq!(pool.available(), LANES - 1 - i);
        }
        assert!(pool.sign(&keys[0].1, &[1; 32]).is_none(), "the pool is empty");
    }
}

/// RFC 6979, appendices A.2.5 and A.2.6, message "sample", hash of the curve's size.
#[test]
fn known_nonces_give_the_known_signatures() {
    let Some((ifma, mut scratch)) = engine() else { return };
    let vectors = [
        (
            Curve::P256,
            "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721",
            "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60",
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
            openssl::sha::sha256(b"sample").to_vec(),
        ),
        (
            Curve::P384,
            "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5",
            "94ED910D1A099DAD3254E9242AE85ABDE4BA15168EAF0CA87A555FD56D10FBCA2907E3E83BA95368623B8C4686915CF9",
            "94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA73D64C4EA95AD133C81A648152E44ACF96E36DD1E80FABE46",
            "99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526203B6351D0A3A94FA329C145786E679E7B82C71A38628AC8",
            openssl::sha::sha384(b"sample").to_vec(),
        ),
    ];
    for (curve, scalar, nonce, r, s, digest) in vectors {
        let number = |hex| BigNum::from_hex_str(hex).unwrap();
        let key = EcKey::new(curve, &little_endian(&number(scalar))).unwrap();
        let mut pool = NoncePool::new(curve).unwrap();
        pool.refill(ifma, &mut scratch, &mut fixed(vec![number(nonce)], curve.bytes()));
        let signature = pool.sign(&key, &digest).unwrap();
        assert_eq!(signature.r(), number(r).to_vec());
        assert_eq!(signature.s(), number(s).to_vec());
    }
}

/// Keys, nonces and digests at the ends of their ranges; digests may be above the order.
#[test]
fn edges_of_the_ranges() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for curve in CURVES {
        let below_order = |distance| {
            let mut number = order(curve);
            number.sub_word(distance).unwrap();
            number
        };
        let small = |value| BigNum::from_u32(value).unwrap();
        for scalar in [small(1), small(2), below_order(1)] {
            let key = EcKey::new(curve, &little_endian(&scalar)).unwrap();
            let group = if curve == Curve::P256 { Group::P256 } else { Group::P384 };
            let scalar = scalar.to_vec_padded(curve.bytes() as i32).unwrap();
            let host = host_key(group, &scalar).ec_key().unwrap();
            let mut pool = NoncePool::new(curve).unwrap();
            let nonces = (1..=16).flat_map(|i| [small(i), below_order(i)]).collect();
            let mut nonces = fixed(nonces, curve.bytes());
            while pool.refill(ifma, &mut scratch, &mut nonces) > 0 {}
            for byte in [0xff, 0, 1, 0x80].into_iter().cycle().take(pool.available()) {
                let digest = vec![byte; curve.bytes()];
                // The nonce may be the one that makes s zero; then there is no signature to check.
                if let Some(signature) = pool.sign(&key, &digest) {
                    assert!(verifies(&host, &digest, &signature), "{curve:?} {scalar:02x?} {digest:02x?}");
                }
            }
        }
    }
}

#[test]
fn nonces_come_from_the_right_range_and_from_nowhere_else() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for curve in CURVES {
        let zero = BigNum::new().unwrap();
        let one = BigNum::from_u32(1).unwrap();
        let mut above = order(curve);
        above.add_word(1).unwrap();
        let mut pool = NoncePool::new(curve).unwrap();
        // Only every fourth draw is in range.
        let draws = vec![zero.to_owned().unwrap(), order(curve), above, one];
        assert_eq!(pool.refill(ifma, &mut scratch, &mut fixed(draws, curve.bytes())), LANES);
        let (_, key) = ec_key(curve);
        let generator_x = match curve {
            Curve::P256 => "6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296",
            Curve::P384 => {
                "AA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7"
            }
        };
        let signature = pool.sign(&key, &[7; 32]).unwrap();
        assert_eq!(signature.r(), BigNum::from_hex_str(generator_x).unwrap().to_vec(), "1·G");
        pool.clear();

        assert_eq!(pool.refill(ifma, &mut scratch, &mut |_| false), 0, "no randomness, no nonce");
        assert_eq!(pool.refill(ifma, &mut scratch, &mut fixed(vec![zero], curve.bytes())), 0);
        assert!(scratch.is_zero());
        assert_eq!(pool.available(), 0);
    }
}

#[test]
fn nonces_never_repeat() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for curve in CURVES {
        let (_, key) = ec_key(curve);
        let mut pool = NoncePool::new(curve).unwrap();
        let mut seen = HashSet::new();
        for _ in 0..50 {
            while pool.refill(ifma, &mut scratch, &mut random) > 0 {}
            assert!(pool.available() > NoncePool::CAPACITY - LANES);
            // Sometimes half of the pool, so that refills meet leftovers.
            while pool.available() > seen.len() % 17 {
                assert!(seen.insert(pool.sign(&key, &[1; 32]).unwrap().r().to_vec()));
            }
        }
        assert!(seen.len() > 500);
    }
}

#[test]
fn keys_of_another_curve_and_out_of_range_are_refused() {
    let Some((ifma, mut scratch)) = engine() else { return };
    let (_, p256) = ec_key(Curve::P256);
    let mut pool = NoncePool::new(Curve::P384).unwrap();
    pool.refill(ifma, &mut scratch, &mut random);
    assert!(pool.sign(&p256, &[1; 32]).is_none());
    assert_eq!(pool.available(), LANES, "no nonce was spent");
    for curve in CURVES {
        let order = little_endian(&order(curve));
        for scalar in [&[][..], &[0; 48], &[0xff; 48], &[1; 49], &order] {
            assert_eq!(EcKey::new(curve, scalar).err(), Some(UnsupportedKey::Scalar), "{scalar:02x?}");
        }
    }
    assert!(EcKey::new(Curve::P256, &[&[1; 32][..], &[0; 40]].concat()).is_ok(), "leading zeros are fine");
    assert!(EcKey::new(Curve::P256, &[&[1; 32][..], &[1]].concat()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arithmetic after the nonce, against OpenSSL's verification, for arbitrary digests of arbitrary length.
    #[test]
    fn any_digest(digest in prop::collection::vec(any::<u8>(), 0..80), p384: bool) {
        let Some((ifma, mut scratch)) = engine() else { return Ok(()) };
        let curve = if p384 { Curve::P384 } else { Curve::P256 };
        let (host, key) = ec_key(curve);
        let mut pool = NoncePool::new(curve).unwrap();
        pool.refill(ifma, &mut scratch, &mut random);
        // OpenSSL does not take an empty digest; for us it is the number zero.
        let digest = if digest.is_empty() { vec![0] } else { digest };
        let signature = pool.sign(&key, &digest).unwrap();
        prop_assert!(verifies(&host, &digest, &signature));
        let host_form = EcdsaSig::from_der(&der(&signature)).unwrap();
        prop_assert_eq!(host_form.to_der().unwrap(), der(&signature));
    }
}
