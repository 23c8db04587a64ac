//! ECDSA signatures, each with a nonce derived from its own key and message.

use hasten_names::Curve;

use super::Scratch;
use super::curves::public_points;
use crate::Ifma;
use crate::ecdsa::sign_lanes;
use crate::hash::Hash;
use crate::lanes::{EcdsaLane, LaneStatus};
use crate::random::Random;

/// The engine has a function that prepares a nonce, `sign_setup`, but it inverts each lane separately, by exponentiation.
pub(super) fn ecdsa_sign<H: Hash>(
    _: Ifma,
    scratch: &mut Scratch,
    curve: Curve,
    lanes: &mut [EcdsaLane<'_>],
    random: &mut Random<'_>,
) -> LaneStatus {
    let [nonces, x, y] = &mut scratch.staging.limbs;
    let status = sign_lanes::<H>(curve, lanes, random, nonces, x, |nonces, valid, x| {
        let filler = valid.first().unwrap_or_default();
        let source = |lane| if valid.is_ok(lane) { lane } else { filler };
        public_points(curve, nonces, source, x, y)
    });
    scratch.staging.wipe_limbs();
    status
}
