//! Multiplies P-384's generator by a scalar, with a table of its multiples, at half the cost of graviola, which has none.
//!
//! The scalar is written in 64 signed digits of six bits. For each, the multiple is picked from all of its window, and added
//! by a formula that has no exceptions (Renes, Costello, Batina: "Complete addition formulas for prime order elliptic curves",
//! 2015, algorithm 5), so that neither a branch nor an address depends on the scalar.

mod field;

use self::field::{B, DIGIT, Element, N, ONE, PRIME, WINDOWS, Window};
use crate::limbs::{is_zero, less_than};
use crate::memory::{opaque, wipe_limbs};
use crate::order::{self, Order};

/// The affine coordinates of 1 to 32 times 64^i times the generator (`build.rs`, `multiples.rs`).
static TABLE: [Window; WINDOWS] = include!(concat!(env!("OUT_DIR"), "/generator384.rs"));

/// The field of the curve. A constant, so that the compiler knows the prime.
const FIELD: Order<N> = Order::new(PRIME);

/// In projective coordinates: (X/Z, Y/Z), or no finite point if Z is zero.
struct Point {
    x: Element,
    y: Element,
    z: Element,
}

/// The affine coordinates of the scalar's multiple of the generator; `None` if the scalar is not in `1..order`, or if the
/// result is not on the curve, as after a fault of the hardware.
pub(super) fn multiply(scalar: &Element) -> Option<[Element; 2]> {
    if order::P384.contains(scalar) == 0 {
        return None;
    }
    let (mut half, negate) = halve(scalar);
    let mut digits = recode(&half);
    let mut sum = Point { x: [0; N], y: ONE, z: [0; N] };
    for (digit, window) in digits.iter().zip(&TABLE) {
        sum.add_multiple(*digit, window);
    }
    let mut inverse = [sum.z];
    FIELD.invert_all(&mut inverse, &mut [[0; N]]);
    let [x, y] = [&sum.x, &sum.y].map(|coordinate| FIELD.multiply(coordinate, &inverse[0]));
    let y = select(negate, &negative(&y), &y);
    wipe_limbs(&mut half);
    digits.fill(0);
    [&mut sum.x, &mut sum.y, &mut sum.z, &mut inverse[0]].into_iter().for_each(|secret| wipe_limbs(secret));
    is_on_curve(&x, &y).then(|| [&x, &y].map(|coordinate| FIELD.out_of_montgomery(coordinate)))
}

/// Whether y² = x³ - 3x + b.
fn is_on_curve(x: &Element, y: &Element) -> bool {
    let three = add(&add(&ONE, &ONE), &ONE);
    mul(y, y) == add(&mul(&sub(&mul(x, x), &three), x), &B)
}

/// The scalar or the order minus it, whichever is below half the order, and all ones if it is the latter.
fn halve(scalar: &Element) -> (Element, u64) {
    let mut other = order::P384.subtract(&[0; N], scalar);
    let negate = opaque(less_than(&other, scalar));
    let half = select(negate, &other, scalar);
    wipe_limbs(&mut other);
    (half, negate)
}

/// Digits from -32 to 32, the lowest first, of a number below 2^383.
fn recode(number: &Element) -> [i8; WINDOWS] {
    let mut digits = [0; WINDOWS];
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let (limb, shift) = (i * DIGIT / 64, i * DIGIT % 64);
        let above = if shift > 64 - DIGIT { number[limb + 1] << (64 - shift) } else { 0 };
        let bits = (number[limb] >> shift | above) & ((1 << DIGIT) - 1);
        let sum = bits + carry;
        // One if the digit is above 32.
        carry = opaque((32_u64.wrapping_sub(sum)) >> 63);
        *digit = (sum as i64 - ((carry as i64) << DIGIT)) as i8;
    }
    digits
}

impl Point {
    /// Adds a digit's multiple of a window.
    fn add_multiple(&mut self, digit: i8, window: &Window) {
        let sign = opaque((i64::from(digit) >> 63) as u64);
        let index = ((i64::from(digit) as u64) ^ sign).wrapping_sub(sign);
        let mut picked = [[0; N]; 2];
        for (i, multiple) in (1_u64..).zip(window) {
            let mask = opaque(is_zero(&[i ^ index]));
            for (picked, limb) in picked.as_flattened_mut().iter_mut().zip(multiple.as_flattened()) {
                *picked |= limb & mask;
            }
        }
        let [x, y] = picked;
        let y = select(sign, &negative(&y), &y);
        let sum = self.plus(&x, &y);
        // Nothing was picked for zero.
        let keep = opaque(is_zero(&[index]));
        self.x = select(keep, &self.x, &sum.x);
        self.y = select(keep, &self.y, &sum.y);
        self.z = select(keep, &self.z, &sum.z);
    }

    /// The sum with a finite point, whatever the two are. The steps of the algorithm are not renamed.
    fn plus(&self, x2: &Element, y2: &Element) -> Self {
        let (x1, y1, z1) = (&self.x, &self.y, &self.z);
        let t0 = mul(x1, x2);
        let t1 = mul(y1, y2);
        let t3 = sub(&mul(&add(x2, y2), &add(x1, y1)), &add(&t0, &t1));
        let t4 = add(&mul(y2, z1), y1);
        let y3 = add(&mul(x2, z1), x1);
        let x3 = sub(&y3, &mul(&B, z1));
        let x3 = add(&x3, &add(&x3, &x3));
        let z3 = sub(&t1, &x3);
        let x3 = add(&t1, &x3);
        let t2 = add(&add(z1, z1), z1);
        let y3 = sub(&sub(&mul(&B, &y3), &t2), &t0);
        let y3 = add(&add(&y3, &y3), &y3);
        let t0 = sub(&add(&add(&t0, &t0), &t0), &t2);
        Self {
            x: sub(&mul(&t3, &x3), &mul(&t4, &y3)),
            y: add(&mul(&x3, &z3), &mul(&t0, &y3)),
            z: add(&mul(&t4, &z3), &mul(&t3, &t0)),
        }
    }
}

fn mul(a: &Element, b: &Element) -> Element {
    FIELD.multiply(a, b)
}

fn add(a: &Element, b: &Element) -> Element {
    FIELD.add(a, b)
}

fn sub(a: &Element, b: &Element) -> Element {
    FIELD.subtract(a, b)
}

fn negative(a: &Element) -> Element {
    sub(&[0; N], a)
}

/// `a` if the mask is all ones, `b` if it is zero.
fn select(mask: u64, a: &Element, b: &Element) -> Element {
    core::array::from_fn(|i| (a[i] & mask) | (b[i] & !mask))
}

#[cfg(test)]
mod tests {
    use openssl::bn::{BigNum, BigNumContext};
    use openssl::ec::{EcGroup, EcPoint};
    use openssl::nid::Nid;
    use proptest::prelude::*;

    use super::*;
    use crate::limbs::{from_be, to_be};

    fn bytes(number: &Element) -> [u8; 48] {
        let mut bytes = [0; 48];
        to_be(number, &mut bytes);
        bytes
    }

    /// Compares with OpenSSL.
    fn check(scalar: &Element) {
        let group = EcGroup::from_curve_name(Nid::SECP384R1).unwrap();
        let mut context = BigNumContext::new().unwrap();
        let mut point = EcPoint::new(&group).unwrap();
        let number = BigNum::from_slice(&bytes(scalar)).unwrap();
        point.mul_generator2(&group, &number, &mut context).unwrap();
        let (mut x, mut y) = (BigNum::new().unwrap(), BigNum::new().unwrap());
        point.affine_coordinates(&group, &mut x, &mut y, &mut context).unwrap();
        let expected = [x, y].map(|number| from_be(&number.to_vec_padded(48).unwrap()).unwrap());
        assert_eq!(multiply(scalar), Some(expected), "{scalar:x?}");
    }

    /// The order minus a small number.
    fn near_order(distance: u64) -> Element {
        order::P384.subtract(&[0; N], &[distance, 0, 0, 0, 0, 0])
    }

    fn order_itself() -> Element {
        let mut number = near_order(1);
        number[0] += 1;
        number
    }

    #[test]
    fn scalars_at_the_ends_and_with_extreme_digits() {
        for small in (1..=130).chain([0xfff, 0x1000, u64::MAX]) {
            check(&[small, 0, 0, 0, 0, 0]);
        }
        (1..=130).for_each(|distance| check(&near_order(distance)));
        for window in 0..WINDOWS {
            for digit in [1, 31, 32, 33, 63_u64] {
                let (limb, shift) = (window * DIGIT / 64, window * DIGIT % 64);
                let mut number = [0; N];
                number[limb] = digit << shift;
                if shift > 64 - DIGIT {
                    number[limb + 1] = digit >> (64 - shift);
                }
                if order::P384.contains(&number) != 0 {
                    check(&number);
                }
            }
        }
        // Half of the order, where the scalar is turned into its negative.
        let mut half = order_itself();
        for i in 0..N {
            half[i] = half[i] >> 1 | half.get(i + 1).map_or(0, |above| above << 63);
        }
        for distance in 0..3 {
            check(&[half[0] - distance, half[1], half[2], half[3], half[4], half[5]]);
            check(&[half[0] + distance, half[1], half[2], half[3], half[4], half[5]]);
        }
    }

    #[test]
    fn scalars_out_of_range_have_no_multiple() {
        assert_eq!(multiply(&[0; N]), None);
        assert_eq!(multiply(&order_itself()), None);
        assert_eq!(multiply(&[u64::MAX; N]), None);
    }

    #[test]
    fn points_off_the_curve_are_noticed() {
        let [x, y] = TABLE[3][7];
        assert!(is_on_curve(&x, &y) && is_on_curve(&x, &negative(&y)));
        assert!(!is_on_curve(&y, &x) && !is_on_curve(&x, &add(&y, &ONE)));
    }

    #[test]
    fn digits_make_up_the_number() {
        let number = [0x0123_4567_89ab_cdef, u64::MAX, 0, 1 << 63, 0x5555_5555_5555_5555, u64::MAX >> 1];
        let mut sum = BigNum::new().unwrap();
        for digit in recode(&number).into_iter().rev() {
            assert!((-32..=32).contains(&digit));
            let mut shifted = BigNum::new().unwrap();
            shifted.lshift(&sum, DIGIT as i32).unwrap();
            let mut next = BigNum::from_u32(u32::from(digit.unsigned_abs())).unwrap();
            next.set_negative(digit < 0);
            sum.checked_add(&shifted, &next).unwrap();
        }
        assert_eq!(sum, BigNum::from_slice(&bytes(&number)).unwrap());
    }

    proptest! {
        #[test]
        fn any_scalar(scalar: [u64; N]) {
            prop_assume!(order::P384.contains(&scalar) != 0);
            check(&scalar);
        }
    }
}
