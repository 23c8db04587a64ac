//! The services of the host program that a batch uses.

use hasten_crypto::Hash;

/// The host's own cryptography library. Hasten never generates randomness itself.
pub trait Host {
    /// Used to derive nonces.
    type Sha512: Hash;

    /// Randomness for private keys, and for the random part of nonces; `false` if there is none.
    fn private_random(bytes: &mut [u8]) -> bool;

    /// Randomness that the peer will see; `false` if there is none.
    fn public_random(bytes: &mut [u8]) -> bool;
}
