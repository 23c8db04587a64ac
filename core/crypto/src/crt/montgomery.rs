//! Multiplication modulo an odd number, in Montgomery form, of one pair of numbers or of two side by side.
//!
//! One multiplication waits for its own results most of the time; a second one with another modulus costs little more. The
//! factors of a product may be up to eight times their modulus, and the product is less than twice the modulus ("almost
//! Montgomery multiplication": Gueron, "Efficient software implementations of modular exponentiation", 2012). This holds
//! because the radix R, 2^52 to the power of the number of limbs, is at least 2^16 times the modulus: a * b / R + n < 2n.
//!
//! A sum of up to 4 * 80 products of 52 bits takes 61 of the 64 bits of a lane, so that carries can wait until the end.

// The lint takes a safe function with target features for an unsafe one.
#![allow(clippy::missing_safety_doc)]

use core::arch::x86_64::*;
use core::slice;

use super::number::{BITS, LANES, MASK, Number};
use crate::memory::{in_memory, wipe_limbs};

/// An odd modulus.
pub(super) struct Modulus<const K: usize> {
    number: Number<K>,
    /// -1/n modulo 2^52.
    inverse: u64,
    /// The limbs of R. There may be fewer of them than lanes.
    limbs: usize,
    /// R² modulo n, less than 2n.
    square: Number<K>,
}

impl<const K: usize> Modulus<K> {
    /// The number has `bits` bits, the highest of which is set, and is odd.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    pub(super) fn new(number: Number<K>, bits: usize) -> Self {
        let limbs = (bits + 16).div_ceil(BITS);
        let lowest = number.limbs()[0];
        // Newton's iteration doubles the number of correct low bits, from three.
        let inverse = (0..5).fold(lowest, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(lowest.wrapping_mul(inverse)))
        });
        let inverse = inverse.wrapping_neg() & MASK;
        let mut modulus = Self { number, inverse, limbs, square: Number::ZERO };

        // R * 2^k, doubled from 2^bits; squared as often as there are factors of two in the exponent of R, it becomes R².
        let exponent = limbs * BITS;
        let squarings = exponent.trailing_zeros();
        let mut power = Number::ZERO;
        power.limbs_mut()[bits / BITS] = 1 << (bits % BITS);
        power = power.minus(&number).0;
        for _ in 0..exponent - bits + (exponent >> squarings) {
            power = power.plus(&power).reduced_once(&number);
        }
        for _ in 0..squarings {
            [power] = multiply([&power], [&power], [&modulus]);
        }
        modulus.square = power;
        modulus
    }

    pub(super) fn number(&self) -> &Number<K> {
        &self.number
    }

    pub(super) fn limbs(&self) -> usize {
        self.limbs
    }

    /// R² modulo n: takes a factor into Montgomery form.
    pub(super) fn square(&self) -> &Number<K> {
        &self.square
    }

    pub(super) fn wipe(&mut self) {
        self.number.wipe();
        self.square.wipe();
        wipe_limbs(slice::from_mut(&mut self.inverse));
    }
}

/// `a * b / R` modulo n, for each pair of factors and their modulus. All moduli have equally many limbs.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
pub(super) fn multiply<const K: usize, const WAYS: usize>(
    a: [&Number<K>; WAYS],
    b: [&Number<K>; WAYS],
    moduli: [&Modulus<K>; WAYS],
) -> [Number<K>; WAYS] {
    let mut sums = [const { Sum::<K>::ZERO }; WAYS];
    for at in 0..moduli[0].limbs {
        for way in 0..WAYS {
            let digit = b[way].limbs()[at];
            sums[way].add::<0>(&a[way].vectors(), a[way].limbs()[0], digit, moduli[way]);
        }
    }
    sums.map(|sum| sum.carried())
}

/// `a² / R` modulo n, for two numbers and their moduli, which have equally many limbs.
///
/// Of the products of two different vectors, each is computed once and with one of the factors doubled.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
pub(super) fn square<const K: usize>(numbers: &mut [Number<K>; 2], moduli: [&Modulus<K>; 2]) {
    const { assert!(K <= 10, "as many as there are steps below") };
    let doubled = [doubled(&numbers[0]), doubled(&numbers[1])];
    let mut sums = [Sum::ZERO, Sum::ZERO];
    square_step::<K, 0>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 1>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 2>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 3>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 4>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 5>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 6>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 7>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 8>(&mut sums, numbers, &doubled, moduli);
    square_step::<K, 9>(&mut sums, numbers, &doubled, moduli);
    *numbers = sums.map(|sum| sum.carried());
}

/// Adds the rows of the digits in vector `AT`: its own digits, and those above, doubled.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
fn square_step<const K: usize, const AT: usize>(
    sums: &mut [Sum<K>; 2],
    numbers: &[Number<K>; 2],
    doubled: &[[__m256i; K]; 2],
    moduli: [&Modulus<K>; 2],
) {
    if AT >= K {
        return;
    }
    let mut rows = *doubled;
    for (row, number) in rows.iter_mut().zip(numbers) {
        row[AT] = number.vectors()[AT];
        if AT + 1 < K {
            // Without the bit carried from the vector before.
            let kept = _mm256_set_epi64x(-1, -1, -1, -2);
            row[AT + 1] = _mm256_and_si256(row[AT + 1], kept);
        }
    }
    // As many turns as the compiler unrolls.
    for at in AT * LANES..(AT + 1) * LANES {
        if at == moduli[0].limbs {
            break;
        }
        for way in 0..2 {
            let limbs = numbers[way].limbs();
            sums[way].add::<AT>(&rows[way], limbs[0], limbs[at], moduli[way]);
        }
    }
}

/// Twice the number, which has room.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
fn doubled<const K: usize>(number: &Number<K>) -> [__m256i; K] {
    let mask = _mm256_set1_epi64x(MASK as i64);
    let vectors = number.vectors();
    let mut doubled = vectors;
    let mut below = _mm256_setzero_si256();
    for (doubled, &vector) in doubled.iter_mut().zip(&vectors) {
        let carries = _mm256_srli_epi64::<{ BITS as i32 - 1 }>(one_lane_up(vector, below));
        *doubled = _mm256_or_si256(_mm256_and_si256(_mm256_add_epi64(vector, vector), mask), carries);
        below = vector;
    }
    doubled
}

/// A sum of products that is shifted down by one limb with each digit. Lanes carry nothing to their neighbours yet.
struct Sum<const K: usize> {
    /// The lowest lane is stale.
    vectors: [__m256i; K],
    /// What belongs into the lowest lane.
    lowest: u64,
}

impl<const K: usize> Sum<K> {
    // SAFETY: any bits are valid for a vector.
    const ZERO: Self = Self { vectors: unsafe { core::mem::zeroed() }, lowest: 0 };

    /// Adds `row * digit` and the multiple of the modulus that clears the lowest limb, and shifts that out. Vectors of the
    /// row before `FROM` are zero; `first` is the row's lowest limb.
    ///
    /// The multiple depends on the lowest limb, and so does the next one. To keep this chain short, the lowest limb is
    /// summed up outside of the vectors, and the one that follows gets its part of the modulus there as well.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn add<const FROM: usize>(&mut self, row: &[__m256i; K], first: u64, digit: u64, modulus: &Modulus<K>) {
        let (n, sum) = (in_memory(&modulus.number).vectors(), &mut self.vectors);
        let digits = _mm256_set1_epi64x(digit as i64);
        for k in FROM..K {
            sum[k] = _mm256_madd52lo_epu64(sum[k], row[k], digits);
        }
        let next = _mm_extract_epi64::<1>(_mm256_castsi256_si128(sum[0])) as u64;
        let product = if FROM == 0 { u128::from(first) * u128::from(digit) } else { 0 };
        let lowest = product + u128::from(self.lowest);
        let factor = (lowest as u64).wrapping_mul(modulus.inverse) & MASK;
        let [n0, n1] = [modulus.number.limbs()[0], modulus.number.limbs()[1]];
        let carry = (lowest + u128::from(n0) * u128::from(factor)) >> BITS;
        self.lowest = (carry as u64) + next + (n1.wrapping_mul(factor) & MASK);

        let factors = _mm256_set1_epi64x(factor as i64);
        for k in 0..K {
            sum[k] = _mm256_madd52lo_epu64(sum[k], n[k], factors);
        }
        for k in 0..K {
            let above = if k + 1 < K { sum[k + 1] } else { _mm256_setzero_si256() };
            sum[k] = _mm256_alignr_epi64::<1>(above, sum[k]);
        }
        for k in FROM..K {
            sum[k] = _mm256_madd52hi_epu64(sum[k], row[k], digits);
        }
        for k in 0..K {
            sum[k] = _mm256_madd52hi_epu64(sum[k], n[k], factors);
        }
    }

    /// The number, with all carries. It is below 2^(208 K).
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn carried(self) -> Number<K> {
        let mask = _mm256_set1_epi64x(MASK as i64);
        let mut vectors = self.vectors;
        vectors[0] = _mm256_mask_set1_epi64(vectors[0], 1, self.lowest as i64);
        // After one step, no limb has more than one to carry. Those that do, and those that pass on what they get, are a
        // bit each, and an addition carries through all of them.
        let (mut over, mut full) = (0_u128, 0_u128);
        let mut below = _mm256_setzero_si256();
        for (k, vector) in vectors.iter_mut().enumerate() {
            let carries = _mm256_srli_epi64::<{ BITS as i32 }>(*vector);
            *vector = _mm256_add_epi64(_mm256_and_si256(*vector, mask), one_lane_up(carries, below));
            below = carries;
            over |= u128::from(_mm256_cmpgt_epu64_mask(*vector, mask)) << (LANES * k);
            full |= u128::from(_mm256_cmpeq_epu64_mask(*vector, mask)) << (LANES * k);
        }
        let gets_one = if K * LANES <= 64 {
            u128::from(((over as u64) << 1).wrapping_add(full as u64) ^ full as u64)
        } else {
            ((over << 1) + full) ^ full
        };
        for (k, vector) in vectors.iter_mut().enumerate() {
            // Subtracting the mask adds one, modulo 2^52.
            let lanes = (gets_one >> (LANES * k)) as u8;
            *vector = _mm256_and_si256(_mm256_mask_sub_epi64(*vector, lanes, *vector, mask), mask);
        }
        Number::from_vectors(vectors)
    }
}

/// Shifts by one lane; the lowest comes from the vector below.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
fn one_lane_up(vector: __m256i, below: __m256i) -> __m256i {
    _mm256_alignr_epi64::<{ LANES as i32 - 1 }>(vector, below)
}

#[cfg(test)]
mod tests {
    use openssl::bn::{BigNum, BigNumContext};
    use proptest::prelude::*;

    use super::*;
    use crate::Ifma;
    use crate::lanes::LaneEngine;
    use crate::limbs::{from_be_padded, to_be};

    const WORDS: usize = 64;

    fn host(words: &[u64]) -> BigNum {
        let mut bytes = vec![0; words.len() * 8];
        to_be(words, &mut bytes);
        BigNum::from_slice(&bytes).unwrap()
    }

    fn host_of<const K: usize>(number: &Number<K>) -> BigNum {
        let mut words = [0; WORDS + 1];
        number.write_words(&mut words);
        host(&words)
    }

    fn of_host<const K: usize>(number: &BigNum) -> Number<K> {
        Number::from_words(&from_be_padded::<WORDS>(&number.to_vec()))
    }

    /// Words that make carries run far, and others.
    fn words() -> impl Strategy<Value = Vec<u64>> {
        let word = prop_oneof![3 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX), 1 => Just(1)];
        prop::collection::vec(word, WORDS)
    }

    /// A pair of moduli, and pairs of factors of up to eight times those, against OpenSSL.
    fn check<const K: usize>(bits: usize, numbers: &[Vec<u64>; 6], raise: u32) -> Result<(), TestCaseError> {
        if Ifma::detect().is_none() {
            return Ok(());
        }
        let mut context = BigNumContext::new().unwrap();
        let moduli = [0, 1].map(|at| {
            let mut words = numbers[at][..bits / 64].to_vec();
            words[0] |= 1;
            words[bits / 64 - 1] |= 1 << 63;
            words
        });
        // SAFETY: the engine was detected.
        let modulus = [0, 1].map(|at| unsafe { Modulus::<K>::new(Number::from_words(&moduli[at]), bits) });
        let n = moduli.each_ref().map(|words| host(words));
        let mut radix = BigNum::new().unwrap();
        radix.lshift(&BigNum::from_u32(1).unwrap(), (modulus[0].limbs * BITS) as i32).unwrap();

        let remainder = |number: &BigNum, at: usize| {
            let mut rest = BigNum::new().unwrap();
            rest.nnmod(number, &n[at], &mut BigNumContext::new().unwrap()).unwrap();
            rest
        };
        // A remainder, and a multiple of the modulus in addition.
        let factor = |from: usize, at: usize| {
            let times = BigNum::from_u32(raise).unwrap();
            &remainder(&host(&numbers[from][..bits / 64]), at) + &(&n[at] * &times)
        };
        let [a, b] = [[factor(2, 0), factor(3, 1)], [factor(4, 0), factor(5, 1)]];
        let [a52, b52] = [&a, &b].map(|pair| [of_host::<K>(&pair[0]), of_host(&pair[1])]);
        for (number, number52) in a.iter().zip(&a52) {
            prop_assert_eq!(number, &host_of(number52), "conversions");
        }
        let moduli = modulus.each_ref();
        // SAFETY: the engine was detected.
        let (products, squares, alone) = unsafe {
            let mut squares = a52;
            square(&mut squares, moduli);
            let products = multiply(a52.each_ref(), b52.each_ref(), moduli);
            (products, squares, multiply([&a52[1]], [&b52[1]], [moduli[1]]))
        };
        prop_assert!(alone[0].equals(&products[1]));
        for at in 0..2 {
            for (result, factor) in [(&products[at], &b[at]), (&squares[at], &a[at])] {
                let result = host_of(result);
                prop_assert!(result < &n[at] + &n[at], "less than twice the modulus");
                let mut expected = BigNum::new().unwrap();
                expected.mod_mul(&a[at], factor, &n[at], &mut context).unwrap();
                prop_assert_eq!(remainder(&(&result * &radix), at), expected);
            }
            let square = remainder(&(&radix * &radix), at);
            prop_assert_eq!(remainder(&host_of(&modulus[at].square), at), square);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn products_are_those_of_openssl(numbers in prop::array::uniform6(words()), raise in 0_u32..=6) {
            check::<5>(1024, &numbers, raise)?;
            check::<8>(1536, &numbers, raise)?;
            check::<10>(2048, &numbers, raise)?;
        }
    }

    /// Carries that run through all limbs, and moduli at both ends of their range.
    #[test]
    fn extremes_are_no_exception() {
        let patterns = [vec![u64::MAX; WORDS], vec![0; WORDS], {
            let mut one = vec![0; WORDS];
            one[0] = 1;
            one
        }];
        for modulus in &patterns {
            for factor in &patterns {
                for raise in [0, 6] {
                    let numbers = [modulus, modulus, factor, factor, factor, modulus].map(Clone::clone);
                    check::<5>(1024, &numbers, raise).unwrap();
                    check::<8>(1536, &numbers, raise).unwrap();
                    check::<10>(2048, &numbers, raise).unwrap();
                }
            }
        }
    }
}
