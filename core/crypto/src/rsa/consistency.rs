//! Checks that the numbers of a key belong together, so that a signature that fails its verification counts against the
//! engine, not the key. Only the primality of the primes is taken on trust.
//!
//! It runs once per key, and takes about as long as one signature. Nothing branches on a secret except the answer.

use super::{MODULUS_LIMBS, PRIME_LIMBS};
use crate::limbs::{is_zero, less_than, multiply, multiply_add, sub_with_borrow};
use crate::memory::wipe_limbs;

/// The public exponent, a prime.
const E: u64 = 65537;

/// Whether `exponent` undoes E modulo `prime` - 1: whether E * exponent = k * (prime - 1) + 1.
///
/// As the exponent is below the prime, k is below E, and is known from the equation modulo E: k = -1 / (prime - 1).
pub(super) fn is_private_exponent(exponent: &[u64], prime: &[u64]) -> bool {
    let residue = residue(prime) + E - 1;
    let k = E - power(residue % E, E - 2);
    let mut differing = u64::from(residue.is_multiple_of(E));
    // Both sides limb by limb: E * exponent + k against k * prime + 1.
    let (mut left, mut right) = (k, 1);
    for (&exponent, &prime) in exponent.iter().zip(prime) {
        let (low, high) = multiply_add(E, exponent, left, 0);
        let (other_low, other_high) = multiply_add(k, prime, right, 0);
        differing |= low ^ other_low;
        (left, right) = (high, other_high);
    }
    differing |= left ^ right;
    is_zero(&[differing]) != 0
}

/// Whether a * b = 1 modulo `modulus`; both are as long as the modulus.
pub(super) fn are_inverses(a: &[u64], b: &[u64], modulus: &[u64]) -> bool {
    let len = modulus.len();
    let mut product = [0; MODULUS_LIMBS];
    multiply(a, b, &mut product[..2 * len]);
    let mut remainder = [0; PRIME_LIMBS];
    reduce(&product[..2 * len], modulus, &mut remainder[..len]);
    remainder[0] ^= 1;
    let is_one = is_zero(&remainder) != 0;
    wipe_limbs(&mut product);
    wipe_limbs(&mut remainder);
    is_one
}

/// `remainder = number % modulus`, one bit at a time. The highest bit of the modulus is set.
fn reduce(number: &[u64], modulus: &[u64], remainder: &mut [u64]) {
    debug_assert!(modulus.last().is_some_and(|top| top >> 63 == 1));
    for bit in (0..number.len() * 64).rev() {
        let mut carry = number[bit / 64] >> (bit % 64) & 1;
        for limb in remainder.iter_mut() {
            (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
        }
        // At most once, as the previous remainder is below the modulus.
        let is_above = less_than(remainder, modulus) ^ u64::MAX | carry.wrapping_neg();
        let mut borrow = 0;
        for (limb, &part) in remainder.iter_mut().zip(modulus) {
            (*limb, borrow) = sub_with_borrow(*limb, part & is_above, borrow);
        }
    }
}

/// A number modulo E. The divisor is a constant, so this compiles to a multiplication.
fn residue(number: &[u64]) -> u64 {
    let halves = number.iter().rev().flat_map(|limb| [limb >> 32, limb & 0xffff_ffff]);
    halves.fold(0, |rest, half| (rest << 32 | half) % E)
}

/// `base` to a public power, modulo E.
fn power(base: u64, exponent: u64) -> u64 {
    (0..u64::BITS).rev().fold(1, |result, bit| {
        let square = result * result % E;
        if exponent >> bit & 1 == 1 { square * base % E } else { square }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(limbs: &[u64; 2]) -> u128 {
        u128::from(limbs[1]) << 64 | u128::from(limbs[0])
    }

    fn limbs(value: u128) -> [u64; 2] {
        [value as u64, (value >> 64) as u64]
    }

    proptest! {
        #[test]
        fn remainders_are_those_of_128_bits(number: [u64; 2], modulus: u64) {
            let modulus = modulus | 1 << 63;
            let mut remainder = [0];
            reduce(&number, &[modulus], &mut remainder);
            prop_assert_eq!(u128::from(remainder[0]), value(&number) % u128::from(modulus));
            prop_assert_eq!(u128::from(residue(&number)), value(&number) % u128::from(E));
        }

        /// Every solution of the equation passes, and its neighbours do not.
        #[test]
        fn exponents_undo_the_public_one(prime: u64, change in 1..u64::MAX) {
            let order = u128::from(prime | 1 << 63 | 1) - 1;
            let solution = (1..u128::from(E)).find(|k| (k * order + 1) % u128::from(E) == 0);
            let Some(k) = solution else { return Ok(()) };
            let exponent = limbs((k * order + 1) / u128::from(E));
            let prime = limbs(order + 1);
            prop_assert!(is_private_exponent(&exponent, &prime));
            let [low, high] = exponent;
            prop_assert!(!is_private_exponent(&[low ^ change, high], &prime));
        }

        #[test]
        fn inverses_multiply_to_one(a in 1..u64::MAX, modulus: u64, other: u64) {
            let modulus = modulus | 1 << 63;
            let product = |b: u64| u128::from(a % modulus) * u128::from(b) % u128::from(modulus);
            prop_assert_eq!(are_inverses(&[a % modulus], &[other], &[modulus]), product(other) == 1);
        }
    }

    #[test]
    fn small_numbers_are_told_apart() {
        let modulus = u64::MAX;
        for (a, b, expected) in
            [(1, 1, true), (2, 1 << 63, true), (2, 2, false), (0, 0, false), (0, 1, false)]
        {
            assert_eq!(are_inverses(&[a], &[b], &[modulus]), expected, "{a} {b}");
        }
        // 65537 divides the prime minus one, so it has no inverse.
        assert!(!is_private_exponent(&[1], &[E + 1]));
    }
}
