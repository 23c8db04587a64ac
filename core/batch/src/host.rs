//! The services of the host program that a batch uses.

use hasten_crypto::{Hash, LaneEngine};

/// The host's own cryptography library. Hasten never generates randomness itself.
pub trait Host {
    /// The engine that computes operations side by side, where the CPU runs it.
    type Lanes: LaneEngine;

    /// Used to derive nonces.
    type Sha512: Hash;

    /// Randomness for private keys, and for the random part of nonces; `false` if there is none.
    fn private_random(bytes: &mut [u8]) -> bool;

    /// Randomness that the peer will see; `false` if there is none.
    fn public_random(bytes: &mut [u8]) -> bool;

    /// Whether the running stack has room for so many bytes.
    fn has_stack(bytes: usize) -> bool;
}
