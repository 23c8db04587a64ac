//! Ephemeral key pairs, generated ahead of their use.

use std::fmt;

use hasten_names::{Curve, Group, LANES};

use crate::ecdsa::LIMBS;
use crate::lanes::LaneEngine;
use crate::memory::{Plain, SecretStack, wipe, wipe_limbs};
use crate::order::{self, Order};
use crate::random::{self, Random};

/// The form byte of an uncompressed point.
pub(crate) const UNCOMPRESSED: u8 = 4;

/// A fresh key pair; the private key is wiped when it is dropped.
pub struct KeyPair {
    group: Group,
    bytes: KeyPairBytes,
}

impl KeyPair {
    pub(crate) fn new(group: Group, bytes: KeyPairBytes) -> Self {
        Self { group, bytes }
    }

    /// From keys as [`private`](Self::private) and [`public`](Self::public) give them; `None` if their lengths are wrong.
    pub fn from_keys(group: Group, private: &[u8], public: &[u8]) -> Option<Self> {
        if (private.len(), public.len()) != (group.private_len(), group.public_len()) {
            return None;
        }
        let mut pair = Self::new(group, KeyPairBytes::ZERO);
        pair.bytes[..private.len()].copy_from_slice(private);
        pair.bytes[Group::MAX_PRIVATE..][..public.len()].copy_from_slice(public);
        Some(pair)
    }

    pub fn group(&self) -> Group {
        self.group
    }

    /// Raw for X25519, a big-endian scalar otherwise.
    pub fn private(&self) -> &[u8] {
        &self.bytes[..self.group.private_len()]
    }

    /// As sent over the wire.
    pub fn public(&self) -> &[u8] {
        &self.bytes[Group::MAX_PRIVATE..][..self.group.public_len()]
    }
}

impl Drop for KeyPair {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("group", &self.group).finish_non_exhaustive()
    }
}

/// The private key, then the public key at a fixed offset, behind the longest private key.
pub(crate) type KeyPairBytes = [u8; Group::MAX_PRIVATE + Group::MAX_PUBLIC];

/// Draws a private key of a curve into its limbs of `out`: a number in `1..order`.
pub(crate) fn random_scalar(curve: Curve, random: &mut Random<'_>, out: &mut [u64; LIMBS]) -> bool {
    fn draw<const N: usize>(order: &Order<N>, random: &mut Random<'_>, out: &mut [u64; LIMBS]) -> bool {
        let Some(mut scalar) = random::scalar(random, |candidate| order.contains(candidate)) else {
            return false;
        };
        out[..N].copy_from_slice(&scalar);
        wipe_limbs(&mut scalar);
        true
    }
    match curve {
        Curve::P256 => draw(&order::P256, random, out),
        Curve::P384 => draw(&order::P384, random, out),
    }
}

/// RFC 7748, section 5. Engines do this as well; hosts that export the key expect it to be done.
pub(crate) fn clamp(scalar: &mut [u8]) {
    scalar[0] &= 0xf8;
    scalar[31] = scalar[31] & 0x7f | 0x40;
}

/// Unused key pairs of one group. One per thread; a forked child finds its copy empty.
///
/// Every method takes the time of day, in ns, and first wipes key pairs drawn more than a second before it, or after
/// it: if a copy of the process is resumed later, from a checkpoint or a snapshot, it does not find keys that the
/// original has used.
pub struct KeyPool {
    group: Group,
    pairs: SecretStack<KeyPairBytes, { Self::CAPACITY }>,
}

impl KeyPool {
    pub const CAPACITY: usize = 2 * LANES;

    /// `None` if the kernel cannot keep the pool out of forked children.
    pub fn new(group: Group) -> Option<Self> {
        Some(Self { group, pairs: SecretStack::new()? })
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn available(&mut self, now: u64) -> usize {
        self.pairs.expire(now);
        self.pairs.len()
    }

    /// Adds eight key pairs, if there is room; returns how many were added.
    pub fn refill<L: LaneEngine>(
        &mut self,
        now: u64,
        engine: L,
        scratch: &mut L::Scratch,
        random: &mut Random<'_>,
    ) -> usize {
        if self.available(now) + LANES > Self::CAPACITY {
            return 0;
        }
        let mut added = 0;
        engine.keygen(scratch, self.group, LANES, random, |pair| {
            added += usize::from(self.pairs.push(pair.bytes).is_ok());
        });
        added
    }

    pub fn take(&mut self, now: u64) -> Option<KeyPair> {
        self.pairs.expire(now);
        self.pairs.pop().map(|bytes| KeyPair::new(self.group, bytes))
    }

    /// Wipes all key pairs.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }
}
