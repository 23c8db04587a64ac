//! Public-key operations by devices: the interface.

pub use hasten_names::Curve;

use super::Failure;
use crate::Fault;

/// One operation. All numbers have the most significant byte first, except X25519's, which are as in RFC 7748.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// `input` to the power of the private exponent. The result is as long as the modulus.
    RsaPrivate { key: RsaKey<'a>, input: &'a [u8] },
    /// A point times a scalar: for a shared secret, or for a signature's nonce with the base point. The result is x, then y.
    Multiply { curve: Curve, scalar: &'a [u8], point: Point<'a> },
    /// The result is u.
    X25519 { scalar: &'a [u8; 32], point: Option<&'a [u8; 32]> },
}

#[derive(Debug, Clone, Copy)]
pub enum Point<'a> {
    Base,
    /// Its coordinates. The caller has checked that it lies on the curve.
    At(&'a [u8], &'a [u8]),
}

/// A private key by its primes, each half as long as the modulus.
#[derive(Clone, Copy)]
pub struct RsaKey<'a> {
    pub p: &'a [u8],
    pub q: &'a [u8],
    pub dp: &'a [u8],
    pub dq: &'a [u8],
    pub qinv: &'a [u8],
}

impl std::fmt::Debug for RsaKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RsaKey of {} bits", self.p.len() * 16)
    }
}

/// Called with the ticket of each completed operation and its result.
pub type Done<'a> = dyn FnMut(u64, Result<&[u8], Fault>) + 'a;

/// Accepts operations and delivers their results later.
pub trait CryptoDevice {
    /// Hands over a copy of the operation. Returns at once.
    fn submit(&mut self, operation: &Operation, ticket: u64) -> Result<(), Failure>;

    /// Checks once for completed operations. A fault concerns the whole device.
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault>;

    fn in_flight(&self) -> usize;
}
