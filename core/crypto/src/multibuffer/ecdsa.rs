//! ECDSA signatures, each with a nonce derived from its own key and message.

use hasten_names::{Curve, LANES};

use super::Scratch;
use super::curves::{Lanes, public_points};
use crate::Ifma;
use crate::ecdsa::LIMBS;
use crate::hash::Hash;
use crate::lanes::{EcdsaLane, LaneStatus};
use crate::limbs;
use crate::memory::{wipe, wipe_limbs};
use crate::nonce::FRESH;
use crate::order::{self, Order};
use crate::random::Random;

pub(super) fn ecdsa_sign<H: Hash>(
    _: Ifma,
    scratch: &mut Scratch,
    curve: Curve,
    lanes: &mut [EcdsaLane<'_>],
    random: &mut Random<'_>,
) -> LaneStatus {
    lanes.iter_mut().for_each(|lane| *lane.signature = None);
    let mut status = LaneStatus::NONE;
    if lanes.is_empty() || lanes.len() > LANES {
        return status;
    }
    let valid = derive_nonces::<H>(scratch, curve, lanes, random);
    let ready = prepare(curve, scratch, valid);
    let [inverses, rs, _] = &scratch.staging.limbs;
    for (i, lane) in lanes.iter_mut().enumerate().filter(|&(i, _)| ready.is_ok(i)) {
        *lane.signature = lane.key.complete(&inverses[i], &rs[i], lane.digest);
        if lane.signature.is_some() {
            status.set(i);
        }
    }
    scratch.staging.wipe_limbs();
    status
}

/// Leaves nonces in the first staging array; returns the lanes that have one.
fn derive_nonces<H: Hash>(
    scratch: &mut Scratch,
    curve: Curve,
    lanes: &[EcdsaLane<'_>],
    random: &mut Random<'_>,
) -> LaneStatus {
    let mut valid = LaneStatus::NONE;
    let mut fresh = [[0; FRESH]; LANES];
    if random(fresh[..lanes.len()].as_flattened_mut()) {
        let nonces = &mut scratch.staging.limbs[0];
        for (i, (lane, nonce)) in lanes.iter().zip(nonces).enumerate() {
            if lane.key.curve() != curve {
                continue;
            }
            lane.key.nonce::<H>(&fresh[i], lane.digest, nonce);
            // Zero happens once in 2^256. The engine would refuse it, too.
            if limbs::is_zero(nonce) == 0 {
                valid.set(i);
            }
        }
    }
    wipe(fresh.as_flattened_mut());
    valid
}

/// Turns the nonces k in the first staging array into 1/k in Montgomery form, and leaves x(k·G) mod order in the
/// second; returns the lanes for which both succeeded.
///
/// The engine has a function for this, `sign_setup`, but it inverts each lane separately, by exponentiation.
pub(super) fn prepare(curve: Curve, scratch: &mut Scratch, valid: LaneStatus) -> LaneStatus {
    let Some(filler) = valid.first() else { return valid };
    let [nonces, x, y] = &mut scratch.staging.limbs;
    let source = |i| if valid.is_ok(i) { i } else { filler };
    let ready = public_points(curve, nonces, source, x, y).and(valid);
    match curve {
        Curve::P256 => invert_and_reduce(&order::P256, ready, nonces, x),
        Curve::P384 => invert_and_reduce(&order::P384, ready, nonces, x),
    }
    ready
}

fn invert_and_reduce<const N: usize>(order: &Order<N>, ready: LaneStatus, nonces: &mut Lanes, x: &mut Lanes) {
    fn number<const N: usize>(lane: &mut [u64; LIMBS]) -> &mut [u64; N] {
        lane.first_chunk_mut().expect("N is 4 or 6")
    }
    let lanes = || (0..LANES).filter(|&lane| ready.is_ok(lane));
    let mut inverses = [[0; N]; LANES];
    let mut products = inverses;
    let inverses = &mut inverses[..ready.count()];
    for (inverse, lane) in inverses.iter_mut().zip(lanes()) {
        *inverse = order.to_montgomery(number(&mut nonces[lane]));
    }
    order.invert_all(inverses, &mut products);
    for (inverse, lane) in inverses.iter().zip(lanes()) {
        *number(&mut nonces[lane]) = *inverse;
        // A coordinate is below the prime, which is below twice the order.
        let x = number(&mut x[lane]);
        *x = order.reduce(x);
    }
    wipe_limbs(inverses.as_flattened_mut());
    wipe_limbs(products.as_flattened_mut());
}
