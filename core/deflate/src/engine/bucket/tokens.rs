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

    /// Sets their number, which the sink has counted.
    pub(super) fn set_len(&mut self, count: usize) {
        assert!(count <= self.list.len());
        self.count = count;
    }

    /// Takes more tokens.
    pub(super) fn sink(&mut self) -> Sink {
        Sink {
            count: self.count,
            list: self.list.as_mut_ptr(),
            frequencies: self.frequencies.as_mut_ptr(),
            distances: self.distances.as_mut_ptr(),
        }
    }
}

/// Where a parser puts tokens: at most [`MOST`], and [`MOST_AT_ONCE`] more. Its fields stay in registers.
#[derive(Debug)]
pub(super) struct Sink {
    count: usize,
    list: *mut u32,
    frequencies: *mut u32,
    distances: *mut u32,
}

impl Sink {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(super) fn literal(&mut self, byte: u8) {
        // SAFETY: a byte is less than 512.
        unsafe { *self.frequencies.add(byte.into()) += 1 };
        self.push(u32::from(byte) | LITERAL << 24);
    }

    /// A match of `length` bytes, `distance` + 1 bytes back.
    #[inline(always)]
    pub(super) fn matched(&mut self, length: u32, distance: u32) {
        debug_assert!((SHORTEST..=LONGEST).contains(&length) && distance < 32_768);
        let (index, symbol) = (FIRST_MATCH - SHORTEST + length, distance_symbol(distance));
        // SAFETY: both arrays have a power of two of elements, within which the indices are kept.
        unsafe {
            *self.frequencies.add(index as usize & 511) += 1;
            *self.distances.add(symbol as usize & 31) += 1;
        }
        self.push(index | distance << 9 | symbol << 24);
    }

    #[inline(always)]
    fn push(&mut self, token: u32) {
        debug_assert!(self.count < MOST + MOST_AT_ONCE);
        // SAFETY: the parser stops at `MOST` tokens, and adds at most `MOST_AT_ONCE` between two looks at their number.
        unsafe { *self.list.add(self.count) = token };
        self.count += 1;
    }
}
