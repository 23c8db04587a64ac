//! Paddings and DER, read back by OpenSSL.

mod support;

use hasten_crypto::encoding::pkcs1::{self, DigestKind};
use hasten_crypto::encoding::{der, pss};
use hasten_crypto::{Hash, RsaSize};
use openssl::bn::BigNum;
use openssl::ecdsa::EcdsaSig;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::{Padding, Rsa};
use openssl::sign::{RsaPssSaltlen, Signer, Verifier};
use proptest::prelude::*;

use crate::support::hash::{Sha1, Sha224, Sha256, Sha384, Sha512, digest};

const MESSAGE: &[u8] = b"the transcript of a handshake";

fn host_digest(kind: DigestKind) -> MessageDigest {
    match kind {
        DigestKind::Md5Sha1 => MessageDigest::from_nid(openssl::nid::Nid::from_raw(114)).unwrap(),
        DigestKind::Sha1 => MessageDigest::sha1(),
        DigestKind::Sha224 => MessageDigest::sha224(),
        DigestKind::Sha256 => MessageDigest::sha256(),
        DigestKind::Sha384 => MessageDigest::sha384(),
        DigestKind::Sha512 => MessageDigest::sha512(),
    }
}

/// The padded input that a signature of the host was made from.
fn recover(key: &Rsa<Private>, signature: &[u8]) -> Vec<u8> {
    let mut padded = vec![0; signature.len()];
    key.public_decrypt(signature, &mut padded, Padding::NONE).unwrap();
    padded
}

fn sign_raw(key: &Rsa<Private>, padded: &[u8]) -> Vec<u8> {
    let mut signature = vec![0; padded.len()];
    key.private_encrypt(padded, &mut signature, Padding::NONE).unwrap();
    signature
}

#[test]
fn pkcs1_is_byte_for_byte_that_of_openssl() {
    let rsa = Rsa::generate(2048).unwrap();
    let key = PKey::from_rsa(rsa.clone()).unwrap();
    for kind in DigestKind::ALL {
        let digest = openssl::hash::hash(host_digest(kind), MESSAGE).unwrap();
        let mut padded = vec![0xaa; 256];
        pkcs1::pad(kind, &digest, &mut padded).unwrap();
        let mut signer = Signer::new(host_digest(kind), &key).unwrap();
        let signature = signer.sign_oneshot_to_vec(MESSAGE).unwrap();
        assert_eq!(padded, recover(&rsa, &signature), "{kind:?}");
    }
}

#[test]
fn pkcs1_refuses_what_does_not_fit() {
    let digest = [7; 32];
    let shortest = 3 + 8 + 19 + 32;
    assert!(pkcs1::pad(DigestKind::Sha256, &digest, &mut vec![0; shortest]).is_some());
    assert!(pkcs1::pad(DigestKind::Sha256, &digest, &mut vec![0; shortest - 1]).is_none());
    assert!(pkcs1::pad(DigestKind::Sha256, &digest, &mut []).is_none());
    assert!(pkcs1::pad(DigestKind::Sha256, &digest[1..], &mut [0; 256]).is_none());
}

fn openssl_accepts_pss<H: Hash>(kind: DigestKind, bits: u32, salt_len: usize) {
    let rsa = Rsa::generate(bits).unwrap();
    let mut padded = vec![0xaa; rsa.size() as usize];
    let salt: Vec<u8> = (0..salt_len).map(|i| i as u8 ^ 0x5a).collect();
    pss::pad::<H>(&digest::<H>(MESSAGE), &salt, bits as usize, &mut padded).unwrap();
    let signature = sign_raw(&rsa, &padded);

    let key = PKey::from_rsa(rsa).unwrap();
    let mut verifier = Verifier::new(host_digest(kind), &key).unwrap();
    verifier.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
    verifier.set_rsa_pss_saltlen(RsaPssSaltlen::custom(salt_len as i32)).unwrap();
    verifier.set_rsa_mgf1_md(host_digest(kind)).unwrap();
    assert!(verifier.verify_oneshot(&signature, MESSAGE).unwrap(), "{kind:?} {bits} bits, salt {salt_len}");
}

/// 1025 to 1032 bits: every number of unused bits in the first byte, and the size with a whole unused byte.
#[test]
fn openssl_accepts_pss_of_every_hash_and_shape() {
    openssl_accepts_pss::<Sha1>(DigestKind::Sha1, 2048, 20);
    openssl_accepts_pss::<Sha224>(DigestKind::Sha224, 2048, 28);
    openssl_accepts_pss::<Sha384>(DigestKind::Sha384, 2048, 48);
    openssl_accepts_pss::<Sha512>(DigestKind::Sha512, 2048, 64);
    openssl_accepts_pss::<Sha256>(DigestKind::Sha256, 2048, 0);
    for bits in 1025..=1032 {
        openssl_accepts_pss::<Sha256>(DigestKind::Sha256, bits, 32);
    }
}

#[test]
fn pss_refuses_what_does_not_fit() {
    let digest = [7; 32];
    assert!(pss::pad::<Sha256>(&digest, &[0; 32], 2048, &mut [0; 255]).is_none(), "output too short");
    assert!(pss::pad::<Sha256>(&digest[1..], &[0; 32], 2048, &mut [0; 256]).is_none(), "digest too short");
    let longest = 256 - 32 - 2;
    assert!(pss::pad::<Sha256>(&digest, &vec![0; longest], 2048, &mut [0; 256]).is_some());
    assert!(
        pss::pad::<Sha256>(&digest, &vec![0; longest + 1], 2048, &mut [0; 256]).is_none(),
        "salt too long"
    );
    assert!(pss::pad::<Sha256>(&digest, &[], 8, &mut [0; 1]).is_none());
    assert!(pss::pad::<Sha256>(&digest, &[], 0, &mut []).is_none());
}

#[test]
fn pss_is_below_every_modulus_of_its_size() {
    for size in RsaSize::ALL {
        for salt in 0..=255 {
            let mut padded = vec![0; size.bytes()];
            pss::pad::<Sha256>(&[7; 32], &[salt; 32], size.bits(), &mut padded).unwrap();
            assert!(padded[0] < 0x80);
        }
    }
}

fn der_of(r: &[u8], s: &[u8]) -> Vec<u8> {
    let mut out = [0xee; 128];
    let length = der::ecdsa_signature(r, s, &mut out).unwrap();
    assert!(out[length..].iter().all(|&byte| byte == 0xee), "nothing is written behind the signature");
    out[..length].to_vec()
}

#[test]
fn der_lengths_at_the_edges() {
    assert_eq!(der_of(&[0; 32], &[0; 32]), [0x30, 6, 2, 1, 0, 2, 1, 0]);
    assert_eq!(der_of(&[0x7f], &[0x80]), [0x30, 7, 2, 1, 0x7f, 2, 2, 0, 0x80]);
    assert_eq!(der_of(&[0xff; 48], &[0xff; 48]).len(), 104);
    assert!(der::ecdsa_signature(&[0xff; 48], &[0xff; 48], &mut [0; 103]).is_none());
    assert!(der::ecdsa_signature(&[0xff; 66], &[0xff; 66], &mut [0; 200]).is_none(), "no long form");
    assert!(der::ecdsa_signature(&[1], &[1], &mut []).is_none());
}

proptest! {
    #[test]
    fn der_is_that_of_openssl(
        mut r: [u8; 48],
        mut s: [u8; 48],
        zeros in (0usize..=48, 0usize..=48),
        length in prop::sample::select(vec![32usize, 48]),
    ) {
        r[..zeros.0].fill(0);
        s[..zeros.1].fill(0);
        let (r, s) = (&r[48 - length..], &s[48 - length..]);
        let number = |bytes| BigNum::from_slice(bytes).unwrap();
        let host = EcdsaSig::from_private_components(number(r), number(s)).unwrap();
        prop_assert_eq!(der_of(r, s), host.to_der().unwrap());
    }
}
