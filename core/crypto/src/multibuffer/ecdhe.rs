//! Ephemeral Diffie-Hellman: key pairs and shared secrets.

use hasten_names::{Curve, Group, LANES};

use super::curves::{public_points, shared_secrets};
use super::{Scratch, ffi, lanes_done, x25519};
use crate::Ifma;
use crate::ecdhe::{KeyPair, KeyPairBytes, UNCOMPRESSED, clamp, random_scalar};
use crate::lanes::{DeriveLane, LaneStatus};
use crate::memory::{Plain, constant_time_eq, wipe};
use crate::order;
use crate::random::Random;
use crate::{ecdsa, limbs};

const X25519_BYTES: usize = 32;

pub(super) fn keygen(
    _: Ifma,
    scratch: &mut Scratch,
    group: Group,
    count: usize,
    random: &mut Random<'_>,
    mut sink: impl FnMut(KeyPair),
) -> usize {
    let mut made = 0;
    let mut sink = |lane: usize, bytes| {
        let pair = KeyPair::new(group, bytes);
        if lane < count {
            made += 1;
            sink(pair);
        }
    };
    match group {
        Group::X25519 => x25519_keygen(scratch, random, &mut sink),
        Group::P256 => point_keygen(scratch, Curve::P256, random, &mut sink),
        Group::P384 => point_keygen(scratch, Curve::P384, random, &mut sink),
    }
    made
}

fn x25519_keygen(scratch: &mut Scratch, random: &mut Random<'_>, sink: &mut impl FnMut(usize, KeyPairBytes)) {
    let [private, public] = &mut scratch.staging.bytes;
    let drawn = private.iter_mut().all(|lane| random(&mut lane[..X25519_BYTES]));
    if drawn {
        private.iter_mut().for_each(|lane| clamp(lane));
        let outputs = public.each_mut().map(|lane| lane.as_mut_ptr());
        let inputs = private.each_ref().map(|lane| lane.as_ptr());
        // SAFETY: see the module's soundness section.
        let status = lanes_done(unsafe { ffi::k1_mbx_x25519_public_key_mb8(&outputs, &inputs) });
        for lane in (0..LANES).filter(|&lane| status.is_ok(lane)) {
            let mut bytes = KeyPairBytes::ZERO;
            let (left, right) = bytes.split_at_mut(Group::MAX_PRIVATE);
            left[..X25519_BYTES].copy_from_slice(&private[lane][..X25519_BYTES]);
            right[..X25519_BYTES].copy_from_slice(&public[lane][..X25519_BYTES]);
            sink(lane, bytes);
        }
    }
    scratch.staging.wipe_bytes(X25519_BYTES);
}

fn point_keygen(
    scratch: &mut Scratch,
    curve: Curve,
    random: &mut Random<'_>,
    sink: &mut impl FnMut(usize, KeyPairBytes),
) {
    let [private, x, y] = &mut scratch.staging.limbs;
    if private.iter_mut().all(|lane| random_scalar(curve, random, lane)) {
        let status = public_points(curve, private, |lane| lane, x, y);
        let coordinate = curve.bytes();
        for lane in (0..LANES).filter(|&lane| status.is_ok(lane)) {
            let mut bytes = KeyPairBytes::ZERO;
            let (left, right) = bytes.split_at_mut(Group::MAX_PRIVATE);
            limbs::to_be(&private[lane][..coordinate / 8], &mut left[..coordinate]);
            right[0] = UNCOMPRESSED;
            limbs::to_be(&x[lane][..coordinate / 8], &mut right[1..][..coordinate]);
            limbs::to_be(&y[lane][..coordinate / 8], &mut right[1 + coordinate..][..coordinate]);
            sink(lane, bytes);
        }
    }
    scratch.staging.wipe_limbs();
}

pub(super) fn derive(
    ifma: Ifma,
    scratch: &mut Scratch,
    group: Group,
    lanes: &mut [DeriveLane<'_>],
) -> LaneStatus {
    lanes.iter_mut().for_each(|lane| wipe(lane.shared));
    if lanes.len() > LANES || lanes.iter().any(|lane| lane.shared.len() != group.shared_len()) {
        return LaneStatus::NONE;
    }
    let status = match group {
        Group::X25519 => x25519_derive(ifma, scratch, lanes),
        Group::P256 => point_derive(scratch, Curve::P256, lanes),
        Group::P384 => point_derive(scratch, Curve::P384, lanes),
    };
    for (i, lane) in lanes.iter_mut().enumerate().filter(|&(i, _)| status.is_ok(i)) {
        lane.shared.copy_from_slice(&scratch.staging.bytes[0][i][..group.shared_len()]);
    }
    scratch.staging.wipe_bytes(group.shared_len());
    scratch.staging.wipe_limbs();
    status
}

/// Leaves the secrets in the first staging array.
fn x25519_derive(ifma: Ifma, scratch: &mut Scratch, lanes: &[DeriveLane<'_>]) -> LaneStatus {
    let mut status = LaneStatus::NONE;
    // Other lanes compute with zeros.
    let mut private = [&[0; X25519_BYTES]; LANES];
    let mut peers = private;
    for (i, lane) in lanes.iter().enumerate() {
        if let (Ok(key), Ok(peer)) = (lane.private.try_into(), lane.peer.try_into()) {
            (private[i], peers[i]) = (key, peer);
            status.set(i);
        }
    }
    let shared =
        scratch.staging.bytes[0].each_mut().map(|lane| lane.first_chunk_mut().expect("32 bytes fit"));
    x25519::shared_secrets(ifma, &private, &peers, shared);
    // A point of low order gives all zeros; RFC 8446, section 7.4.2, requires the handshake to fail.
    for (i, shared) in scratch.staging.bytes[0].iter().enumerate() {
        if constant_time_eq(&shared[..X25519_BYTES], &[0; X25519_BYTES]) {
            status.clear(i);
        }
    }
    status
}

/// Leaves the secrets in the first staging array.
fn point_derive(scratch: &mut Scratch, curve: Curve, lanes: &[DeriveLane<'_>]) -> LaneStatus {
    let staging = &mut *scratch.staging;
    let mut valid = LaneStatus::NONE;
    for (i, lane) in lanes.iter().enumerate() {
        let [private, x, y] = staging.limbs.each_mut().map(|limbs| &mut limbs[i]);
        let read = match curve {
            Curve::P256 => read_lane::<4>(&order::P256, lane, private, x, y),
            Curve::P384 => read_lane::<6>(&order::P384, lane, private, x, y),
        };
        if read.is_some() {
            valid.set(i);
        }
    }
    let Some(filler) = valid.first() else {
        return LaneStatus::NONE;
    };
    let source = |i| if valid.is_ok(i) { i } else { filler };
    shared_secrets(curve, &staging.limbs, source, &mut staging.bytes[0]).and(valid)
}

/// The private scalar and the peer's coordinates as limbs; the engine itself checks that the point is on the curve.
fn read_lane<const N: usize>(
    order: &order::Order<N>,
    lane: &DeriveLane<'_>,
    private: &mut [u64; ecdsa::LIMBS],
    x: &mut [u64; ecdsa::LIMBS],
    y: &mut [u64; ecdsa::LIMBS],
) -> Option<()> {
    let scalar = limbs::from_be::<N>(lane.private)?;
    private[..N].copy_from_slice(&scalar);
    let (&form, point) = lane.peer.split_first()?;
    let (left, right) = point.split_at_checked(N * 8)?;
    x[..N].copy_from_slice(&limbs::from_be::<N>(left)?);
    y[..N].copy_from_slice(&limbs::from_be::<N>(right)?);
    (form == UNCOMPRESSED && order.contains(&scalar) != 0).then_some(())
}
