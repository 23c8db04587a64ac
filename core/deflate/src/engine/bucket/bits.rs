//! Output, bit by bit.

use crate::engine::Bits;

/// Bits into a slice, lowest first. It is written in whole words, so there must be some room behind the last bit
/// ([`Writer::has_room`]).
#[derive(Debug)]
pub(super) struct Writer<'a> {
    out: &'a mut [u8],
    /// How many bytes are complete.
    at: usize,
    bits: u64,
    count: u32,
}

/// What is written beyond the last bit.
const SLACK: usize = 16;

impl<'a> Writer<'a> {
    pub(super) fn new(before: Bits, out: &'a mut [u8]) -> Self {
        Self { out, at: 0, bits: before.value().into(), count: before.count().into() }
    }

    /// Whether `bits` more fit.
    pub(super) fn has_room(&self, bits: u64) -> bool {
        (bits / 8).saturating_add(SLACK as u64) <= (self.out.len() - self.at) as u64
    }

    /// How many bits short of a byte the output is.
    pub(super) fn missing(&self) -> u32 {
        self.count.wrapping_neg() & 7
    }

    /// Appends at most 56 bits.
    #[inline(always)]
    pub(super) fn push(&mut self, value: u64, count: u32) {
        self.bits |= value << self.count;
        self.count += count;
        self.out[self.at..self.at + 8].copy_from_slice(&self.bits.to_le_bytes());
        self.at += (self.count >> 3) as usize;
        self.bits >>= self.count & 56;
        self.count &= 7;
    }

    /// Completes the byte with zeros.
    pub(super) fn align(&mut self) {
        self.push(0, self.missing());
    }

    /// Appends bytes to a complete byte.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// The number of complete bytes, and the bits behind them.
    pub(super) fn finish(self) -> (usize, Bits) {
        (self.at, Bits::new(self.bits as u8, self.count as u8))
    }
}
