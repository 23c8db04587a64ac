//! Arithmetic modulo 2^255 - 19, eight numbers at a time.
//!
//! A number is five limbs of 51 bits; a limb is one vector with a lane for each number. The AVX-512 IFMA multiplier
//! takes 52 bits, so every function here returns limbs below [`TIGHT`], and accepts arguments up to that bound. The
//! bounds noted in the code are on limbs.

// The lint takes a safe function with target features for an unsafe one.
#![allow(clippy::missing_safety_doc)]

use std::arch::x86_64::*;
use std::mem::transmute;

use hasten_names::LANES;

const BITS: u32 = 51;
const LIMBS: usize = 5;

/// 2^255 = 19.
const FOLD: i64 = 19;

/// 2^51 + 2^15: the upper bound after a carry.
#[cfg(test)]
const TIGHT: u64 = (1 << BITS) + (1 << 15);

/// Limbs of eight numbers; the lanes of a limb are adjacent.
pub(super) type Lanes = [[u64; LANES]; LIMBS];

#[derive(Clone, Copy)]
pub(super) struct Field([__m512i; LIMBS]);

impl Field {
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn load(lanes: &Lanes) -> Self {
        // SAFETY: a vector is eight lanes of 64 bits, and any bits are valid for either type.
        Self(lanes.map(|limb| unsafe { transmute::<[u64; LANES], __m512i>(limb) }))
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn store(&self) -> Lanes {
        // SAFETY: as in `load`.
        self.0.map(|limb| unsafe { transmute::<__m512i, [u64; LANES]>(limb) })
    }

    /// The same small number in every lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn splat(number: i64) -> Self {
        let zero = _mm512_setzero_si512();
        Self([_mm512_set1_epi64(number), zero, zero, zero, zero])
    }

    /// Swaps the numbers in the lanes of `mask`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn swap(mask: __mmask8, a: &mut Self, b: &mut Self) {
        for (a, b) in a.0.iter_mut().zip(&mut b.0) {
            let left = _mm512_mask_blend_epi64(mask, *a, *b);
            *b = _mm512_mask_blend_epi64(mask, *b, *a);
            *a = left;
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn add(&self, other: &Self) -> Self {
        let mut sum = self.0;
        for (sum, &other) in sum.iter_mut().zip(&other.0) {
            *sum = _mm512_add_epi64(*sum, other);
        }
        carry(sum)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn subtract(&self, other: &Self) -> Self {
        // Twice the prime has limbs above TIGHT, so none becomes negative.
        let middle = _mm512_set1_epi64((1 << (BITS + 1)) - 2);
        let lowest = _mm512_set1_epi64((1 << (BITS + 1)) - 2 * FOLD);
        let mut difference = [lowest, middle, middle, middle, middle];
        for (difference, (&a, &b)) in difference.iter_mut().zip(self.0.iter().zip(&other.0)) {
            *difference = _mm512_sub_epi64(_mm512_add_epi64(*difference, a), b);
        }
        carry(difference)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn multiply(&self, other: &Self) -> Self {
        let mut low = [_mm512_setzero_si512(); 2 * LIMBS];
        let mut high = low;
        for (i, &a) in self.0.iter().enumerate() {
            for (j, &b) in other.0.iter().enumerate() {
                low[i + j] = _mm512_madd52lo_epu64(low[i + j], a, b);
                high[i + j + 1] = _mm512_madd52hi_epu64(high[i + j + 1], a, b);
            }
        }
        // At most 5 * 2^52 and 5 * 2^51.
        reduce(low, high)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn square(&self) -> Self {
        let mut low = [_mm512_setzero_si512(); 2 * LIMBS];
        let mut high = low;
        for i in 0..LIMBS {
            for j in i + 1..LIMBS {
                low[i + j] = _mm512_madd52lo_epu64(low[i + j], self.0[i], self.0[j]);
                high[i + j + 1] = _mm512_madd52hi_epu64(high[i + j + 1], self.0[i], self.0[j]);
            }
        }
        for k in 1..2 * LIMBS {
            low[k] = _mm512_add_epi64(low[k], low[k]);
            high[k] = _mm512_add_epi64(high[k], high[k]);
        }
        for (i, &a) in self.0.iter().enumerate() {
            low[2 * i] = _mm512_madd52lo_epu64(low[2 * i], a, a);
            high[2 * i + 1] = _mm512_madd52hi_epu64(high[2 * i + 1], a, a);
        }
        reduce(low, high)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn square_times(&self, times: u32) -> Self {
        let mut power = *self;
        for _ in 0..times {
            power = power.square();
        }
        power
    }

    /// `self * factor + other`, for a factor below 2^20.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn scale_and_add(&self, factor: i64, other: &Self) -> Self {
        let factor = _mm512_set1_epi64(factor);
        let zero = _mm512_setzero_si512();
        let mut sum = other.0;
        let mut high = [zero; LIMBS];
        for (i, &a) in self.0.iter().enumerate() {
            sum[i] = _mm512_madd52lo_epu64(sum[i], a, factor);
            high[i] = _mm512_madd52hi_epu64(zero, a, factor);
        }
        // A high half is 52 bits above its low half: twice its value in the next limb.
        for i in 1..LIMBS {
            sum[i] = _mm512_add_epi64(sum[i], _mm512_slli_epi64::<1>(high[i - 1]));
        }
        sum[0] = _mm512_madd52lo_epu64(sum[0], high[LIMBS - 1], _mm512_set1_epi64(2 * FOLD));
        carry(sum)
    }

    /// The inverse, or zero for zero: the power p - 2 = 2^5 (2^250 - 1) + 11.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn invert(&self) -> Self {
        let power_2 = self.square();
        let power_9 = power_2.square_times(2).multiply(self);
        let power_11 = power_9.multiply(&power_2);
        // The names say how many low bits of the exponent are ones.
        let ones_5 = power_11.square().multiply(&power_9);
        let ones_10 = ones_5.square_times(5).multiply(&ones_5);
        let ones_20 = ones_10.square_times(10).multiply(&ones_10);
        let ones_40 = ones_20.square_times(20).multiply(&ones_20);
        let ones_50 = ones_40.square_times(10).multiply(&ones_10);
        let ones_100 = ones_50.square_times(50).multiply(&ones_50);
        let ones_200 = ones_100.square_times(100).multiply(&ones_100);
        let ones_250 = ones_200.square_times(50).multiply(&ones_50);
        ones_250.square_times(5).multiply(&power_11)
    }
}

/// A product from the sums of its partial products' halves, low ones at `low[i + j]` and high ones, 52 bits up, at
/// `high[i + j + 1]`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn reduce(low: [__m512i; 2 * LIMBS], high: [__m512i; 2 * LIMBS]) -> Field {
    let fold = _mm512_set1_epi64(FOLD);
    let mut sum = low;
    for (sum, high) in sum.iter_mut().zip(high) {
        *sum = _mm512_add_epi64(*sum, _mm512_slli_epi64::<1>(high));
    }
    // At most 15 * 2^52 each, so that the fold stays below 2^61.
    let [lower @ .., u0, u1, u2, u3, u4] = sum;
    let mut folded = lower;
    for (folded, upper) in folded.iter_mut().zip([u0, u1, u2, u3, u4]) {
        *folded = _mm512_add_epi64(*folded, _mm512_mullo_epi64(upper, fold));
    }
    carry(folded)
}

/// Carries the bits above 51 of each limb into the next, for limbs below 2^61.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn carry(limbs: [__m512i; LIMBS]) -> Field {
    let mask = _mm512_set1_epi64((1 << BITS) - 1);
    let over = limbs.map(|limb| _mm512_srli_epi64::<BITS>(limb));
    let [r0, r1, r2, r3, r4] = limbs.map(|limb| _mm512_and_si512(limb, mask));
    Field([
        _mm512_madd52lo_epu64(r0, over[4], _mm512_set1_epi64(FOLD)),
        _mm512_add_epi64(r1, over[0]),
        _mm512_add_epi64(r2, over[1]),
        _mm512_add_epi64(r3, over[2]),
        _mm512_add_epi64(r4, over[3]),
    ])
}

/// Limbs of a little-endian number whose top bit is ignored.
pub(super) fn from_bytes(bytes: &[u8; 32]) -> [u64; LIMBS] {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    let mask = (1 << BITS) - 1;
    [
        word(0) & mask,
        (word(0) >> 51 | word(1) << 13) & mask,
        (word(1) >> 38 | word(2) << 26) & mask,
        (word(2) >> 25 | word(3) << 39) & mask,
        (word(3) >> 12) & mask,
    ]
}

/// The number below the prime, little-endian.
pub(super) fn to_bytes(mut limbs: [u64; LIMBS]) -> [u8; 32] {
    let mask = (1 << BITS) - 1;
    let fold = FOLD as u64;
    let ripple = |limbs: &mut [u64; LIMBS]| {
        let mut over = 0;
        for limb in limbs {
            *limb += over;
            over = *limb >> BITS;
            *limb &= mask;
        }
        over
    };
    // The first leaves less than 2^255 + 2^16, the second less than 2^255.
    limbs[0] += fold * ripple(&mut limbs);
    limbs[0] += fold * ripple(&mut limbs);
    // Adding 19 carries out of the top exactly if the number is not below the prime; in that case the sum is kept.
    let mut above = limbs;
    above[0] += fold;
    limbs[0] += fold * ripple(&mut above);
    ripple(&mut limbs);

    let [l0, l1, l2, l3, l4] = limbs;
    let words = [l0 | l1 << 51, l1 >> 13 | l2 << 38, l2 >> 26 | l3 << 25, l3 >> 39 | l4 << 12];
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use openssl::bn::{BigNum, BigNumContext};
    use proptest::prelude::*;

    use super::*;
    use crate::Ifma;

    const PRIME: &str = "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed";

    /// Limbs anywhere up to the bound, and often at an edge.
    fn limb() -> impl Strategy<Value = u64> {
        prop_oneof![0..=TIGHT, Just(0), Just(1), Just(TIGHT), Just((1 << BITS) - 1), Just((1 << BITS) - 19)]
    }

    fn lanes() -> impl Strategy<Value = Lanes> {
        prop::collection::vec(limb(), LIMBS * LANES).prop_map(|limbs| {
            std::array::from_fn(|limb| std::array::from_fn(|lane| limbs[limb * LANES + lane]))
        })
    }

    fn number(lanes: &Lanes, lane: usize) -> BigNum {
        lanes.iter().rev().fold(BigNum::new().unwrap(), |mut value, limb| {
            let mut shifted = BigNum::new().unwrap();
            shifted.lshift(&value, BITS as i32).unwrap();
            value.checked_add(&shifted, &BigNum::from_dec_str(&limb[lane].to_string()).unwrap()).unwrap();
            value
        })
    }

    /// Compares every lane with the same operation on OpenSSL's numbers, and the limbs with their bound.
    fn check(
        operands: [&Lanes; 2],
        result: &Field,
        host: impl Fn(&mut BigNum, [&BigNum; 2], &BigNum, &mut BigNumContext),
    ) -> Result<(), TestCaseError> {
        // SAFETY: the caller computed `result` and so holds an `Ifma`.
        let result = unsafe { result.store() };
        let prime = BigNum::from_hex_str(PRIME).unwrap();
        let mut context = BigNumContext::new().unwrap();
        for lane in 0..LANES {
            let [a, b] = operands.map(|lanes| number(lanes, lane));
            let mut expected = BigNum::new().unwrap();
            host(&mut expected, [&a, &b], &prime, &mut context);
            let mut bytes = to_bytes(result.map(|limb| limb[lane])).to_vec();
            bytes.reverse();
            prop_assert_eq!(bytes, expected.to_vec_padded(32).unwrap());
            prop_assert!(result.iter().all(|limb| limb[lane] <= TIGHT));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_operation_is_that_of_openssl(a in lanes(), b in lanes(), factor in 0i64..1 << 20) {
            if Ifma::prove().is_none() {
                eprintln!("skipped: this CPU has no AVX-512 IFMA, or {} is set", Ifma::DISABLE);
                return Ok(());
            }
            // SAFETY: the CPU has the features.
            unsafe {
                let (x, y) = (Field::load(&a), Field::load(&b));
                check([&a, &b], &x.add(&y), |r, [a, b], p, c| r.mod_add(a, b, p, c).unwrap())?;
                check([&a, &b], &x.subtract(&y), |r, [a, b], p, c| r.mod_sub(a, b, p, c).unwrap())?;
                check([&a, &b], &x.multiply(&y), |r, [a, b], p, c| r.mod_mul(a, b, p, c).unwrap())?;
                check([&a, &b], &x.square(), |r, [a, _], p, c| r.mod_sqr(a, p, c).unwrap())?;
                check([&a, &b], &x.scale_and_add(factor, &y), |r, [a, b], p, c| {
                    let mut scaled = BigNum::new().unwrap();
                    scaled.checked_mul(a, &BigNum::from_u32(factor as u32).unwrap(), c).unwrap();
                    r.mod_add(&scaled, b, p, c).unwrap();
                })?;
                check([&a, &b], &x.invert(), |r, [a, _], p, c| {
                    let mut exponent = BigNum::new().unwrap();
                    exponent.checked_sub(p, &BigNum::from_u32(2).unwrap()).unwrap();
                    r.mod_exp(a, &exponent, p, c).unwrap();
                })?;
            }
        }

        #[test]
        fn bytes_and_limbs_lead_back(mut bytes: [u8; 32]) {
            bytes[31] &= 0x7f;
            let mut big_endian = bytes;
            big_endian.reverse();
            let prime = BigNum::from_hex_str(PRIME).unwrap();
            let below = BigNum::from_slice(&big_endian).unwrap() < prime;
            prop_assume!(below);
            prop_assert_eq!(to_bytes(from_bytes(&bytes)), bytes);
        }
    }

    #[test]
    fn results_are_below_the_prime() {
        for excess in 0..19 {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (0xed + excess, 0x7f);
            let mut expected = [0; 32];
            expected[0] = excess;
            assert_eq!(to_bytes(from_bytes(&bytes)), expected);
        }
        let mut below = [0xff; 32];
        (below[0], below[31]) = (0xec, 0x7f);
        assert_eq!(to_bytes(from_bytes(&below)), below);
    }
}
