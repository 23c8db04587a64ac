//! A peer's public key may be any bytes; OpenSSL says what should come of it.

#![no_main]

use hasten_crypto::{DeriveLane, Group, Ifma, LANES, LaneEngine, Single};
use libfuzzer_sys::fuzz_target;
use openssl::derive::Deriver;
use openssl::pkey::{Id, PKey};

const PRIVATE: [u8; 48] = [0x5a; 48];
/// The form byte of the only points that have a result.
const UNCOMPRESSED: u8 = 4;

fuzz_target!(|data: &[u8]| {
    if let Some(ifma) = Ifma::detect() {
        let mut scratch = ifma.scratch();
        exchange(ifma, &mut scratch, data);
        assert!(scratch.is_zero());
    }
    if let Some(single) = Single::detect() {
        exchange(single, &mut (), data);
    }
});

fn exchange<E: LaneEngine>(engine: E, scratch: &mut E::Scratch, data: &[u8]) {
    let Some((&choice, peer)) = data.split_first() else { return };
    let group = Group::ALL[usize::from(choice) % Group::ALL.len()];
    let private = &PRIVATE[..group.private_len()];

    // The same in every lane: what one gets, all get.
    let mut secrets = vec![vec![0xee; group.shared_len()]; LANES];
    let mut lanes: Vec<_> = secrets.iter_mut().map(|shared| DeriveLane { private, peer, shared }).collect();
    let status = engine.derive(scratch, group, &mut lanes);
    assert!(status.count() == 0 || status.all_ok(LANES));
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));

    match group {
        Group::X25519 => {
            let secret = (status.count() > 0).then(|| secrets[0].clone());
            assert_eq!(secret, host_x25519(private, peer));
        }
        Group::P256 | Group::P384 if status.count() > 0 => {
            assert_eq!((peer.len(), peer[0]), (group.public_len(), UNCOMPRESSED));
        }
        Group::P256 | Group::P384 => assert!(secrets[0].iter().all(|&byte| byte == 0)),
    }
}

fn host_x25519(private: &[u8], peer: &[u8]) -> Option<Vec<u8>> {
    let private = PKey::private_key_from_raw_bytes(private, Id::X25519).ok()?;
    let peer = PKey::public_key_from_raw_bytes(peer, Id::X25519).ok()?;
    let mut deriver = Deriver::new(&private).ok()?;
    deriver.set_peer(&peer).ok()?;
    deriver.derive_to_vec().ok()
}
