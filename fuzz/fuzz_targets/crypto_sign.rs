//! Digests of any length, keys of either curve and a generator that repeats itself: OpenSSL takes what comes out, and no
//! nonce serves two messages.

#![no_main]

use std::collections::HashMap;

use arbitrary::Arbitrary;
use hasten_crypto::{Curve, EcKey, EcdsaLane, EcdsaSignature, Hash, Ifma, LANES, LaneEngine, Single};
use libfuzzer_sys::fuzz_target;
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey as HostEcKey, EcPoint};
use openssl::ecdsa::EcdsaSig;
use openssl::nid::Nid;
use openssl::pkey::Public;
use openssl::sha::Sha512;

#[derive(Arbitrary, Debug)]
struct Input {
    p384: bool,
    /// Little-endian scalars; those out of range are no keys.
    keys: [(bool, [u8; 32]); 2],
    lanes: Vec<(bool, Vec<u8>)>,
    /// What the generator gives, over and over.
    random: u8,
    generator_fails: bool,
}

fuzz_target!(|input: Input| {
    if let Some(ifma) = Ifma::detect() {
        let mut scratch = ifma.scratch();
        sign(ifma, &mut scratch, &input);
        assert!(scratch.is_zero());
    }
    if let Some(single) = Single::detect() {
        sign(single, &mut (), &input);
    }
});

fn sign<E: LaneEngine>(engine: E, scratch: &mut E::Scratch, input: &Input) {
    let curve = if input.p384 { Curve::P384 } else { Curve::P256 };
    let [Some(first), Some(second)] = input.keys.map(|(p384, scalar)| keys(p384, &scalar)) else { return };
    let key = |second_one: bool| if second_one { &second } else { &first };
    let mut random = |bytes: &mut [u8]| {
        bytes.fill(input.random);
        !input.generator_fails
    };

    let mut signatures = vec![None; input.lanes.len()];
    let mut lanes: Vec<_> = input
        .lanes
        .iter()
        .zip(&mut signatures)
        .map(|((which, digest), signature)| EcdsaLane { key: &key(*which).0, digest, signature })
        .collect();
    let status = engine.ecdsa_sign::<HostSha512>(scratch, curve, &mut lanes, &mut random);

    let can_be_signed = !input.generator_fails && input.lanes.len() <= LANES;
    let mut nonces = HashMap::new();
    for (i, ((which, digest), signature)) in input.lanes.iter().zip(&signatures).enumerate() {
        let (key, host) = key(*which);
        assert_eq!(signature.is_some(), can_be_signed && key.curve() == curve);
        assert_eq!(signature.is_some(), status.is_ok(i));
        let Some(signature) = signature else { continue };
        assert!(verifies(host, digest, signature));
        let message = (input.keys[usize::from(*which)].1, digest);
        assert_eq!(*nonces.entry(signature.r().to_vec()).or_insert(message), message, "a nonce serves twice");
    }
}

/// The same key for both: ours and the public half of the host's.
fn keys(p384: bool, scalar: &[u8; 32]) -> Option<(EcKey, HostEcKey<Public>)> {
    let (curve, nid) =
        if p384 { (Curve::P384, Nid::SECP384R1) } else { (Curve::P256, Nid::X9_62_PRIME256V1) };
    let key = EcKey::new(curve, scalar).ok()?;
    let big_endian: Vec<u8> = scalar.iter().rev().copied().collect();
    let group = EcGroup::from_curve_name(nid).unwrap();
    let mut point = EcPoint::new(&group).unwrap();
    let scalar = BigNum::from_slice(&big_endian).unwrap();
    point.mul_generator2(&group, &scalar, &mut BigNumContext::new().unwrap()).unwrap();
    Some((key, HostEcKey::from_public_key(&group, &point).unwrap()))
}

fn verifies(host: &HostEcKey<Public>, digest: &[u8], signature: &EcdsaSignature) -> bool {
    let mut der = [0; EcdsaSignature::MAX_DER];
    let length = signature.to_der(&mut der).unwrap();
    // OpenSSL does not take an empty digest; for us it is the number zero.
    let digest = if digest.is_empty() { &[0] } else { digest };
    EcdsaSig::from_der(&der[..length]).unwrap().verify(digest, host).unwrap()
}

#[derive(Clone)]
struct HostSha512(Sha512);

impl Hash for HostSha512 {
    const OUTPUT: usize = 64;
    const BLOCK: usize = 128;

    fn new() -> Self {
        Self(Sha512::new())
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.finish());
    }
}
