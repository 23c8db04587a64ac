//! Batches of RSA signatures, against OpenSSL.

mod support;

use hasten_crypto::{RsaLane, RsaSize, rsa_private};
use openssl::rsa::Padding;

use crate::support::{engine, rsa_key};

#[test]
fn raw_signatures_lead_back_to_their_inputs() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for size in RsaSize::ALL {
        let keys: Vec<_> = (0..2).map(|_| rsa_key(size)).collect();
        for lanes in 1..=8 {
            let padded: Vec<Vec<u8>> =
                (0..lanes).map(|lane| [&[0, 1][..], &vec![lane as u8; size.bytes() - 2]].concat()).collect();
            let mut signatures = vec![vec![0; size.bytes()]; lanes];
            let mut batch: Vec<_> = signatures
                .iter_mut()
                .zip(&padded)
                .enumerate()
                .map(|(i, (signature, padded))| RsaLane { key: &keys[i % 2].1, padded, signature })
                .collect();
            let status = rsa_private(ifma, &mut scratch, &mut batch);
            assert!(status.all_ok(lanes), "{size:?} {lanes} {status:?}");
            assert!(scratch.is_zero());
            for (i, signature) in signatures.iter().enumerate() {
                let mut recovered = vec![0; size.bytes()];
                keys[i % 2].0.public_decrypt(signature, &mut recovered, Padding::NONE).unwrap();
                assert_eq!(recovered, padded[i]);
            }
        }
    }
}
