//! EMSA-PSS (RFC 8017, section 9.1.1) with MGF1: the padding of TLS 1.3.

use crate::hash::{Hash, MAX_OUTPUT, digest_into};

const TRAILER: u8 = 0xbc;

/// Fills `out`, as long as the modulus, with the padded digest.
///
/// In TLS, `salt` is as long as the digest, and random. Message and mask use the same hash. `None` if the digest has
/// the wrong length or the encoding does not fit into `modulus_bits - 1` bits.
pub fn pad<H: Hash>(digest: &[u8], salt: &[u8], modulus_bits: usize, out: &mut [u8]) -> Option<()> {
    if digest.len() != H::OUTPUT || out.len() != modulus_bits.div_ceil(8) {
        return None;
    }
    // One bit less than the modulus keeps the number below it: a whole byte less, if the modulus has a single bit in
    // its top byte.
    let encoded_bits = modulus_bits.checked_sub(1)?;
    let (zeros, encoded) = out.split_at_mut(out.len() - encoded_bits.div_ceil(8));
    let unused_bits = encoded.len() * 8 - encoded_bits;
    let block_len = encoded.len().checked_sub(H::OUTPUT + 1)?;
    let fill = block_len.checked_sub(salt.len() + 1)?;

    let mut hash = [0; MAX_OUTPUT];
    digest_into::<H>(&[&[0; 8], digest, salt], &mut hash);

    zeros.fill(0);
    let (block, tail) = encoded.split_at_mut(block_len);
    block[..fill].fill(0);
    block[fill] = 1;
    block[fill + 1..].copy_from_slice(salt);
    mask::<H>(&hash[..H::OUTPUT], block);
    block[0] &= 0xff >> unused_bits;
    tail[..H::OUTPUT].copy_from_slice(&hash[..H::OUTPUT]);
    tail[H::OUTPUT] = TRAILER;
    Some(())
}

/// XORs MGF1 of `seed` into `block`.
fn mask<H: Hash>(seed: &[u8], block: &mut [u8]) {
    let mut keyed = H::new();
    keyed.update(seed);
    let mut stream = [0; MAX_OUTPUT];
    for (counter, chunk) in block.chunks_mut(H::OUTPUT).enumerate() {
        let mut state = keyed.clone();
        state.update(&(counter as u32).to_be_bytes());
        state.finish(&mut stream[..H::OUTPUT]);
        chunk.iter_mut().zip(&stream).for_each(|(byte, mask)| *byte ^= mask);
    }
}
