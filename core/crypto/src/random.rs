//! Secret scalars from the host's random generator.

use crate::memory::{SecretStack, wipe};

/// The host library's DRBG: fills the buffer, or returns false and leaves it undefined.
pub type Random<'a> = dyn FnMut(&mut [u8]) -> bool + 'a;

/// One draw in 2^32 is rejected on P-256 and one in 2^190 on P-384; after this many, the generator must be broken.
const DRAWS: usize = 8;

/// Draws N limbs until `accept` returns all ones, so the result is uniform over the accepted values.
pub(crate) fn scalar<const N: usize>(
    random: &mut Random<'_>,
    accept: impl Fn(&[u64; N]) -> u64,
) -> Option<[u64; N]> {
    let mut bytes = [[0; 8]; N];
    let mut scalar = None;
    for _ in 0..DRAWS {
        if !random(bytes.as_flattened_mut()) {
            break;
        }
        let candidate = bytes.map(u64::from_le_bytes);
        if accept(&candidate) == u64::MAX {
            scalar = Some(candidate);
            break;
        }
    }
    wipe(bytes.as_flattened_mut());
    scalar
}

/// Random bytes drawn ahead of their use, for values that a handshake shows to its peer: hello randoms, session
/// identifiers, ticket nonces, salts. A host's generator spends more on each call than on the bytes.
///
/// Not for keys. Bytes are zeroed when they are taken, a forked child finds its copy empty, and bytes more than a
/// second old are not handed out: a copy of the process that is resumed later asks the generator itself.
pub struct RandomPool {
    blocks: SecretStack<Block, BLOCKS>,
}

const BLOCKS: usize = 64;

type Block = [u8; 16];

impl RandomPool {
    /// `None` if the kernel cannot keep the pool out of forked children.
    pub fn new() -> Option<Self> {
        Some(Self { blocks: SecretStack::new()? })
    }

    /// Fills `out` at a time of day in ns; false if the generator fails, which leaves `out` undefined.
    pub fn fill(&mut self, now: u64, out: &mut [u8], random: &mut Random<'_>) -> bool {
        self.blocks.expire(now);
        for chunk in out.chunks_mut(size_of::<Block>()) {
            let Some(mut block) = self.blocks.pop().or_else(|| self.refill(random)) else { return false };
            chunk.copy_from_slice(&block[..chunk.len()]);
            wipe(&mut block);
        }
        true
    }

    /// Draws as many blocks as there is room for, and takes one of them.
    fn refill(&mut self, random: &mut Random<'_>) -> Option<Block> {
        let mut bytes = [0; BLOCKS * size_of::<Block>()];
        if random(&mut bytes) {
            let (blocks, _) = bytes.as_chunks();
            // The pool was empty, so everything fits.
            blocks.iter().all(|&block| self.blocks.push(block).is_ok());
        }
        wipe(&mut bytes);
        self.blocks.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_until_one_is_accepted_and_gives_up_in_time() {
        let mut draws = 0;
        let mut counting = |bytes: &mut [u8]| {
            draws += 1;
            bytes.fill(draws);
            true
        };
        let third = |candidate: &[u64; 2]| if candidate[0] & 0xff == 3 { u64::MAX } else { 0 };
        assert_eq!(scalar(&mut counting, third), Some([0x0303_0303_0303_0303; 2]));
        draws = 0;
        let mut counting = |_: &mut [u8]| {
            draws += 1;
            true
        };
        assert_eq!(scalar::<2>(&mut counting, |_| 0), None);
        assert_eq!(draws as usize, DRAWS);
        assert_eq!(
            scalar::<2>(&mut |_| false, |_| u64::MAX),
            None,
            "a generator that fails is not asked again"
        );
    }

    #[test]
    fn a_pool_hands_out_every_byte_once_and_asks_seldom() {
        let (mut next, mut calls) = (0u64, 0);
        let mut random = |bytes: &mut [u8]| {
            calls += 1;
            bytes.chunks_mut(8).for_each(|chunk| {
                next += 1;
                chunk.copy_from_slice(&next.to_le_bytes()[..chunk.len()]);
            });
            true
        };
        let mut pool = RandomPool::new().expect("Linux 4.14");
        let mut seen = std::collections::HashSet::new();
        for _ in 0..200 {
            let mut out = [0; 32];
            assert!(pool.fill(0, &mut out, &mut random));
            assert!(out.chunks(16).all(|block| seen.insert(block.to_vec())), "a block came twice");
        }
        assert_eq!(calls, (200 * 32_usize).div_ceil(BLOCKS * 16));
    }

    #[test]
    fn a_copy_that_goes_on_later_gets_other_bytes() {
        const SECOND: u64 = 1_000_000_000;
        let mut draws = 0;
        let mut random = |bytes: &mut [u8]| {
            draws += 1;
            bytes.fill(draws);
            true
        };
        let mut pool = RandomPool::new().expect("Linux 4.14");
        let mut at = |now| {
            let mut out = [0];
            assert!(pool.fill(now, &mut out, &mut random));
            out[0]
        };
        assert_eq!([at(9 * SECOND), at(10 * SECOND)], [1, 1]);
        assert_eq!(at(10 * SECOND + 1), 2, "drawn more than a second ago");
        assert_eq!(at(10 * SECOND), 3, "the clock was set back");
    }

    #[test]
    fn a_generator_that_fails_is_reported() {
        let mut pool = RandomPool::new().expect("Linux 4.14");
        assert!(!pool.fill(0, &mut [0; 4], &mut |_| false));
    }
}
