//! ECDSA: keys, and the rest of a signature once its nonce is known.
//!
//! Almost all of a signature's cost is in its nonce k: the point k·G and the inverse of k. k is derived from the key,
//! the message and fresh randomness, so nothing can be precomputed; [`ecdsa_sign`](crate::ecdsa_sign) handles eight
//! nonces at a time.

use std::fmt;

use hasten_names::Curve;

use crate::encoding::der;
use crate::hash::Hash;
use crate::limbs;
use crate::memory::wipe_limbs;
use crate::nonce::{self, FRESH};
use crate::order::{self, Order};
use crate::rsa::UnsupportedKey;

/// Limbs of the largest scalar.
pub(crate) const LIMBS: usize = 6;

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
