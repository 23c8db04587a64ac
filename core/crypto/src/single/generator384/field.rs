//! The curve's numbers, and arithmetic for the compiler and for `build.rs`: nothing here is secret, and nothing runs in a server.

use crate::limbs::{add_with_carry, multiply_add, sub_with_borrow};

pub(super) const N: usize = 6;

/// A number mod the prime, in Montgomery form.
pub(super) type Element = [u64; N];

/// Bits of a digit.
pub(super) const DIGIT: usize = 6;
/// Digits of a scalar.
pub(super) const WINDOWS: usize = 384 / DIGIT;
/// Multiples of a window: 1 to 32.
pub(super) const MULTIPLES: usize = 1 << (DIGIT - 1);

/// The affine coordinates, x and then y, of 1 to 32 times 64^i times the generator, in Montgomery form.
pub(super) type Window = [[Element; 2]; MULTIPLES];

pub(super) const PRIME: Element = [
    0x0000_0000_ffff_ffff,
    0xffff_ffff_0000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];
/// -1/prime mod 2^64.
const INVERSE: u64 = 0x1_0000_0001;

/// 2^384 mod prime: 1 in Montgomery form.
pub(super) const ONE: Element = [0xffff_ffff_0000_0001, 0x0000_0000_ffff_ffff, 1, 0, 0, 0];

const SQUARE: Element = {
    let mut value = ONE;
    let mut i = 0;
    while i < 384 {
        value = add(&value, &value);
        i += 1;
    }
    value
};

/// The curve is y² = x³ - 3x + b.
pub(super) const B: Element = mul(
    &[
        0x2a85_c8ed_d3ec_2aef,
        0xc656_398d_8a2e_d19d,
        0x0314_088f_5013_875a,
        0x181d_9c6e_fe81_4112,
        0x988e_056b_e3f8_2d19,
        0xb331_2fa7_e23e_e7e4,
    ],
    &SQUARE,
);

#[allow(dead_code, reason = "for `build.rs`")]
pub(super) const GENERATOR: [Element; 2] = [
    mul(
        &[
            0x3a54_5e38_7276_0ab7,
            0x5502_f25d_bf55_296c,
            0x59f7_41e0_8254_2a38,
            0x6e1d_3b62_8ba7_9b98,
            0x8eb1_c71e_f320_ad74,
            0xaa87_ca22_be8b_0537,
        ],
        &SQUARE,
    ),
    mul(
        &[
            0x7a43_1d7c_90ea_0e5f,
            0x0a60_b1ce_1d7e_819d,
            0xe9da_3113_b5f0_b8c0,
            0xf8f4_1dbd_289a_147c,
            0x5d9e_98bf_9292_dc29,
            0x3617_de4a_9626_2c6f,
        ],
        &SQUARE,
    ),
];

pub(super) const fn mul(a: &Element, b: &Element) -> Element {
    let mut sum = [0; N];
    let mut top = 0;
    let mut i = 0;
    while i < N {
        let (mut carry, mut j) = (0, 0);
        while j < N {
            (sum[j], carry) = multiply_add(a[i], b[j], sum[j], carry);
            j += 1;
        }
        let (high, overflow) = add_with_carry(top, carry, 0);
        let factor = sum[0].wrapping_mul(INVERSE);
        (_, carry) = multiply_add(factor, PRIME[0], sum[0], 0);
        j = 1;
        while j < N {
            (sum[j - 1], carry) = multiply_add(factor, PRIME[j], sum[j], carry);
            j += 1;
        }
        (sum[N - 1], carry) = add_with_carry(high, carry, 0);
        top = overflow + carry;
        i += 1;
    }
    reduce(&sum, top)
}

pub(super) const fn add(a: &Element, b: &Element) -> Element {
    let mut sum = [0; N];
    let (mut carry, mut i) = (0, 0);
    while i < N {
        (sum[i], carry) = add_with_carry(a[i], b[i], carry);
        i += 1;
    }
    reduce(&sum, carry)
}

#[allow(dead_code, reason = "for `build.rs`")]
pub(super) const fn sub(a: &Element, b: &Element) -> Element {
    let mut difference = [0; N];
    let (mut borrow, mut i) = (0, 0);
    while i < N {
        (difference[i], borrow) = sub_with_borrow(a[i], b[i], borrow);
        i += 1;
    }
    if borrow == 0 {
        return difference;
    }
    let mut carry = 0;
    i = 0;
    while i < N {
        (difference[i], carry) = add_with_carry(difference[i], PRIME[i], carry);
        i += 1;
    }
    difference
}

/// Below the prime, from below twice the prime.
const fn reduce(value: &Element, top: u64) -> Element {
    let mut difference = [0; N];
    let (mut borrow, mut i) = (0, 0);
    while i < N {
        (difference[i], borrow) = sub_with_borrow(value[i], PRIME[i], borrow);
        i += 1;
    }
    if top >= borrow { difference } else { *value }
}
