//! Numbers in limbs of 52 bits, as the multiplier takes them, four to a vector.

// The lint takes a safe function with target features for an unsafe one.
#![allow(clippy::missing_safety_doc)]

use core::arch::x86_64::__m256i;
use core::mem::transmute;

use crate::limbs::add_with_carry;
use crate::memory::{opaque, wipe_limbs};

/// The bits of a limb.
pub(super) const BITS: usize = 52;

/// The limbs of a vector.
pub(super) const LANES: usize = 4;

/// All bits of a limb.
pub(super) const MASK: u64 = (1 << BITS) - 1;

/// A number below 2^(208 K), the lowest limb first.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Number<const K: usize>(pub(super) [[u64; LANES]; K]);

impl<const K: usize> Number<K> {
    pub(super) const ZERO: Self = Self([[0; LANES]; K]);

    pub(super) const ONE: Self = {
        let mut one = Self::ZERO;
        one.0[0][0] = 1;
        one
    };

    pub(super) fn limbs(&self) -> &[u64] {
        self.0.as_flattened()
    }

    pub(super) fn limbs_mut(&mut self) -> &mut [u64] {
        self.0.as_flattened_mut()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    pub(super) fn vectors(&self) -> [__m256i; K] {
        // SAFETY: a vector is four lanes of 64 bits, and any bits are valid for either type.
        self.0.map(|lanes| unsafe { transmute::<[u64; LANES], __m256i>(lanes) })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    pub(super) fn from_vectors(vectors: [__m256i; K]) -> Self {
        // SAFETY: as in `vectors`.
        Self(vectors.map(|vector| unsafe { transmute::<__m256i, [u64; LANES]>(vector) }))
    }

    /// From limbs of 64 bits; the number has room for them.
    pub(super) fn from_words(words: &[u64]) -> Self {
        let mut number = Self::ZERO;
        for (i, limb) in number.limbs_mut().iter_mut().enumerate() {
            let (at, shift) = (i * BITS / 64, i * BITS % 64);
            let low = words.get(at).map_or(0, |word| word >> shift);
            // With a shift of zero, everything is in the first word.
            let high = words.get(at + 1).map_or(0, |word| word << 1 << (63 - shift));
            *limb = (low | high) & MASK;
        }
        number
    }

    /// Writes limbs of 64 bits, as many as there is room for.
    pub(super) fn write_words(&self, words: &mut [u64]) {
        let limbs = self.limbs();
        let limb = |at: usize| limbs.get(at).copied().unwrap_or_default();
        for (i, word) in words.iter_mut().enumerate() {
            let (at, shift) = (i * 64 / BITS, i * 64 % BITS);
            *word = limb(at) >> shift | limb(at + 1) << (BITS - shift);
            if 2 * BITS - shift < 64 {
                *word |= limb(at + 2) << (2 * BITS - shift);
            }
        }
    }

    /// The limbs from `from` on, as many as `limbs` and the result have.
    pub(super) fn part<const M: usize>(&self, from: usize, limbs: usize) -> Number<M> {
        let mut part = Number::ZERO;
        part.limbs_mut()[..limbs].copy_from_slice(&self.limbs()[from..from + limbs]);
        part
    }

    /// The sum, which has room.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = Self::ZERO;
        let mut carry = 0;
        for (sum, (a, b)) in sum.limbs_mut().iter_mut().zip(self.limbs().iter().zip(other.limbs())) {
            let limb = a + b + carry;
            *sum = limb & MASK;
            carry = limb >> BITS;
        }
        sum
    }

    /// The difference modulo 2^(208 K), and all ones if it is below zero.
    pub(super) fn minus(&self, other: &Self) -> (Self, u64) {
        let mut difference = Self::ZERO;
        let mut borrow = 0;
        for (to, (a, b)) in difference.limbs_mut().iter_mut().zip(self.limbs().iter().zip(other.limbs())) {
            let limb = a.wrapping_sub(*b).wrapping_sub(borrow);
            *to = limb & MASK;
            borrow = limb >> 63;
        }
        (difference, opaque(borrow.wrapping_neg()))
    }

    /// The number modulo `modulus`, if it is below twice that.
    pub(super) fn reduced_once(&self, modulus: &Self) -> Self {
        let (mut difference, is_below) = self.minus(modulus);
        for (limb, &kept) in difference.limbs_mut().iter_mut().zip(self.limbs()) {
            *limb ^= (*limb ^ kept) & is_below;
        }
        difference
    }

    /// Whether they are the same, in time that does not depend on them.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let differing = self.limbs().iter().zip(other.limbs()).fold(0, |any, (a, b)| any | (a ^ b));
        opaque(differing) == 0
    }

    pub(super) fn wipe(&mut self) {
        wipe_limbs(self.limbs_mut());
    }
}

/// Adds to the lowest of 64-bit limbs, which have room.
pub(super) fn add_words(sum: &mut [u64], other: &[u64]) {
    let mut carry = 0;
    for (at, limb) in sum.iter_mut().enumerate() {
        (*limb, carry) = add_with_carry(*limb, other.get(at).copied().unwrap_or_default(), carry);
    }
}
