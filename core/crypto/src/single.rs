//! Operations one at a time: for CPUs without lanes, for connections that nobody shares lanes with, and for ML-KEM-768, which
//! has no engine for lanes.
//!
//! The engine is graviola: constant-time arithmetic in assembly, most of it formally verified. Multiples of P-384's generator
//! are our own, because graviola has no table for them. There is no private operation of RSA, because graviola's is no faster
//! than OpenSSL's; for CPUs with IFMA it is in `crt`.

mod curves;
mod generator384;
mod ml_kem;

use hasten_names::{Curve, Feature, Group, LANES};

use self::curves::{group_of, public_key, shared_secret};
pub use self::ml_kem::{ML_KEM_CIPHERTEXT, ML_KEM_KEY, ML_KEM_PRIVATE, ML_KEM_SEED, MlKemPair};
use crate::ecdhe::{KeyPair, KeyPairBytes, clamp, random_scalar};
use crate::ecdsa::{LIMBS, Lanes, sign_lanes};
use crate::hash::Hash;
use crate::lanes::{DeriveLane, EcdsaLane, LaneEngine, LaneStatus, RsaLane};
use crate::limbs;
use crate::memory::{Plain, wipe, wipe_limbs, wipe_stack};
use crate::random::Random;

/// Proof that this CPU has what the engine needs.
#[derive(Clone, Copy, Debug)]
pub struct Single(());

impl Single {
    /// Set to `1`, this variable denies the proof on any machine, so that tests can exercise the other path.
    pub const DISABLE: &'static str = "HASTEN_CPU_DISABLE_ADX";

    /// Bytes of the stack that a function of ML-KEM may use: 30 KiB for an encapsulation.
    pub const ML_KEM_STACK: usize = 48 << 10;

    /// Bytes of the stack that operations may use which multiply the generator, or by X25519: as many as OpenSSL's own. The code
    /// for arm64 takes more.
    pub const SHALLOW_STACK: usize = if cfg!(target_arch = "aarch64") { 8 << 10 } else { 4 << 10 };
}

impl LaneEngine for Single {
    type Scratch = ();

    /// Of a shared secret on the NIST curves: 13 KiB, of which OpenSSL has most in the heap. Other operations need
    /// [`SHALLOW_STACK`](Self::SHALLOW_STACK).
    const STACK: usize = 20 << 10;

    /// CPUs since Broadwell and Zen have what it needs; emulators may not.
    fn detect() -> Option<Self> {
        let denied = std::env::var_os(Self::DISABLE).is_some_and(|value| value == "1");
        let is_able =
            Feature::SINGLE.into_iter().all(Feature::is_usable) && graviola::util::is_cpu_supported();
        (!denied && is_able).then_some(Self(()))
    }

    fn scratch(self) {}

    fn rsa_private(self, (): &mut (), lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        lanes.iter_mut().for_each(|lane| wipe(lane.signature));
        LaneStatus::NONE
    }

    fn rsa_check(self, (): &mut (), lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        let mut status = LaneStatus::NONE;
        let is_sound =
            lanes.len() <= LANES && lanes.iter().all(|lane| lane.key.size() == lanes[0].key.size());
        for (i, lane) in lanes.iter_mut().enumerate() {
            if is_sound && lane.key.is_signed(lane.padded, lane.signature) {
                status.set(i);
            } else {
                wipe(lane.signature);
            }
        }
        status
    }

    fn ecdsa_sign<H: Hash>(
        self,
        (): &mut (),
        curve: Curve,
        lanes: &mut [EcdsaLane<'_>],
        random: &mut Random<'_>,
    ) -> LaneStatus {
        let (mut nonces, mut x) = ([[0; LIMBS]; LANES], [[0; LIMBS]; LANES]);
        let status = sign_lanes::<H>(curve, lanes, random, &mut nonces, &mut x, |nonces, valid, x| {
            public_x(curve, nonces, valid, x)
        });
        wipe_limbs(nonces.as_flattened_mut());
        wipe_stack::<{ Self::SHALLOW_STACK }>();
        status
    }

    fn derive(self, (): &mut (), group: Group, lanes: &mut [DeriveLane<'_>]) -> LaneStatus {
        lanes.iter_mut().for_each(|lane| wipe(lane.shared));
        let mut status = LaneStatus::NONE;
        if lanes.len() > LANES || lanes.iter().any(|lane| lane.shared.len() != group.shared_len()) {
            return status;
        }
        for (i, lane) in lanes.iter_mut().enumerate() {
            let is_key = lane.private.len() == group.private_len();
            if is_key && shared_secret(group, lane.private, lane.peer, lane.shared) {
                status.set(i);
            }
        }
        match group {
            Group::X25519 => wipe_stack::<{ Self::SHALLOW_STACK }>(),
            Group::P256 | Group::P384 => wipe_stack::<{ Self::STACK }>(),
        }
        status
    }

    fn keygen(
        self,
        (): &mut (),
        group: Group,
        count: usize,
        random: &mut Random<'_>,
        mut sink: impl FnMut(KeyPair),
    ) -> usize {
        let pairs = (0..count.min(LANES)).map_while(|_| key_pair(group, random));
        let made = pairs.map(&mut sink).count();
        wipe_stack::<{ Self::SHALLOW_STACK }>();
        made
    }
}

/// x(k·G) of the lanes that have a k; returns those.
fn public_x(curve: Curve, nonces: &Lanes, valid: LaneStatus, x: &mut Lanes) -> LaneStatus {
    let (group, bytes, limbs) = (group_of(curve), curve.bytes(), curve.bytes() / 8);
    let mut done = LaneStatus::NONE;
    let mut nonce = [0; Group::MAX_PRIVATE];
    let mut point = [0; Group::MAX_PUBLIC];
    for lane in (0..LANES).filter(|&lane| valid.is_ok(lane)) {
        limbs::to_be(&nonces[lane][..limbs], &mut nonce[..bytes]);
        if public_key(group, &nonce[..bytes], &mut point[..group.public_len()]) {
            x[lane] = limbs::from_be_padded(&point[1..=bytes]);
            done.set(lane);
        }
    }
    wipe(&mut nonce);
    done
}

fn key_pair(group: Group, random: &mut Random<'_>) -> Option<KeyPair> {
    let mut bytes = KeyPairBytes::ZERO;
    let (left, right) = bytes.split_at_mut(Group::MAX_PRIVATE);
    let private = &mut left[..group.private_len()];
    let done = draw(group, random, private) && public_key(group, private, &mut right[..group.public_len()]);
    let pair = done.then(|| KeyPair::new(group, bytes));
    wipe(&mut bytes);
    pair
}

fn draw(group: Group, random: &mut Random<'_>, private: &mut [u8]) -> bool {
    let curve = match group {
        Group::X25519 => {
            let drawn = random(private);
            clamp(private);
            return drawn;
        }
        Group::P256 => Curve::P256,
        Group::P384 => Curve::P384,
    };
    let mut scalar = [0; LIMBS];
    let drawn = random_scalar(curve, random, &mut scalar);
    limbs::to_be(&scalar[..curve.bytes() / 8], private);
    wipe_limbs(&mut scalar);
    drawn
}
