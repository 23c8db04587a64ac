//! What a block consists of: literals and matches.

use super::symbols::{LONGEST, SHORTEST, distance_symbol};

/// A block has at most this many tokens, so that its codes can follow what the input is like.
pub(super) const MOST: usize = 30_000;

/// One turn of the parser adds at most this many.
pub(super) const MOST_AT_ONCE: usize = 24;

/// The place of the shortest match among the frequencies, behind the literals.
pub(super) const FIRST_MATCH: u32 = 256;

/// No symbol of a distance.
const LITERAL: u32 = 31;

/// The tokens of a block. It may be all zeros.
///
/// A token has a literal, or [`FIRST_MATCH`] and the length less the shortest, in its lowest nine bits; then the distance
/// less one in fifteen; and above these the symbol of the distance.
#[repr(C)]
pub(super) struct Tokens {
    /// By literal and by length.
    pub(super) frequencies: [u32; 512],
    /// By symbol.
    pub(super) distances: [u32; 32],
    count: usize,
    list: [u32; MOST + MOST_AT_ONCE],
}

impl Tokens {
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.frequencies.fill(0);
        self.distances.fill(0);
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn list(&self) -> &[u32] {
        &self.list[..self.count]
    }

    #[inline(always)]
    pub(super) fn literal(&mut self, byte: u8) {
        self.frequencies[usize::from(byte)] += 1;
        self.push(u32::from(byte) | LITERAL << 24);
    }

    /// A match of `length` bytes, `distance` + 1 bytes back.
    #[inline(always)]
    pub(super) fn matched(&mut self, length: u32, distance: u32) {
        debug_assert!((SHORTEST..=LONGEST).contains(&length) && distance < 32_768);
        let (index, symbol) = (FIRST_MATCH - SHORTEST + length, distance_symbol(distance));
        self.frequencies[index as usize & 511] += 1;
        self.distances[symbol as usize & 31] += 1;
        self.push(index | distance << 9 | symbol << 24);
    }

    #[inline(always)]
    fn push(&mut self, token: u32) {
        self.list[self.count] = token;
        self.count += 1;
    }
}
