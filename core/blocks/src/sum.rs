//! The hash function of tags and checksums: 64-bit multiplications, folded.
//!
//! It is no protection against people, who would need the user's own rights to write into the store, but against
//! accidents: a pair of unequal inputs collides with a probability of about 2⁻⁶⁴.

const PRIMES: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
];

/// Of a block, under a seed. The length counts.
pub(crate) fn of_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = PRIMES.map(|prime| prime ^ seed);
    let mut chunks = bytes.chunks_exact(128);
    for chunk in &mut chunks {
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = fold(*lane ^ word(&chunk[16 * i..]), PRIMES[i] ^ word(&chunk[16 * i + 8..]));
        }
    }
    let mut rest = [0; 128];
    rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    for (i, lane) in lanes.iter_mut().enumerate() {
        *lane = fold(*lane ^ word(&rest[16 * i..]), PRIMES[i] ^ word(&rest[16 * i + 8..]));
    }
    of_words(bytes.len() as u64 ^ seed, &lanes)
}

/// Of some numbers, under a seed.
pub(crate) fn of_words(seed: u64, words: &[u64]) -> u64 {
    let start = seed ^ PRIMES[5];
    let mixed = words.iter().zip(PRIMES.iter().cycle()).fold(start, |state, (word, prime)| {
        // Rotated, so that the order counts; finished each time, so that no zero swallows what came before.
        finish(state.rotate_left(23) ^ fold(word ^ prime, state ^ PRIMES[6]))
    });
    finish(mixed ^ words.len() as u64)
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // A factor of zero must not hide the other.
    (product as u64) ^ (product >> 64) as u64 ^ a.rotate_left(32) ^ b
}

/// A bijection in which every bit of the input changes half of the output.
fn finish(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_bit_of_a_block_and_of_the_seed_counts() {
        let block = [0x5a; 4096];
        let mut seen = HashSet::from([of_bytes(7, &block)]);
        for bit in 0..4096 * 8 {
            let mut other = block;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(of_bytes(7, &other)), "bit {bit}");
        }
        assert!((0..64).all(|bit| seen.insert(of_bytes(7 ^ 1 << bit, &block))));
    }

    #[test]
    fn order_and_number_count() {
        let inputs: [&[u64]; 6] = [&[], &[0], &[0, 0], &[1, 0], &[0, 1], &[1]];
        let sums: HashSet<_> = inputs.iter().map(|words| of_words(0, words)).collect();
        assert_eq!(sums.len(), inputs.len());
        assert_ne!(of_bytes(0, &[0; 127]), of_bytes(0, &[0; 128]));
    }
}
