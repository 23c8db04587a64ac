//! Checks a signature that was made elsewhere, on any CPU.
//!
//! Everything here is public: modulus, signature and padded message. Where the engine runs, [`crate::rsa_check`] does
//! the same for eight at once.

use crate::limbs::{less_than, multiply_add, sub_with_borrow};
use crate::memory::constant_time_eq;

use super::{MODULUS_LIMBS, RsaKey};

type Number = [u64; MODULUS_LIMBS];

/// The precomputed values that Montgomery multiplication needs for a modulus.
pub(super) struct Montgomery {
    /// -1/n modulo 2^64.
    inverse: u64,
    /// The square of the radix, modulo n.
    square: Number,
}

impl RsaKey {
    /// Whether the public operation turns `signature` back into `padded`. Both are as long as the modulus.
    #[must_use]
    pub fn is_signed(&self, padded: &[u8], signature: &[u8]) -> bool {
        if padded.len() != self.size.bytes() || signature.len() != self.size.bytes() {
            return false;
        }
        let limbs = self.size.bits() / 64;
        let modulus = &self.n[..limbs];
        let mut number = [0; MODULUS_LIMBS];
        read(signature, &mut number[..limbs]);
        let signature = number;
        if less_than(&signature[..limbs], modulus) == 0 {
            return false;
        }
        let montgomery = self.montgomery.get_or_init(|| Montgomery::of(modulus));
        // To the power of 2^16, in Montgomery form; the last multiplication leaves that form.
        number = montgomery.multiply(modulus, &number, &montgomery.square);
        for _ in 0..16 {
            number = montgomery.multiply(modulus, &number, &number);
        }
        number = montgomery.multiply(modulus, &number, &signature);
        let mut bytes = [0; MODULUS_LIMBS * 8];
        let bytes = &mut bytes[..padded.len()];
        crate::limbs::to_be(&number[..limbs], bytes);
        constant_time_eq(bytes, padded)
    }

    /// Whether `signature`, as long as the modulus, is a number below it.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for lanes"))]
    pub(crate) fn is_reduced(&self, signature: &[u8]) -> bool {
        let limbs = self.size.bits() / 64;
        let mut number = [0; MODULUS_LIMBS];
        read(signature, &mut number[..limbs]);
        less_than(&number[..limbs], &self.n[..limbs]) != 0
    }
}

fn read(bytes: &[u8], limbs: &mut [u64]) {
    for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
        *limb = chunk.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
}

impl Montgomery {
    /// The modulus is odd and its highest bit is set.
    fn of(modulus: &[u64]) -> Self {
        // Each step of Newton's iteration doubles the number of correct bits; an odd number is its own inverse modulo
        // 8.
        let mut inverse = modulus[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        // The radix minus the modulus is the radix modulo it. Doubled once for each of its bits, that becomes the
        // square.
        let mut square = [0; MODULUS_LIMBS];
        subtract(&mut square[..modulus.len()], modulus);
        for _ in 0..modulus.len() * 64 {
            let mut carry = 0;
            for limb in &mut square[..modulus.len()] {
                (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
            }
            if carry != 0 || less_than(&square[..modulus.len()], modulus) == 0 {
                subtract(&mut square[..modulus.len()], modulus);
            }
        }
        Self { inverse: inverse.wrapping_neg(), square }
    }

    /// `a * b` divided by the radix, modulo n. Both are below n, and so is the result.
    fn multiply(&self, modulus: &[u64], a: &Number, b: &Number) -> Number {
        let limbs = modulus.len();
        let mut sum = [0; MODULUS_LIMBS];
        let mut top = 0;
        for &digit in &a[..limbs] {
            let (low, mut carry) = multiply_add(digit, b[0], sum[0], 0);
            let factor = low.wrapping_mul(self.inverse);
            let (_, mut reduced) = multiply_add(factor, modulus[0], low, 0);
            for at in 1..limbs {
                let digit_sum;
                (digit_sum, carry) = multiply_add(digit, b[at], sum[at], carry);
                (sum[at - 1], reduced) = multiply_add(factor, modulus[at], digit_sum, reduced);
            }
            let last = u128::from(top) + u128::from(carry) + u128::from(reduced);
            sum[limbs - 1] = last as u64;
            top = (last >> 64) as u64;
        }
        if top != 0 || less_than(&sum[..limbs], modulus) == 0 {
            subtract(&mut sum[..limbs], modulus);
        }
        sum
    }
}

/// Subtraction modulo the radix.
fn subtract(number: &mut [u64], other: &[u64]) {
    let mut borrow = 0;
    for (limb, &other) in number.iter_mut().zip(other) {
        (*limb, borrow) = sub_with_borrow(*limb, other, borrow);
    }
}
