//! ECDSA: keys, and the rest of a signature once its nonce is known.
//!
//! Almost all of a signature's cost is in its nonce k: the point k·G, which an engine computes, and the inverse of k. k is
//! derived from the key, the message and fresh randomness, so nothing can be precomputed; [`sign_lanes`] handles up to eight
//! nonces at a time.

use std::fmt;

use hasten_names::{Curve, LANES};

use crate::encoding::der;
use crate::hash::Hash;
use crate::lanes::{EcdsaLane, LaneStatus};
use crate::limbs;
use crate::memory::{wipe, wipe_limbs};
use crate::nonce::{self, FRESH};
use crate::order::{self, Order};
use crate::random::Random;
use crate::rsa::UnsupportedKey;

/// Limbs of the largest scalar.
pub(crate) const LIMBS: usize = 6;

/// A number for each lane.
pub(crate) type Lanes = [[u64; LIMBS]; LANES];

/// A private key; wiped when dropped.
pub struct EcKey {
    curve: Curve,
    /// In Montgomery form.
    scalar: [u64; LIMBS],
}

impl EcKey {
    /// From the private scalar as little-endian bytes (`EVP_PKEY_get_params` on x86-64).
    pub fn new(curve: Curve, scalar: &[u8]) -> Result<Self, UnsupportedKey> {
        let mut key = Self { curve, scalar: [0; LIMBS] };
        limbs::from_le(scalar, &mut key.scalar).ok_or(UnsupportedKey::Scalar)?;
        match curve {
            Curve::P256 => key.convert(&order::P256),
            Curve::P384 => key.convert(&order::P384),
        }?;
        Ok(key)
    }

    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// Derives a nonce for this key and message into the curve's limbs of `out`. It may be zero.
    pub(crate) fn nonce<H: Hash>(&self, fresh: &[u8; FRESH], digest: &[u8], out: &mut [u64; LIMBS]) {
        match self.curve {
            Curve::P256 => self.derive::<H, 4>(&order::P256, fresh, digest, out),
            Curve::P384 => self.derive::<H, 6>(&order::P384, fresh, digest, out),
        }
    }

    fn derive<H: Hash, const N: usize>(
        &self,
        order: &Order<N>,
        fresh: &[u8; FRESH],
        digest: &[u8],
        out: &mut [u64; LIMBS],
    ) {
        let (scalar, _) = self.scalar.split_first_chunk().expect("N is 4 or 6");
        let mut private = order.out_of_montgomery(scalar);
        let mut nonce = nonce::derive::<H, N>(order, &private, fresh, digest);
        out[..N].copy_from_slice(&nonce);
        wipe_limbs(&mut private);
        wipe_limbs(&mut nonce);
    }

    /// The signature of a message digest, whose leftmost bits count as far as the curve has room, with a nonce k: 1/k
    /// in Montgomery form, and x(k·G) mod order.
    ///
    /// `None` if r or s is zero, as happens once in 2^256: the standard requires another nonce then.
    pub(crate) fn complete(
        &self,
        inverse: &[u64; LIMBS],
        r: &[u64; LIMBS],
        digest: &[u8],
    ) -> Option<EcdsaSignature> {
        match self.curve {
            Curve::P256 => complete(&order::P256, self, inverse, r, digest),
            Curve::P384 => complete(&order::P384, self, inverse, r, digest),
        }
    }

    fn convert<const N: usize>(&mut self, order: &Order<N>) -> Result<(), UnsupportedKey> {
        let (scalar, rest) = self.scalar.split_first_chunk_mut().expect("N is 4 or 6");
        if order.contains(scalar) & limbs::is_zero(rest) == 0 {
            return Err(UnsupportedKey::Scalar);
        }
        *scalar = order.to_montgomery(scalar);
        Ok(())
    }
}

impl Drop for EcKey {
    fn drop(&mut self) {
        wipe_limbs(&mut self.scalar);
    }
}

impl fmt::Debug for EcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EcKey").field("curve", &self.curve).finish_non_exhaustive()
    }
}

/// The numbers r and s, big-endian, each as long as the curve's scalars.
#[derive(Clone, Copy, Debug)]
pub struct EcdsaSignature {
    curve: Curve,
    r: [u8; LIMBS * 8],
    s: [u8; LIMBS * 8],
}

impl EcdsaSignature {
    /// Room for the DER encoding of a signature on any curve.
    pub const MAX_DER: usize = 104;

    pub fn r(&self) -> &[u8] {
        &self.r[..self.curve.bytes()]
    }

    pub fn s(&self) -> &[u8] {
        &self.s[..self.curve.bytes()]
    }

    /// Writes the `ECDSA-Sig-Value` of X.509 and TLS; returns its length, or `None` if `out` is too short.
    pub fn to_der(&self, out: &mut [u8]) -> Option<usize> {
        der::ecdsa_signature(self.r(), self.s(), out)
    }
}

/// Signs the digests of lanes, as [`LaneEngine::ecdsa_sign`](crate::LaneEngine::ecdsa_sign) does it.
///
/// `public_x` is the engine's part: given nonces k and the lanes that have one, it writes x(k·G) and returns the lanes for
/// which it could. The caller wipes `nonces` and `x`.
pub(crate) fn sign_lanes<H: Hash>(
    curve: Curve,
    lanes: &mut [EcdsaLane<'_>],
    random: &mut Random<'_>,
    nonces: &mut Lanes,
    x: &mut Lanes,
    public_x: impl FnOnce(&Lanes, LaneStatus, &mut Lanes) -> LaneStatus,
) -> LaneStatus {
    lanes.iter_mut().for_each(|lane| *lane.signature = None);
    let mut status = LaneStatus::NONE;
    if lanes.is_empty() || lanes.len() > LANES {
        return status;
    }
    let valid = derive_nonces::<H>(curve, lanes, random, nonces);
    if valid == LaneStatus::NONE {
        return status;
    }
    let ready = public_x(nonces, valid, x).and(valid);
    match curve {
        Curve::P256 => invert_and_reduce(&order::P256, ready, nonces, x),
        Curve::P384 => invert_and_reduce(&order::P384, ready, nonces, x),
    }
    for (i, lane) in lanes.iter_mut().enumerate().filter(|&(i, _)| ready.is_ok(i)) {
        *lane.signature = lane.key.complete(&nonces[i], &x[i], lane.digest);
        if lane.signature.is_some() {
            status.set(i);
        }
    }
    status
}

/// Returns the lanes that have a nonce.
fn derive_nonces<H: Hash>(
    curve: Curve,
    lanes: &[EcdsaLane<'_>],
    random: &mut Random<'_>,
    nonces: &mut Lanes,
) -> LaneStatus {
    let mut valid = LaneStatus::NONE;
    let mut fresh = [[0; FRESH]; LANES];
    if random(fresh[..lanes.len()].as_flattened_mut()) {
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

/// Turns nonces k into 1/k in Montgomery form, and coordinates into numbers mod order.
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

/// s = k⁻¹ (digest + r·d) mod order.
fn complete<const N: usize>(
    order: &Order<N>,
    key: &EcKey,
    inverse: &[u64; LIMBS],
    r: &[u64; LIMBS],
    digest: &[u8],
) -> Option<EcdsaSignature> {
    let r = r.first_chunk::<N>()?;
    let scalar = key.scalar.first_chunk::<N>()?;
    let message = order.reduce(&message_representative(digest));
    let mut sum = order.add(&message, &order.multiply(scalar, r));
    let s = order.multiply(inverse.first_chunk::<N>()?, &sum);
    wipe_limbs(&mut sum);
    if limbs::is_zero(r) | limbs::is_zero(&s) != 0 {
        return None;
    }
    let mut signature = EcdsaSignature { curve: key.curve, r: [0; LIMBS * 8], s: [0; LIMBS * 8] };
    limbs::to_be(r, &mut signature.r[..N * 8]);
    limbs::to_be(&s, &mut signature.s[..N * 8]);
    Some(signature)
}

/// The leftmost bits of a digest as a number (bits2int of FIPS 186-5; only for curves of whole limbs).
fn message_representative<const N: usize>(digest: &[u8]) -> [u64; N] {
    limbs::from_be_padded(&digest[..digest.len().min(N * 8)])
}
