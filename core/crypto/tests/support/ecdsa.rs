//! Batches of ECDSA signatures, nonces chosen by a test, and the numbers for judging both.

use std::cell::RefCell;

use hasten_crypto::{Curve, EcKey, EcdsaLane, EcdsaSignature, Hash, LANES};
use openssl::bn::{BigNum, BigNumRef};
use openssl::ec::EcKey as HostEcKey;
use openssl::ecdsa::EcdsaSig;
use openssl::pkey::Private;

use super::Tested;

pub(crate) fn number(hex: &str) -> BigNum {
    BigNum::from_hex_str(hex).unwrap()
}

pub(crate) fn order(curve: Curve) -> BigNum {
    number(match curve {
        Curve::P256 => "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
        Curve::P384 => {
            "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"
        }
    })
}

/// The number at a distance from the order.
pub(crate) fn near_order(curve: Curve, distance: i32) -> BigNum {
    let mut number = order(curve);
    let step = distance.unsigned_abs();
    if distance < 0 {
        number.sub_word(step).unwrap();
    } else {
        number.add_word(step).unwrap();
    }
    number
}

pub(crate) fn der(signature: &EcdsaSignature) -> Vec<u8> {
    let mut out = [0; EcdsaSignature::MAX_DER];
    let length = signature.to_der(&mut out).unwrap();
    out[..length].to_vec()
}

pub(crate) fn verifies(host: &HostEcKey<Private>, digest: &[u8], signature: &EcdsaSignature) -> bool {
    // OpenSSL rejects an empty digest; for us it is the number zero.
    let digest = if digest.is_empty() { &[0] } else { digest };
    EcdsaSig::from_der(&der(signature)).unwrap().verify(digest, host).unwrap()
}

/// One call of the engine on pairs of key and digest.
pub(crate) fn batch<E: Tested, H: Hash>(
    (engine, scratch): &mut (E, E::Scratch),
    curve: Curve,
    inputs: &[(&EcKey, impl AsRef<[u8]>)],
    random: &mut dyn FnMut(&mut [u8]) -> bool,
) -> Vec<Option<EcdsaSignature>> {
    let mut signatures = vec![None; inputs.len()];
    let mut lanes: Vec<_> = inputs
        .iter()
        .zip(&mut signatures)
        .map(|((key, digest), signature)| EcdsaLane { key, digest: digest.as_ref(), signature })
        .collect();
    let status = engine.ecdsa_sign::<H>(scratch, curve, &mut lanes, random);
    assert!(E::is_clean(scratch));
    let reported = (0..LANES).filter(|&lane| status.is_ok(lane));
    assert!(reported.eq((0..inputs.len()).filter(|&lane| signatures[lane].is_some())));
    signatures
}

pub(crate) fn generator_x(curve: Curve) -> BigNum {
    number(match curve {
        Curve::P256 => "6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296",
        Curve::P384 => {
            "AA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7"
        }
    })
}

/// Replaces SHA-512, so that a test can choose the nonces: the given numbers, in turn.
#[derive(Clone)]
pub(crate) struct Chosen;

thread_local!(static CHOSEN: RefCell<Vec<[u8; 64]>> = const { RefCell::new(Vec::new()) });

impl Chosen {
    pub(crate) fn prepare(numbers: &[&BigNumRef]) {
        let bytes = numbers.iter().rev().map(|number| number.to_vec_padded(64).unwrap().try_into().unwrap());
        CHOSEN.set(bytes.collect());
    }
}

impl Hash for Chosen {
    const OUTPUT: usize = 64;
    const BLOCK: usize = 128;

    fn new() -> Self {
        Self
    }

    fn update(&mut self, _: &[u8]) {}

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(&CHOSEN.with_borrow_mut(|numbers| numbers.pop().expect("one for each lane")));
    }
}
