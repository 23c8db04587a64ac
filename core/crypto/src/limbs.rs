//! Fixed-size unsigned integers as little-endian 64-bit limbs: conversions and the few operations that keys need.
//!
//! Nothing here branches on or indexes by the value of a secret, except for `bit_length` and `Err` results: these are
//! used on public values and on keys as they are read, once.

/// Reads little-endian bytes; `None` if the value does not fit.
pub(crate) fn from_le(bytes: &[u8], limbs: &mut [u64]) -> Option<()> {
    let (low, high) = bytes.split_at(bytes.len().min(limbs.len() * 8));
    if high.iter().fold(0, |any, byte| any | byte) != 0 {
        return None;
    }
    limbs.fill(0);
    for (limb, chunk) in limbs.iter_mut().zip(low.chunks(8)) {
        *limb = chunk.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    Some(())
}

/// Reads big-endian bytes, exactly eight for each limb.
pub(crate) fn from_be<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    if bytes.len() != N * 8 {
        return None;
    }
    let mut limbs = [0; N];
    for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
        *limb = chunk.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    Some(limbs)
}

/// Reads big-endian bytes, at most eight for each limb.
pub(crate) fn from_be_padded<const N: usize>(bytes: &[u8]) -> [u64; N] {
    debug_assert!(bytes.len() <= N * 8);
    let mut limbs = [0; N];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks(8)) {
        *limb = chunk.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    limbs
}

/// Writes big-endian bytes, exactly eight for each limb.
pub(crate) fn to_be(limbs: &[u64], bytes: &mut [u8]) {
    debug_assert_eq!(bytes.len(), limbs.len() * 8);
    for (chunk, limb) in bytes.chunks_exact_mut(8).zip(limbs.iter().rev()) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
}

pub(crate) fn bit_length(limbs: &[u64]) -> usize {
    match limbs.iter().rposition(|&limb| limb != 0) {
        Some(top) => top * 64 + (64 - limbs[top].leading_zeros() as usize),
        None => 0,
    }
}

/// All ones if `a < b`, else zero; in time that depends on neither.
pub(crate) fn less_than(a: &[u64], b: &[u64]) -> u64 {
    let mut borrow = 0;
    for (&a, &b) in a.iter().zip(b) {
        (_, borrow) = sub_with_borrow(a, b, borrow);
    }
    borrow.wrapping_neg()
}

/// All ones if every limb is zero, else zero; in time that does not depend on them.
pub(crate) fn is_zero(limbs: &[u64]) -> u64 {
    let any = limbs.iter().fold(0, |any, limb| any | limb);
    ((any | any.wrapping_neg()) >> 63).wrapping_sub(1)
}

/// `product = a * b`, schoolbook.
pub(crate) fn multiply(a: &[u64], b: &[u64], product: &mut [u64]) {
    debug_assert_eq!(product.len(), a.len() + b.len());
    product.fill(0);
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &b) in b.iter().enumerate() {
            (product[i + j], carry) = multiply_add(a, b, product[i + j], carry);
        }
        product[i + b.len()] = carry;
    }
}

/// `a * b + c + carry` as low and high half; it cannot overflow.
pub(crate) const fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let wide = a as u128 * b as u128 + c as u128 + carry as u128;
    (wide as u64, (wide >> 64) as u64)
}

pub(crate) const fn add_with_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let wide = a as u128 + b as u128 + carry as u128;
    (wide as u64, (wide >> 64) as u64)
}

/// `a - b - borrow` and the next borrow (0 or 1).
pub(crate) const fn sub_with_borrow(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let wide = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (wide as u64, (wide >> 127) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_lead_back(bytes in prop::collection::vec(any::<u8>(), 0..=40)) {
            let mut limbs = [u64::MAX; 4];
            let significant = bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count();
            prop_assert_eq!(from_le(&bytes, &mut limbs).is_some(), significant <= 32);
            if significant <= 32 {
                let mut back = [0; 32];
                to_be(&limbs, &mut back);
                prop_assert_eq!(from_be(&back), Some(limbs));
                back.reverse();
                prop_assert_eq!(&back[..significant], &bytes[..significant]);
                prop_assert!(back[significant..].iter().all(|&byte| byte == 0));
                let top = bytes.get(significant.wrapping_sub(1)).map_or(0, |top| 8 - top.leading_zeros() as usize);
                prop_assert_eq!(bit_length(&limbs), significant.saturating_sub(1) * 8 + top);
            }
        }

        #[test]
        fn comparison_is_that_of_numbers(a: [u64; 3], b: [u64; 3], equal_above in 0usize..3) {
            let mut b = b;
            b[equal_above..].copy_from_slice(&a[equal_above..]);
            let expected = a.iter().rev().lt(b.iter().rev());
            prop_assert_eq!(less_than(&a, &b), if expected { u64::MAX } else { 0 });
            prop_assert_eq!(less_than(&a, &a), 0);
        }

        #[test]
        fn products_are_those_of_128_bits(a: u64, b: u64, c: u64) {
            let mut product = [7; 3];
            multiply(&[a, b], &[c], &mut product);
            let low = u128::from(a) * u128::from(c);
            let high = u128::from(b) * u128::from(c) + (low >> 64);
            prop_assert_eq!(product, [low as u64, high as u64, (high >> 64) as u64]);
        }
    }

    #[test]
    fn zero_is_zero_and_nothing_else_is() {
        assert_eq!(is_zero(&[0, 0]), u64::MAX);
        for bit in 0..128 {
            let mut limbs = [0u64; 2];
            limbs[bit / 64] = 1 << (bit % 64);
            assert_eq!(is_zero(&limbs), 0);
        }
        assert_eq!(bit_length(&[0, 0]), 0);
        assert!(from_be::<2>(&[0; 15]).is_none() && from_be::<2>(&[0; 17]).is_none());
    }
}
