//! ECDSA nonces from the private key, the message and fresh randomness.
//!
//! Signing two messages with one nonce reveals the key, and randomness alone repeats when a process is resumed twice
//! from the same memory: a snapshot of a virtual machine, a restored checkpoint. With key and message hashed in, as
//! OpenSSL does it, both copies make either the same signature or two unrelated ones. Randomness is still needed: if a
//! message always had the same nonce, a fault while signing it again would also reveal the key.

use crate::hash::{Hash, MAX_OUTPUT, digest_into};
use crate::limbs;
use crate::memory::wipe;
use crate::order::Order;

/// Bytes of fresh randomness in a nonce: as strong as the strongest curve, and short enough for P-256 with SHA-256 to
/// fit into one block of SHA-512.
pub(crate) const FRESH: usize = 32;

/// Separates these hashes from anything else that may be hashed with a private key.
const LABEL: &[u8] = b"ecdsa nonce";

/// SHA-512(label, key, randomness, message digest) mod order, where everything but the digest has a fixed length.
///
/// The hash is at least 128 bits longer than the order, so no remainder is likelier than another by more than one part
/// in 2^128. Zero is possible; the caller must reject it.
pub(crate) fn derive<H: Hash, const N: usize>(
    order: &Order<N>,
    private: &[u64; N],
    fresh: &[u8; FRESH],
    digest: &[u8],
) -> [u64; N] {
    const { assert!(H::OUTPUT == MAX_OUTPUT, "SHA-512") };
    let mut key = [[0; 8]; N];
    limbs::to_be(private, key.as_flattened_mut());
    let mut wide = [0; MAX_OUTPUT];
    digest_into::<H>(&[LABEL, key.as_flattened(), fresh, digest], &mut wide);
    let nonce = order.reduce_wide(&wide);
    wipe(key.as_flattened_mut());
    wipe(&mut wide);
    nonce
}
