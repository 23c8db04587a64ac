//! Signatures with nonces derived from their own key and message, against OpenSSL and known answers.

mod support;

use hasten_crypto::{Curve, EcKey, EcdsaLane, EcdsaSignature, Group, LANES, UnsupportedKey};
use openssl::bn::{BigNum, BigNumContext, BigNumRef};
use openssl::ec::{EcGroup, EcPoint};
use openssl::ecdsa::EcdsaSig;
use proptest::prelude::*;

use crate::support::ecdsa::{Chosen, batch, der, generator_x, near_order, number, order, verifies};
use crate::support::hash::{Sha512, digest as hash};
use crate::support::{Tested, ec_key, engine, host_key, little_endian, nid, random, with_each_engine};

const CURVES: [Curve; 2] = [Curve::P256, Curve::P384];

/// Bytes of randomness in a nonce.
const FRESH: usize = 32;

fn sign_one<E: Tested>(
    engine: &mut (E, E::Scratch),
    key: &EcKey,
    digest: &[u8],
    fresh: &[u8; FRESH],
) -> EcdsaSignature {
    let mut fixed = |bytes: &mut [u8]| {
        bytes.copy_from_slice(fresh);
        true
    };
    batch::<E, Sha512>(engine, key.curve(), &[(key, digest)], &mut fixed)[0].unwrap()
}

fn openssl_verifies_every_number_of_lanes<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    for curve in CURVES {
        let keys: Vec<_> = (0..3).map(|_| ec_key(curve)).collect();
        for lanes in 1..=LANES {
            let mut digests = [[0; 64]; LANES];
            digests.iter_mut().for_each(|digest| assert!(random(digest)));
            let lengths = [20, 28, 32, 48, 64, 1, 0, 47];
            let inputs: Vec<_> =
                (0..lanes).map(|i| (&keys[(i + lanes) % 3].1, &digests[i][..lengths[i]])).collect();
            let signatures = batch::<E, Sha512>(&mut engine, curve, &inputs, &mut random);
            for (i, signature) in signatures.iter().enumerate() {
                let (host, _) = &keys[(i + lanes) % 3];
                assert!(verifies(host, inputs[i].1, &signature.unwrap()), "{curve:?}, lane {i} of {lanes}");
            }
        }
    }
}

fn a_lane_that_cannot_be_signed_leaves_the_others_alone<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    let (p256, p384) = (ec_key(Curve::P256), ec_key(Curve::P384));
    for (curve, good, bad) in [(Curve::P256, &p256, &p384), (Curve::P384, &p384, &p256)] {
        for lanes in 1..=LANES {
            for odd in 0..lanes {
                let inputs: Vec<_> =
                    (0..lanes).map(|i| (if i == odd { &bad.1 } else { &good.1 }, [i as u8; 32])).collect();
                let signatures = batch::<E, Sha512>(&mut engine, curve, &inputs, &mut random);
                for (i, signature) in signatures.iter().enumerate() {
                    let good =
                        signature.is_some_and(|signature| verifies(&good.0, &[i as u8; 32], &signature));
                    assert_eq!(good, i != odd, "{curve:?}, lane {i} of {lanes}, {odd} is bad");
                    assert_eq!(signature.is_none(), i == odd);
                }
            }
        }
    }
}

fn without_randomness_or_with_too_many_lanes_nothing_is_signed<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    let (_, key) = ec_key(Curve::P256);
    let failing = batch::<E, Sha512>(&mut engine, Curve::P256, &[(&key, [7; 32]); LANES], &mut |_| false);
    assert!(failing.iter().all(Option::is_none));
    let crowd = batch::<E, Sha512>(&mut engine, Curve::P256, &[(&key, [7; 32]); LANES + 1], &mut random);
    assert!(crowd.iter().all(Option::is_none));
    assert!(batch::<E, Sha512>(&mut engine, Curve::P256, &[(&key, [7; 32]); 0], &mut random).is_empty());

    let (engine, mut scratch) = engine;
    let mut signature = None;
    let made = [true, false].map(|works| {
        let mut lane = [EcdsaLane { key: &key, digest: &[7; 32], signature: &mut signature }];
        let mut generator = |bytes: &mut [u8]| works && random(bytes);
        engine.ecdsa_sign::<Sha512>(&mut scratch, Curve::P256, &mut lane, &mut generator);
        signature.is_some()
    });
    assert_eq!(made, [true, false], "an old signature does not stay");
}

/// One call of the generator for all lanes: it costs more per call than per byte.
fn every_lane_gets_randomness_of_its_own<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    for curve in CURVES {
        let (_, key) = ec_key(curve);
        let mut requests = Vec::new();
        let mut counting = |bytes: &mut [u8]| {
            requests.push(bytes.len());
            random(bytes)
        };
        let signatures = batch::<E, Sha512>(&mut engine, curve, &[(&key, [7; 32]); 5], &mut counting);
        assert_eq!(requests, [5 * FRESH]);
        let mut rs: Vec<_> = signatures.iter().map(|signature| signature.unwrap().r().to_vec()).collect();
        rs.sort();
        rs.dedup();
        assert_eq!(rs.len(), 5, "one key and digest, five nonces");
    }
}

/// The private key, if two signatures share a nonce.
fn key_from(curve: Curve, signatures: [&EcdsaSignature; 2], digests: [&[u8]; 2]) -> Option<BigNum> {
    if signatures[0].r() != signatures[1].r() {
        return None;
    }
    let mut context = BigNumContext::new().unwrap();
    let order = order(curve);
    let [e1, e2] = digests.map(|digest| BigNum::from_slice(digest).unwrap());
    let [s1, s2] = signatures.map(|signature| BigNum::from_slice(signature.s()).unwrap());
    let r = BigNum::from_slice(signatures[0].r()).unwrap();
    let mut numbers = [(); 7].map(|()| BigNum::new().unwrap());
    let [ds, de, inverse, k, ks, rd, d] = &mut numbers;
    ds.mod_sub(&s1, &s2, &order, &mut context).unwrap();
    de.mod_sub(&e1, &e2, &order, &mut context).unwrap();
    inverse.mod_inverse(ds, &order, &mut context).unwrap();
    k.mod_mul(de, inverse, &order, &mut context).unwrap();
    ks.mod_mul(k, &s1, &order, &mut context).unwrap();
    rd.mod_sub(ks, &e1, &order, &mut context).unwrap();
    inverse.mod_inverse(&r, &order, &mut context).unwrap();
    d.mod_mul(rd, inverse, &order, &mut context).unwrap();
    Some(d.to_owned().unwrap())
}

/// A process is resumed twice from the same memory: its generator gives both the same bytes.
fn a_rollback_does_not_give_the_key_away<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    for curve in CURVES {
        let (host, key) = ec_key(curve);
        let digests = [[1; 32], [2; 32]];
        let nonce = BigNum::from_u32(12345).unwrap();
        let shared = digests.map(|digest| {
            Chosen::prepare(&[&nonce]);
            batch::<E, Chosen>(&mut engine, curve, &[(&key, &digest)], &mut random)[0].unwrap()
        });
        let found = key_from(curve, shared.each_ref(), digests.each_ref().map(|digest| &digest[..]));
        assert_eq!(found.as_deref(), Some(host.private_key()), "the attack works where a nonce is shared");

        let apart = digests.map(|digest| sign_one(&mut engine, &key, &digest, &[9; FRESH]));
        assert_eq!(key_from(curve, apart.each_ref(), digests.each_ref().map(|digest| &digest[..])), None);
    }
}

fn a_nonce_depends_on_key_digest_and_randomness<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    for curve in CURVES {
        let [(_, key), (_, other)] = [ec_key(curve), ec_key(curve)];
        let digest = [0x5a; 64];
        let signature = sign_one(&mut engine, &key, &digest, &[9; FRESH]);
        assert_eq!(der(&signature), der(&sign_one(&mut engine, &key, &digest, &[9; FRESH])));
        let mut fresh = [9; FRESH];
        fresh[FRESH - 1] ^= 1;
        // Bits that the number has no room for count as well, and so does the length.
        let mut beyond = digest;
        beyond[63] ^= 1;
        for changed in [
            sign_one(&mut engine, &key, &digest, &fresh),
            sign_one(&mut engine, &key, &beyond, &[9; FRESH]),
            sign_one(&mut engine, &key, &digest[..63], &[9; FRESH]),
            sign_one(&mut engine, &other, &digest, &[9; FRESH]),
        ] {
            assert_ne!(signature.r(), changed.r(), "{curve:?}");
        }
    }
}

/// Keys and messages of RFC 6979, appendices A.2.5 and A.2.6, randomness 00 01 … 1f; computed independently of this
/// code, with Python's hashlib and integers.
fn derived_nonces_give_the_known_signatures<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    let digests = [openssl::sha::sha256(b"sample").to_vec(), openssl::sha::sha384(b"sample").to_vec()];
    let vectors = [
        (
            Curve::P256,
            KEY_P256,
            &digests[0],
            "c429f4596c79602877686130564e65115d88feff7a2eb1dfc7428a17867b82dc",
            "43aa16901fedd2df56bf3a2141351c7cb06b02eb3bf6ef51cac2ec1f3baaa07f",
        ),
        (
            Curve::P256,
            KEY_P256,
            &digests[1],
            "7612bcf0f030314c920ecff25cb80191861838d67486d00397d6d4dd4783c055",
            "db7e24b71c11f51234494b81ffe69f1875f9210c036491ac6010b3982de65a8c",
        ),
        (
            Curve::P384,
            KEY_P384,
            &digests[0],
            "12d30d4ebaf85977f9a7038a60c4b51cb4e405cebbae7101fbcfccffa6af2f423ddb77413ef60bb74b6a2046cd524e1e",
            "bdfa69ebb5769d500c4cd36979163fdcd9272f76821c25aa9649b8b974dfcee42f88c9d7c01e641d892a1d0d05bdc8eb",
        ),
        (
            Curve::P384,
            KEY_P384,
            &digests[1],
            "d6a134489180606d4e6e2afdf15c49b1be9bcd34d48a7914d23f9e96744bbfbdec57792fbc862c10d95efca3b17fbb08",
            "b3213cf7fcf4809b996237f2d97653af7f886f569afe465d0b814bc238d5c194222c88e6c2bea137e2ad538509b4f547",
        ),
    ];
    let fresh: [u8; FRESH] = std::array::from_fn(|i| i as u8);
    for (curve, scalar, digest, r, s) in vectors {
        let key = EcKey::new(curve, &little_endian(&number(scalar))).unwrap();
        let signature = sign_one(&mut engine, &key, digest, &fresh);
        assert_eq!(signature.r(), number(r).to_vec_padded(curve.bytes() as i32).unwrap());
        assert_eq!(signature.s(), number(s).to_vec_padded(curve.bytes() as i32).unwrap());
    }
}

const KEY_P256: &str = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721";
const KEY_P384: &str =
    "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5";

/// RFC 6979, message "sample", hash of the curve's size: the result for a nonce, however it was found.
fn known_nonces_give_the_known_signatures<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    let vectors = [
        (
            Curve::P256,
            KEY_P256,
            "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60",
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
            openssl::sha::sha256(b"sample").to_vec(),
        ),
        (
            Curve::P384,
            KEY_P384,
            "94ED910D1A099DAD3254E9242AE85ABDE4BA15168EAF0CA87A555FD56D10FBCA2907E3E83BA95368623B8C4686915CF9",
            "94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA73D64C4EA95AD133C81A648152E44ACF96E36DD1E80FABE46",
            "99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526203B6351D0A3A94FA329C145786E679E7B82C71A38628AC8",
            openssl::sha::sha384(b"sample").to_vec(),
        ),
    ];
    for (curve, scalar, nonce, r, s, digest) in vectors {
        let key = EcKey::new(curve, &little_endian(&number(scalar))).unwrap();
        // A multiple of the order on top is reduced away.
        let (mut multiple, mut long) = (BigNum::new().unwrap(), BigNum::new().unwrap());
        let factor = number("fedcba9876543210fedcba9876543210");
        multiple.checked_mul(&order(curve), &factor, &mut BigNumContext::new().unwrap()).unwrap();
        long.checked_add(&multiple, &number(nonce)).unwrap();
        Chosen::prepare(&[&number(nonce), &long]);
        for signature in batch::<E, Chosen>(&mut engine, curve, &[(&key, &digest); 2], &mut random) {
            assert_eq!(signature.unwrap().r(), number(r).to_vec());
            assert_eq!(signature.unwrap().s(), number(s).to_vec());
        }
    }
}

/// Keys, nonces and digests at the ends of their ranges; digests may equal or exceed the order.
fn edges_of_the_ranges<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    let small = |value| BigNum::from_u32(value).unwrap();
    for curve in CURVES {
        let bytes = curve.bytes() as i32;
        let group = if curve == Curve::P256 { Group::P256 } else { Group::P384 };
        let nonces: Vec<_> = (1..=4).flat_map(|i| [small(i as u32), near_order(curve, -i)]).collect();
        let nonces: Vec<_> = nonces.iter().map(|nonce| &**nonce).collect();
        let near = (-2..=2).map(|distance| near_order(curve, distance).to_vec_padded(bytes).unwrap());
        let digests: Vec<_> =
            [0xff, 0, 1, 0x80].map(|byte| vec![byte; bytes as usize]).into_iter().chain(near).collect();
        for scalar in [small(1), small(2), near_order(curve, -1)] {
            let key = EcKey::new(curve, &little_endian(&scalar)).unwrap();
            let host = host_key(group, &scalar.to_vec_padded(bytes).unwrap()).ec_key().unwrap();
            for digest in &digests {
                Chosen::prepare(&nonces);
                for signature in batch::<E, Chosen>(&mut engine, curve, &[(&key, digest); LANES], &mut random)
                {
                    assert!(verifies(&host, digest, &signature.unwrap()), "{curve:?} {scalar} {digest:02x?}");
                }
            }
        }
    }
}

fn made(signatures: &[Option<EcdsaSignature>]) -> Vec<bool> {
    signatures.iter().map(Option::is_some).collect()
}

/// The standard requires another nonce then; the host finds one.
fn zeros_are_not_signed_with<E: Tested>() {
    let Some(mut engine) = engine::<E>() else { return };
    for curve in CURVES {
        let (host, key) = ec_key(curve);
        let (zero, one) = (BigNum::new().unwrap(), BigNum::from_u32(1).unwrap());
        let mut twice = BigNum::new().unwrap();
        twice.lshift1(&order(curve)).unwrap();
        Chosen::prepare(&[&zero, &one, &order(curve), &twice, &near_order(curve, 1)]);
        let signatures = batch::<E, Chosen>(&mut engine, curve, &[(&key, [7; 32]); 5], &mut random);
        assert_eq!(made(&signatures), [false, true, false, false, true], "a nonce of zero is refused");
        for signature in signatures.into_iter().flatten() {
            assert!(verifies(&host, &[7; 32], &signature));
            assert_eq!(signature.r(), generator_x(curve).to_vec(), "1·G");
        }

        // With the key 1 and the nonce 1, s is digest + r.
        let key = EcKey::new(curve, &[1]).unwrap();
        let mut digest = BigNum::new().unwrap();
        digest.checked_sub(&order(curve), &generator_x(curve)).unwrap();
        let digest = digest.to_vec_padded(curve.bytes() as i32).unwrap();
        Chosen::prepare(&[&one, &BigNum::from_u32(2).unwrap()]);
        let signatures = batch::<E, Chosen>(&mut engine, curve, &[(&key, &digest); 2], &mut random);
        assert_eq!(made(&signatures), [false, true], "s is never zero");
    }
}

#[test]
fn keys_out_of_range_are_refused() {
    for curve in CURVES {
        let order = little_endian(&order(curve));
        for scalar in [&[][..], &[0; 48], &[0xff; 48], &[1; 49], &order] {
            assert_eq!(EcKey::new(curve, scalar).err(), Some(UnsupportedKey::Scalar), "{scalar:02x?}");
        }
    }
    assert!(EcKey::new(Curve::P256, &[&[1; 32][..], &[0; 40]].concat()).is_ok(), "leading zeros are fine");
    assert!(EcKey::new(Curve::P256, &[&[1; 32][..], &[1]].concat()).is_err());
}

/// r for the nonce defined in the documentation, by OpenSSL's hash, numbers and points.
fn expected_r(curve: Curve, scalar: &BigNumRef, fresh: &[u8], digest: &[u8]) -> Vec<u8> {
    let scalar = scalar.to_vec_padded(curve.bytes() as i32).unwrap();
    let wide = hash::<Sha512>(&[b"ecdsa nonce", &scalar[..], fresh, digest].concat());
    let mut context = BigNumContext::new().unwrap();
    let mut nonce = BigNum::new().unwrap();
    nonce.nnmod(&BigNum::from_slice(&wide).unwrap(), &order(curve), &mut context).unwrap();
    let group = EcGroup::from_curve_name(nid(curve)).unwrap();
    let mut point = EcPoint::new(&group).unwrap();
    point.mul_generator2(&group, &nonce, &mut context).unwrap();
    let (mut x, mut y, mut r) = (BigNum::new().unwrap(), BigNum::new().unwrap(), BigNum::new().unwrap());
    point.affine_coordinates(&group, &mut x, &mut y, &mut context).unwrap();
    r.nnmod(&x, &order(curve), &mut context).unwrap();
    r.to_vec_padded(curve.bytes() as i32).unwrap()
}

with_each_engine! {
    openssl_verifies_every_number_of_lanes,
    a_lane_that_cannot_be_signed_leaves_the_others_alone,
    without_randomness_or_with_too_many_lanes_nothing_is_signed,
    every_lane_gets_randomness_of_its_own,
    a_rollback_does_not_give_the_key_away,
    a_nonce_depends_on_key_digest_and_randomness,
    derived_nonces_give_the_known_signatures,
    known_nonces_give_the_known_signatures,
    edges_of_the_ranges,
    zeros_are_not_signed_with,
    any_batch,
}

/// Keys, digests of any length and randomness, against OpenSSL's arithmetic and verification.
fn any_batch<E: Tested>() {
    if engine::<E>().is_none() {
        return;
    }
    let digest = prop::collection::vec(any::<u8>(), 0..200);
    let inputs = (prop::collection::vec(digest, 1..=LANES), any::<[[u8; FRESH]; LANES]>(), any::<bool>());
    proptest!(ProptestConfig::with_cases(64), |((digests, fresh, p384) in inputs)| {
        let mut engine = engine::<E>().unwrap();
        let curve = if p384 { Curve::P384 } else { Curve::P256 };
        let keys = [ec_key(curve), ec_key(curve)];
        let inputs: Vec<_> = digests.iter().enumerate().map(|(i, digest)| (&keys[i % 2].1, &digest[..])).collect();
        let mut fixed = |bytes: &mut [u8]| {
            bytes.copy_from_slice(&fresh.as_flattened()[..bytes.len()]);
            true
        };
        let signatures = batch::<E, Sha512>(&mut engine, curve, &inputs, &mut fixed);
        for (i, signature) in signatures.into_iter().enumerate() {
            let (host, _) = &keys[i % 2];
            let signature = signature.unwrap();
            prop_assert!(verifies(host, &digests[i], &signature));
            prop_assert_eq!(signature.r(), expected_r(curve, host.private_key(), &fresh[i], &digests[i]));
            let host_form = EcdsaSig::from_der(&der(&signature)).unwrap();
            prop_assert_eq!(host_form.to_der().unwrap(), der(&signature));
        }
    });
}
