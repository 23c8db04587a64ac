//! What the program that hasten is a guest in does for a batch.

use hasten_crypto::Hash;

/// The host's own cryptography library. Randomness is never of our making.
pub trait Host {
    /// Derives nonces.
    type Sha512: Hash;

    /// Randomness for private keys, and the fresh part of nonces; `false` if there is none.
    fn private_random(bytes: &mut [u8]) -> bool;

    /// Randomness that the peer will see; `false` if there is none.
    fn public_random(bytes: &mut [u8]) -> bool;
}
