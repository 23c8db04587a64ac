//! Arithmetic modulo the order of a curve's base point, or its field's prime, in Montgomery form and constant time.
//!
//! Once its nonce is prepared, all that remains of an ECDSA signature is two multiplications and an addition here.

use crate::inverse::Modulus;
use crate::limbs::{self, add_with_carry, is_zero, less_than, multiply_add, sub_with_borrow};
use crate::memory::{opaque, wipe_limbs};

/// The order of NIST P-256.
pub(crate) static P256: Order<4> =
    Order::new([0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000]);

/// The order of NIST P-384.
pub(crate) static P384: Order<6> = Order::new([
    0xecec_196a_ccc5_2973,
    0x581a_0db2_48b0_a77a,
    0xc763_4d81_f437_2ddf,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
]);

/// An odd modulus of N limbs with its top bit set.
pub(crate) struct Order<const N: usize> {
    modulus: [u64; N],
    /// -1/modulus mod 2^64.
    inverse: u64,
    /// 2^(128 N) mod modulus: takes a value into Montgomery form.
    square: [u64; N],
    inversion: Modulus<N>,
}

impl<const N: usize> Order<N> {
    const ONE: [u64; N] = {
        let mut one = [0; N];
        one[0] = 1;
        one
    };

    pub(crate) const fn new(modulus: [u64; N]) -> Self {
        let inverse = negated_inverse(modulus[0]);
        let inversion = Modulus::new(&modulus, inverse);
        Self { modulus, inverse, square: montgomery_square(&modulus), inversion }
    }

    /// All ones if `value` is in `1..order`, else zero.
    pub(crate) fn contains(&self, value: &[u64; N]) -> u64 {
        less_than(value, &self.modulus) & !is_zero(value)
    }

    /// `value` mod order, for any value of N limbs (below twice the order, as its top bit is set).
    pub(crate) fn reduce(&self, value: &[u64; N]) -> [u64; N] {
        self.subtract_once(value, 0)
    }

    /// A big-endian number of 512 bits mod order.
    pub(crate) fn reduce_wide(&self, bytes: &[u8; 64]) -> [u64; N] {
        const { assert!(4 <= N && N < 8, "the high part has to fit") };
        let (high, low) = bytes.split_at(64 - N * 8);
        let [mut high, mut low] = [high, low].map(limbs::from_be_padded);
        // The square is 2^(64 N) in Montgomery form.
        let mut shifted = self.multiply(&self.reduce(&high), &self.square);
        let remainder = self.add(&shifted, &self.reduce(&low));
        [&mut high, &mut low, &mut shifted].into_iter().for_each(|secret| wipe_limbs(secret));
        remainder
    }

    pub(crate) fn to_montgomery(&self, value: &[u64; N]) -> [u64; N] {
        self.multiply(value, &self.square)
    }

    pub(crate) fn out_of_montgomery(&self, value: &[u64; N]) -> [u64; N] {
        self.multiply(value, &Self::ONE)
    }

    /// `a * b / 2^(64 N)` mod order, for reduced a and b: the product, if one of them is in Montgomery form.
    #[inline]
    pub(crate) fn multiply(&self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let mut sum = [0; N];
        let mut top = 0;
        for &a in a {
            let mut carry = 0;
            for (sum, &b) in sum.iter_mut().zip(b) {
                (*sum, carry) = multiply_add(a, b, *sum, carry);
            }
            let (high, overflow) = add_with_carry(top, carry, 0);

            // Add the multiple of the modulus that clears the lowest limb, and shift it out.
            let factor = sum[0].wrapping_mul(self.inverse);
            (_, carry) = multiply_add(factor, self.modulus[0], sum[0], 0);
            for i in 1..N {
                (sum[i - 1], carry) = multiply_add(factor, self.modulus[i], sum[i], carry);
            }
            (sum[N - 1], carry) = add_with_carry(high, carry, 0);
            top = overflow + carry;
        }
        self.subtract_once(&sum, top)
    }

    /// 1/value in Montgomery form, of a value in Montgomery form; zero for zero.
    fn invert(&self, value: &[u64; N]) -> [u64; N] {
        self.to_montgomery(&self.to_montgomery(&self.inversion.invert(value)))
    }

    /// Inverts non-zero values in Montgomery form, at the cost of one inversion plus three products for each.
    ///
    /// `products` is at least as long, and overwritten.
    pub(crate) fn invert_all(&self, values: &mut [[u64; N]], products: &mut [[u64; N]]) {
        let mut product = self.to_montgomery(&Self::ONE);
        for (value, before) in values.iter().zip(products.iter_mut()) {
            *before = product;
            product = self.multiply(&product, value);
        }
        let mut inverse = self.invert(&product);
        for (value, before) in values.iter_mut().zip(products).rev() {
            let next = self.multiply(&inverse, value);
            *value = self.multiply(&inverse, before);
            inverse = next;
        }
        wipe_limbs(&mut product);
        wipe_limbs(&mut inverse);
    }

    #[inline]
    pub(crate) fn add(&self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let mut sum = [0; N];
        let mut carry = 0;
        for (sum, (&a, &b)) in sum.iter_mut().zip(a.iter().zip(b)) {
            (*sum, carry) = add_with_carry(a, b, carry);
        }
        self.subtract_once(&sum, carry)
    }

    #[inline]
    pub(crate) fn subtract(&self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let mut difference = [0; N];
        let mut borrow = 0;
        for (difference, (&a, &b)) in difference.iter_mut().zip(a.iter().zip(b)) {
            (*difference, borrow) = sub_with_borrow(a, b, borrow);
        }
        let missing = opaque(borrow.wrapping_neg());
        let mut carry = 0;
        for (difference, &modulus) in difference.iter_mut().zip(&self.modulus) {
            (*difference, carry) = add_with_carry(*difference, modulus & missing, carry);
        }
        difference
    }

    /// Subtracts the modulus from `top:value` unless the result would be negative.
    #[inline]
    fn subtract_once(&self, value: &[u64; N], top: u64) -> [u64; N] {
        let mut difference = [0; N];
        let mut borrow = 0;
        for (difference, (&value, &modulus)) in difference.iter_mut().zip(value.iter().zip(&self.modulus)) {
            (*difference, borrow) = sub_with_borrow(value, modulus, borrow);
        }
        let (_, negative) = sub_with_borrow(top, 0, borrow);
        // The compiler turned this into a branch in some places.
        let keep = opaque(negative.wrapping_neg());
        for (difference, &value) in difference.iter_mut().zip(value) {
            *difference = (value & keep) | (*difference & !keep);
        }
        difference
    }
}

/// Newton's iteration doubles the number of correct low bits, from three.
const fn negated_inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut correct_bits = 3;
    while correct_bits < 64 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        correct_bits *= 2;
    }
    inverse.wrapping_neg()
}

/// Doubles 1 modulo `modulus` once for each bit of two operands. Compile-time only.
const fn montgomery_square<const N: usize>(modulus: &[u64; N]) -> [u64; N] {
    let mut value = [0; N];
    value[0] = 1;
    let mut doublings = 0;
    while doublings < 128 * N {
        let mut doubled = [0; N];
        let mut reduced = [0; N];
        let (mut carry, mut borrow, mut i) = (0, 0, 0);
        while i < N {
            (doubled[i], carry) = add_with_carry(value[i], value[i], carry);
            (reduced[i], borrow) = sub_with_borrow(doubled[i], modulus[i], borrow);
            i += 1;
        }
        value = if carry >= borrow { reduced } else { doubled };
        doublings += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use openssl::bn::{BigNum, BigNumContext};
    use proptest::prelude::*;

    use super::*;
    use crate::limbs::to_be;

    fn number(limbs: &[u64]) -> BigNum {
        let mut bytes = vec![0; limbs.len() * 8];
        to_be(limbs, &mut bytes);
        BigNum::from_slice(&bytes).unwrap()
    }

    /// Compares every function with OpenSSL's.
    fn check<const N: usize>(order: &Order<N>, a: [u64; N], b: [u64; N]) -> Result<(), TestCaseError> {
        let mut context = BigNumContext::new().unwrap();
        let modulus = number(&order.modulus);
        let mut expected = BigNum::new().unwrap();

        let [x, y] = [&a, &b].map(|value| order.reduce(value));
        expected.nnmod(&number(&a), &modulus, &mut context).unwrap();
        prop_assert_eq!(&number(&x), &expected);
        prop_assert_eq!(order.contains(&a) == u64::MAX, x == a && a != [0; N]);
        prop_assert!([0, u64::MAX].contains(&order.contains(&a)));

        expected.mod_add(&number(&x), &number(&y), &modulus, &mut context).unwrap();
        prop_assert_eq!(&number(&order.add(&x, &y)), &expected);

        expected.mod_mul(&number(&x), &number(&y), &modulus, &mut context).unwrap();
        prop_assert_eq!(number(&order.multiply(&order.to_montgomery(&x), &y)), expected);
        prop_assert_eq!(order.out_of_montgomery(&order.to_montgomery(&x)), x);
        Ok(())
    }

    /// Zero has no inverse; the others match OpenSSL's, alone and together.
    fn check_inverses<const N: usize>(order: &Order<N>, values: &[[u64; N]]) -> Result<(), TestCaseError> {
        prop_assert_eq!(order.invert(&[0; N]), [0; N]);
        let mut context = BigNumContext::new().unwrap();
        let values: Vec<_> =
            values.iter().map(|value| order.reduce(value)).filter(|value| *value != [0; N]).collect();
        let mut inverses: Vec<_> = values.iter().map(|value| order.to_montgomery(value)).collect();
        let alone: Vec<_> = inverses.iter().map(|value| order.invert(value)).collect();
        order.invert_all(&mut inverses, &mut vec![[7; N]; values.len()]);
        prop_assert_eq!(&inverses, &alone);
        for (value, inverse) in values.iter().zip(&inverses) {
            let mut expected = BigNum::new().unwrap();
            expected.mod_inverse(&number(value), &number(&order.modulus), &mut context).unwrap();
            prop_assert_eq!(number(&order.out_of_montgomery(inverse)), expected);
            prop_assert_eq!(order.inversion.invert(&order.inversion.invert(value)), *value);
        }
        Ok(())
    }

    fn check_wide<const N: usize>(order: &Order<N>, limbs: [u64; 8]) -> Result<(), TestCaseError> {
        let mut expected = BigNum::new().unwrap();
        expected.nnmod(&number(&limbs), &number(&order.modulus), &mut BigNumContext::new().unwrap()).unwrap();
        let mut bytes = [0; 64];
        to_be(&limbs, &mut bytes);
        prop_assert_eq!(number(&order.reduce_wide(&bytes)), expected);
        Ok(())
    }

    fn limb() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(1), Just(u64::MAX), Just(0xffff_ffff_0000_0000)]
    }

    proptest! {
        #[test]
        fn p256_is_that_of_openssl(a in [limb(), limb(), limb(), limb()], b in [limb(), limb(), limb(), limb()]) {
            check(&P256, a, b)?;
        }

        #[test]
        fn p384_is_that_of_openssl(
            a in [limb(), limb(), limb(), limb(), limb(), limb()],
            b in [limb(), limb(), limb(), limb(), limb(), limb()],
        ) {
            check(&P384, a, b)?;
        }

        #[test]
        fn inverses_of_p256_are_those_of_openssl(
            values in prop::collection::vec(prop::array::uniform4(limb()), 1..=8),
        ) {
            check_inverses(&P256, &values)?;
        }

        #[test]
        fn inverses_of_p384_are_those_of_openssl(
            values in prop::collection::vec(prop::array::uniform6(limb()), 1..=8),
        ) {
            check_inverses(&P384, &values)?;
        }

        #[test]
        fn long_numbers_are_reduced_as_by_openssl(limbs in prop::array::uniform8(limb())) {
            check_wide(&P256, limbs)?;
            check_wide(&P384, limbs)?;
        }
    }

    #[test]
    fn around_the_order() {
        fn around<const N: usize>(order: &Order<N>) {
            for step in -3i64..=3 {
                let mut value = order.modulus;
                value[0] = value[0].wrapping_add_signed(step);
                for other in [value, [0; N], [u64::MAX; N]] {
                    check(order, value, other).unwrap();
                }
                check_inverses(order, &[value]).unwrap();
            }
        }
        around(&P256);
        around(&P384);
    }
}
