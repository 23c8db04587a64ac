//! X25519 (RFC 7748) in eight lanes.
//!
//! This one is our own: crypto_mb's `mbx_x25519_mb8` keeps numbers between the prime and a little above 2^255 and then
//! subtracts as if they were below the prime. Peer keys that lead there, low-order points among them, give a wrong
//! secret: 12 of Wycheproof's 518 vectors. Honest keys do not, which is why its key generation is used.

// The lint takes a safe function with target features for an unsafe one.
#![allow(clippy::missing_safety_doc)]

use std::arch::x86_64::{__m512i, _mm512_set1_epi64, _mm512_test_epi64_mask};
use std::array;
use std::mem::transmute;

use super::field25519::{Field, from_bytes, to_bytes};
use crate::Ifma;
use hasten_names::LANES;

/// (486662 - 2) / 4, of the curve's equation.
const A24: i64 = 121_665;

/// The shared secrets of eight private keys and their peers. All zeros for a point of low order.
pub(super) fn shared_secrets(
    _: Ifma,
    private: &[&[u8; 32]; LANES],
    peers: &[&[u8; 32]; LANES],
    shared: [&mut [u8; 32]; LANES],
) {
    // SAFETY: the token proves that the CPU has the features, and that the system saves the registers.
    unsafe { ladder(private, peers, shared) }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn ladder(private: &[&[u8; 32]; LANES], peers: &[&[u8; 32]; LANES], shared: [&mut [u8; 32]; LANES]) {
    let peers = peers.map(from_bytes);
    let x1 = Field::load(&array::from_fn(|limb| peers.map(|peer| peer[limb])));
    let scalar = scalar_words(private);
    let (mut x2, mut z2) = (Field::splat(1), Field::splat(0));
    let (mut x3, mut z3) = (x1, Field::splat(1));
    let mut swapped = 0;
    for bit in (0..255).rev() {
        let set = _mm512_test_epi64_mask(scalar[bit / 64], _mm512_set1_epi64(1 << (bit % 64)));
        Field::swap(set ^ swapped, &mut x2, &mut x3);
        Field::swap(set ^ swapped, &mut z2, &mut z3);
        swapped = set;
        step(&x1, &mut x2, &mut z2, &mut x3, &mut z3);
    }
    Field::swap(swapped, &mut x2, &mut x3);
    Field::swap(swapped, &mut z2, &mut z3);
    let limbs = x2.multiply(&z2.invert()).store();
    for (lane, shared) in shared.into_iter().enumerate() {
        *shared = to_bytes(limbs.map(|limb| limb[lane]));
    }
}

/// Doubles one point and adds the other to it; their difference is x1. The letters are those of the RFC.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn step(x1: &Field, x2: &mut Field, z2: &mut Field, x3: &mut Field, z3: &mut Field) {
    // Adjacent operations depend on each other as little as possible: the CPU works on about two products at a time.
    let a = x2.add(z2);
    let b = x2.subtract(z2);
    let c = x3.add(z3);
    let d = x3.subtract(z3);
    let aa = a.square();
    let bb = b.square();
    let da = d.multiply(&a);
    let cb = c.multiply(&b);
    let e = aa.subtract(&bb);
    *x2 = aa.multiply(&bb);
    let scaled = e.scale_and_add(A24, &aa);
    let difference = da.subtract(&cb).square();
    *x3 = da.add(&cb).square();
    *z2 = e.multiply(&scaled);
    *z3 = difference.multiply(x1);
}

/// The clamped private keys, 64 bits of each to a vector.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn scalar_words(private: &[&[u8; 32]; LANES]) -> [__m512i; 4] {
    let mut words: [[u64; LANES]; 4] =
        array::from_fn(|word| private.map(|key| u64::from_le_bytes(key.as_chunks().0[word])));
    words[0].iter_mut().for_each(|word| *word &= !7);
    // The ladder starts below the top bit.
    words[3].iter_mut().for_each(|word| *word |= 1 << 62);
    // SAFETY: a vector is eight lanes of 64 bits, and any bits are valid for either type.
    words.map(|word| unsafe { transmute::<[u64; LANES], __m512i>(word) })
}
