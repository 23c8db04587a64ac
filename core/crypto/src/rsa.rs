//! RSA private keys in the engine's layout.

mod check;
mod consistency;

use std::fmt;
use std::sync::OnceLock;

use hasten_names::Algorithm;

use crate::Ifma;
use crate::crt::{self, Powers, Prepared};
use crate::limbs::{bit_length, from_le, less_than, multiply, to_be};
use crate::memory::{wipe, wipe_limbs};

/// The only public exponent the engine verifies with, and in practice the only one in use.
const EXPONENT: [u64; 1] = [65537];

pub(crate) const MODULUS_LIMBS: usize = 4096 / 64;
pub(crate) const PRIME_LIMBS: usize = MODULUS_LIMBS / 2;

/// The modulus sizes that run in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RsaSize {
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

impl RsaSize {
    pub const ALL: [Self; 3] = [Self::Rsa2048, Self::Rsa3072, Self::Rsa4096];

    pub const fn bits(self) -> usize {
        match self {
            Self::Rsa2048 => 2048,
            Self::Rsa3072 => 3072,
            Self::Rsa4096 => 4096,
        }
    }

    /// Bytes of the modulus, a padded input or a signature.
    pub const fn bytes(self) -> usize {
        self.bits() / 8
    }

    pub const fn sign(self) -> Algorithm {
        match self {
            Self::Rsa2048 => Algorithm::Rsa2048Sign,
            Self::Rsa3072 => Algorithm::Rsa3072Sign,
            Self::Rsa4096 => Algorithm::Rsa4096Sign,
        }
    }
}

/// The numbers of a two-prime key as little-endian bytes, the form in which `EVP_PKEY_get_params` returns them on
/// x86-64. Leading zeros are allowed.
#[derive(Clone, Copy)]
pub struct RsaParts<'a> {
    pub n: &'a [u8],
    pub e: &'a [u8],
    pub p: &'a [u8],
    pub q: &'a [u8],
    pub dp: &'a [u8],
    pub dq: &'a [u8],
    pub qinv: &'a [u8],
}

/// A private key for the engine; wiped when dropped.
pub struct RsaKey {
    size: RsaSize,
    pub(crate) n: [u64; MODULUS_LIMBS],
    pub(crate) p: [u64; PRIME_LIMBS],
    pub(crate) q: [u64; PRIME_LIMBS],
    pub(crate) dp: [u64; PRIME_LIMBS],
    pub(crate) dq: [u64; PRIME_LIMBS],
    pub(crate) qinv: [u64; PRIME_LIMBS],
    /// Computed for the first check of a signature.
    montgomery: OnceLock<check::Montgomery>,
    /// For operations one at a time, where the CPU does them.
    prepared: OnceLock<Prepared>,
}

impl RsaKey {
    /// Copies a key from its host, if its numbers belong together.
    pub fn new(parts: &RsaParts<'_>) -> Result<Box<Self>, UnsupportedKey> {
        let mut exponent = [0; 1];
        if from_le(parts.e, &mut exponent).is_none() || exponent != EXPONENT {
            return Err(UnsupportedKey::Exponent);
        }
        let mut key = Box::new(Self {
            size: RsaSize::Rsa4096,
            n: [0; MODULUS_LIMBS],
            p: [0; PRIME_LIMBS],
            q: [0; PRIME_LIMBS],
            dp: [0; PRIME_LIMBS],
            dq: [0; PRIME_LIMBS],
            qinv: [0; PRIME_LIMBS],
            montgomery: OnceLock::new(),
            prepared: OnceLock::new(),
        });
        from_le(parts.n, &mut key.n).ok_or(UnsupportedKey::Size)?;
        let bits = bit_length(&key.n);
        key.size = RsaSize::ALL.into_iter().find(|size| size.bits() == bits).ok_or(UnsupportedKey::Size)?;
        let prime_limbs = key.size.bits() / 128;
        let read = |bytes, limbs: &mut [u64; PRIME_LIMBS]| {
            from_le(bytes, &mut limbs[..prime_limbs]).ok_or(UnsupportedKey::Primes)
        };
        read(parts.p, &mut key.p)?;
        read(parts.q, &mut key.q)?;
        read(parts.dp, &mut key.dp)?;
        read(parts.dq, &mut key.dq)?;
        read(parts.qinv, &mut key.qinv)?;
        if key.is_consistent() { Ok(key) } else { Err(UnsupportedKey::Primes) }
    }

    /// Computes what the private operation on its own needs, the first time. Not when the key is read: that may be on a stack
    /// which is too small for it.
    pub(crate) fn prepare(&self, ifma: Ifma) {
        if self.prepared.get().is_none() {
            self.prepare_once(ifma);
            crt::leave_nothing(ifma);
        }
    }

    /// Its frame is wiped by the caller, as the result is in it before it is in the key.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unreachable_code, reason = "there is no proof"))]
    #[inline(never)]
    fn prepare_once(&self, ifma: Ifma) {
        // Nobody waits for another thread, which a fork may have left behind.
        if let Err(mut second) = self.prepared.set(Prepared::new(ifma, self)) {
            second.wipe();
        }
    }

    /// The private operation on its own; the signature is withheld if it does not lead back to `padded`. Both are as long as the
    /// modulus, or there is no result.
    pub(crate) fn sign_alone(
        &self,
        ifma: Ifma,
        powers: &mut Powers,
        padded: &[u8],
        signature: &mut [u8],
    ) -> bool {
        self.prepare(ifma);
        let fits = padded.len() == self.size.bytes() && signature.len() == self.size.bytes();
        match self.prepared.get() {
            Some(prepared) if fits => prepared.sign(powers, self, padded, signature),
            _ => {
                wipe(signature);
                false
            }
        }
    }

    pub fn size(&self) -> RsaSize {
        self.size
    }

    /// The key in the form devices expect.
    pub fn numbers(&self) -> RsaNumbers {
        let half = self.size.bytes() / 2;
        let mut bytes = [[0; PRIME_LIMBS * 8]; 5];
        for (number, limbs) in bytes.iter_mut().zip([&self.p, &self.q, &self.dp, &self.dq, &self.qinv]) {
            to_be(&limbs[..half / 8], &mut number[..half]);
        }
        RsaNumbers { bytes, half }
    }

    /// Whether the primes have half the bits each and multiply to the modulus, and the remaining numbers are reduced
    /// and are the inverses they should be.
    fn is_consistent(&self) -> bool {
        let half = self.size.bits() / 2;
        let mut product = [0; MODULUS_LIMBS];
        multiply(&self.p, &self.q, &mut product);
        let consistent = bit_length(&self.p) == half
            && bit_length(&self.q) == half
            && product == self.n
            && self.n[0] & 1 == 1
            && less_than(&self.dp, &self.p) != 0
            && less_than(&self.dq, &self.q) != 0
            && less_than(&self.qinv, &self.p) != 0;
        wipe_limbs(&mut product);
        consistent && self.is_private()
    }

    fn is_private(&self) -> bool {
        let limbs = self.size.bits() / 128;
        let [p, q, dp, dq, qinv] =
            [&self.p, &self.q, &self.dp, &self.dq, &self.qinv].map(|number| &number[..limbs]);
        consistency::is_private_exponent(dp, p)
            && consistency::is_private_exponent(dq, q)
            && consistency::are_inverses(q, qinv, p)
    }
}

impl Drop for RsaKey {
    fn drop(&mut self) {
        for secret in [&mut self.p, &mut self.q, &mut self.dp, &mut self.dq, &mut self.qinv] {
            wipe_limbs(secret);
        }
        if let Some(prepared) = self.prepared.get_mut() {
            prepared.wipe();
        }
    }
}

impl fmt::Debug for RsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RsaKey").field("size", &self.size).finish_non_exhaustive()
    }
}

/// The numbers of a private key with the most significant byte first, each half as long as the modulus; wiped when dropped.
pub struct RsaNumbers {
    bytes: [[u8; PRIME_LIMBS * 8]; 5],
    half: usize,
}

impl RsaNumbers {
    /// p, q, the exponents of each, and the inverse of q modulo p.
    pub fn all(&self) -> [&[u8]; 5] {
        self.bytes.each_ref().map(|number| &number[..self.half])
    }
}

impl Drop for RsaNumbers {
    fn drop(&mut self) {
        wipe(self.bytes.as_flattened_mut());
    }
}

impl fmt::Debug for RsaNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RsaNumbers").finish_non_exhaustive()
    }
}

/// Why a key is left to its host library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedKey {
    /// An RSA modulus of a size other than 2048, 3072 or 4096 bits.
    Size,
    /// An RSA public exponent other than 65537: such signatures could not be verified in a batch.
    Exponent,
    /// RSA primes of unequal size, more than two of them, or numbers that do not belong together.
    Primes,
    /// An EC private key that is not in `1..order` of its curve.
    Scalar,
}

impl fmt::Display for UnsupportedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "RSA modulus is not of 2048, 3072 or 4096 bits: the original path signs",
            Self::Exponent => "RSA public exponent is not 65537: the original path signs",
            Self::Primes => "RSA key is not made of two primes of equal size: the original path signs",
            Self::Scalar => "EC private key is out of range for its curve: the original path signs",
        })
    }
}

impl std::error::Error for UnsupportedKey {}
