//! The host's hash functions, as used by this crate.

/// A hash function in the middle of a message.
///
/// It wraps the host's implementation, for example `SHA256_Init`, `SHA256_Update` and `SHA256_Final` of libcrypto over
/// a context held by value. States may depend on secrets: wipe them on drop.
pub trait Hash: Clone {
    /// The length of a digest in bytes, at most [`MAX_OUTPUT`].
    const OUTPUT: usize;
    /// The block length of the compression function in bytes, at most [`MAX_BLOCK`].
    const BLOCK: usize;

    fn new() -> Self;
    fn update(&mut self, bytes: &[u8]);
    /// Writes [`Self::OUTPUT`] bytes; `out` has that length.
    fn finish(self, out: &mut [u8]);
}

/// The longest digest: SHA-512.
pub const MAX_OUTPUT: usize = 64;
/// The longest block: SHA-384 and SHA-512.
pub const MAX_BLOCK: usize = 128;

/// The digest of `parts`, concatenated, in the first bytes of `out`.
pub(crate) fn digest_into<H: Hash>(parts: &[&[u8]], out: &mut [u8; MAX_OUTPUT]) {
    let mut state = H::new();
    parts.iter().for_each(|part| state.update(part));
    state.finish(&mut out[..H::OUTPUT]);
}
