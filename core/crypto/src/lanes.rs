//! What an engine for lanes offers, whatever the CPU that it is for.

use core::fmt::Debug;

use hasten_names::{Curve, Group, LANES};

use crate::ecdhe::KeyPair;
use crate::ecdsa::{EcKey, EcdsaSignature};
use crate::hash::Hash;
use crate::memory::wipe;
use crate::random::Random;
use crate::rsa::RsaKey;

/// An engine that computes up to [`LANES`] operations of one kind side by side.
///
/// A value is the proof that this CPU runs the engine, so no method can be reached where it would fault. An engine whose
/// vectors are narrower computes a group in several passes.
///
/// No method panics on input, allocates, or leaves a secret in its memory. A lane without a result is not an error: the
/// caller runs the host's own function.
pub trait LaneEngine: Copy + Debug + Send + Sync + 'static {
    /// Working memory. One per thread; all zero between calls.
    type Scratch;

    /// Bytes of the stack that an operation may use. Coroutines, and threads of a frugal program, have less.
    const STACK: usize;

    /// The engine, if this CPU and operating system run it.
    fn detect() -> Option<Self>;

    fn scratch(self) -> Self::Scratch;

    /// Signs the padded inputs of one to eight lanes, whose keys all have the same size.
    ///
    /// The public operation is applied to every result, and a result that does not lead back to its input is withheld:
    /// from a signature spoiled by a fault in one prime, anyone could factor the modulus. Lanes without a result have
    /// zeros for a signature. If a length or a size is wrong, no lane has a result.
    fn rsa_private(self, scratch: &mut Self::Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus;

    /// Whether [`rsa_alone`](Self::rsa_alone) has results.
    const SIGNS_ALONE: bool = false;

    /// Computes what [`rsa_alone`](Self::rsa_alone) needs for this key, if that was not done before.
    fn prepare_alone(self, _: &RsaKey) {}

    /// Signs one padded input, at a fraction of what a batch costs; returns whether there is a result. For that, the same
    /// applies as for the lanes of [`rsa_private`](Self::rsa_private).
    fn rsa_alone(self, _: &mut Self::Scratch, lane: &mut RsaLane<'_>) -> bool {
        wipe(lane.signature);
        false
    }

    /// Checks signatures made elsewhere, in one to eight lanes whose keys all have the same size.
    ///
    /// The lanes in the result have good signatures; the signatures of the others are wiped. If a length or a size is
    /// wrong, none is good.
    fn rsa_check(self, scratch: &mut Self::Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus;

    /// Signs the digests of one to eight lanes. `H` is SHA-512, whatever hash the digests come from.
    ///
    /// `random` is the host's generator for private values and is called once for all lanes. If it repeats itself, as in a
    /// process resumed twice from one snapshot, the same digest gets the same signature again, and another digest gets
    /// another nonce: the key stays safe.
    ///
    /// A lane has no signature if its key is on another curve; none has one if there are more than eight, or if the
    /// generator fails.
    fn ecdsa_sign<H: Hash>(
        self,
        scratch: &mut Self::Scratch,
        curve: Curve,
        lanes: &mut [EcdsaLane<'_>],
        random: &mut Random<'_>,
    ) -> LaneStatus;

    /// Derives the shared secrets of one to eight lanes.
    ///
    /// A lane has no result, and zeros for a secret, if its peer's key is malformed, not on the curve or of low order:
    /// keys that the host library rejects as well.
    fn derive(self, scratch: &mut Self::Scratch, group: Group, lanes: &mut [DeriveLane<'_>]) -> LaneStatus;

    /// Passes up to `count` (at most eight) fresh key pairs to `sink`; returns how many.
    fn keygen(
        self,
        scratch: &mut Self::Scratch,
        group: Group,
        count: usize,
        random: &mut Random<'_>,
        sink: impl FnMut(KeyPair),
    ) -> usize;
}

/// One private operation of a batch.
pub struct RsaLane<'a> {
    pub key: &'a RsaKey,
    /// The message representative, big-endian, as long as the modulus and smaller.
    pub padded: &'a [u8],
    /// Receives the signature, as long as the modulus.
    pub signature: &'a mut [u8],
}

/// One signature of a batch.
pub struct EcdsaLane<'a> {
    pub key: &'a EcKey,
    /// The digest of the message, of any length: its leftmost bits count, as far as the curve has room.
    pub digest: &'a [u8],
    /// Receives the signature.
    pub signature: &'a mut Option<EcdsaSignature>,
}

/// One shared secret of a batch.
pub struct DeriveLane<'a> {
    /// Raw for X25519, a big-endian scalar otherwise.
    pub private: &'a [u8],
    /// The peer's public key as received.
    pub peer: &'a [u8],
    /// Receives the secret: [`Group::shared_len`] bytes.
    pub shared: &'a mut [u8],
}

/// Which lanes of a batch have a result: bit i is lane i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus(u8);

impl LaneStatus {
    /// No lane has a result.
    pub const NONE: Self = Self(0);

    pub const fn is_ok(self, lane: usize) -> bool {
        lane < LANES && self.0 >> lane & 1 == 1
    }

    /// Whether all of the first `lanes` lanes have one.
    pub const fn all_ok(self, lanes: usize) -> bool {
        self.count() == lanes && self.0.trailing_ones() as usize >= lanes
    }

    pub const fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// This lane, below [`LANES`], has a result.
    pub fn set(&mut self, lane: usize) {
        self.0 |= 1 << lane;
    }

    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for lanes"))]
    pub(crate) fn clear(&mut self, lane: usize) {
        self.0 &= !(1 << lane);
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The lowest lane that is set.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for lanes"))]
    pub(crate) fn first(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }
}
