//! Inverses modulo the order of a curve, in constant time.
//!
//! The algorithm is by Bernstein and Yang ("Fast constant-time gcd computation and modular inversion", 2019), in the
//! form that Pieter Wuille gave it in libsecp256k1: "divsteps" that look only at the lowest bit of two numbers, 62 at a
//! time in machine words, then one pass over the long numbers. Their count depends only on the length of the modulus.
//! The engine raises each nonce to the power of order - 2, in 11 µs on P-256 and 37 on P-384; a single inversion here,
//! from which those of all lanes follow (`Order::invert_all`), takes a small fraction of that.

use crate::memory::{opaque, wipe_signed};

/// Bits in a limb here: two less than in a word, so that sums of products fit a double word with their sign.
const BITS: usize = 62;
const MASK: i64 = i64::MAX >> 1;

/// Limbs for the numbers of the largest curve, and their sign.
const LIMBS: usize = 7;

/// Signed; every limb but the highest in use is below 2^62 and not negative.
type Signed = [i64; LIMBS];

/// An odd modulus of N words.
pub(crate) struct Modulus<const N: usize> {
    limbs: Signed,
    /// 1/modulus mod 2^62.
    inverse: i64,
}

/// The effect of a number of divsteps on two numbers: `f, g = (u f + v g, q f + r g) / 2^62`.
struct Transition {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

impl<const N: usize> Modulus<N> {
    /// Limbs in use.
    const USED: usize = N * 64 / BITS + 1;

    /// This many divsteps are enough for any numbers of b bits: (45907 b + 30179) / 19929 by Wuille's "Bounds on
    /// divsteps iterations in safegcd". Rounded up to rounds of 62, that leaves 29 to spare on P-256 and 44 on P-384.
    const ROUNDS: usize = ((45_907 * N * 64 + 30_179) / 19_929).div_ceil(BITS);

    /// `negated_inverse` is -1/modulus mod 2^64.
    pub(crate) const fn new(modulus: &[u64; N], negated_inverse: u64) -> Self {
        assert!(Self::USED <= LIMBS);
        Self { limbs: to_signed(modulus), inverse: negated_inverse.wrapping_neg() as i64 & MASK }
    }

    /// 1/value mod modulus; zero for zero. The value is below the modulus.
    pub(crate) fn invert(&self, value: &[u64; N]) -> [u64; N] {
        // f and g converge to ±1 and 0; throughout, f = d value and g = e value mod modulus.
        let (mut f, mut g) = (self.limbs, to_signed(value));
        let (mut d, mut e) = ([0; LIMBS], [0; LIMBS]);
        e[0] = 1;
        let mut zeta = -1;
        for _ in 0..Self::ROUNDS {
            let transition;
            (zeta, transition) = divsteps(zeta, f[0] as u64, g[0] as u64);
            self.update_de(&transition, &mut d, &mut e);
            Self::update_fg(&transition, &mut f, &mut g);
        }
        self.normalize(&mut d, sign(f[Self::USED - 1]));
        let inverse = from_signed(&d);
        [&mut f, &mut g, &mut d, &mut e].into_iter().for_each(|number| wipe_signed(number));
        inverse
    }

    /// Applies a transition to d and e, adding multiples of the modulus that make the division by 2^62 exact. Both stay
    /// above -2 moduli and below one.
    fn update_de(&self, &Transition { u, v, q, r }: &Transition, d: &mut Signed, e: &mut Signed) {
        let (d_sign, e_sign) = (sign(d[Self::USED - 1]), sign(e[Self::USED - 1]));
        let mut d_factor = (u & d_sign) + (v & e_sign);
        let mut e_factor = (q & d_sign) + (r & e_sign);
        let mut d_sum = wide(u, d[0]) + wide(v, e[0]);
        let mut e_sum = wide(q, d[0]) + wide(r, e[0]);
        d_factor -= self.inverse.wrapping_mul(d_sum as i64).wrapping_add(d_factor) & MASK;
        e_factor -= self.inverse.wrapping_mul(e_sum as i64).wrapping_add(e_factor) & MASK;
        d_sum = (d_sum + wide(self.limbs[0], d_factor)) >> BITS;
        e_sum = (e_sum + wide(self.limbs[0], e_factor)) >> BITS;
        for i in 1..Self::USED {
            d_sum += wide(u, d[i]) + wide(v, e[i]) + wide(self.limbs[i], d_factor);
            e_sum += wide(q, d[i]) + wide(r, e[i]) + wide(self.limbs[i], e_factor);
            (d[i - 1], e[i - 1]) = (d_sum as i64 & MASK, e_sum as i64 & MASK);
            (d_sum, e_sum) = (d_sum >> BITS, e_sum >> BITS);
        }
        (d[Self::USED - 1], e[Self::USED - 1]) = (d_sum as i64, e_sum as i64);
    }

    /// Applies a transition to the numbers it was computed for; their lowest 62 bits become zero and are dropped.
    fn update_fg(&Transition { u, v, q, r }: &Transition, f: &mut Signed, g: &mut Signed) {
        let mut f_sum = (wide(u, f[0]) + wide(v, g[0])) >> BITS;
        let mut g_sum = (wide(q, f[0]) + wide(r, g[0])) >> BITS;
        for i in 1..Self::USED {
            f_sum += wide(u, f[i]) + wide(v, g[i]);
            g_sum += wide(q, f[i]) + wide(r, g[i]);
            (f[i - 1], g[i - 1]) = (f_sum as i64 & MASK, g_sum as i64 & MASK);
            (f_sum, g_sum) = (f_sum >> BITS, g_sum >> BITS);
        }
        (f[Self::USED - 1], g[Self::USED - 1]) = (f_sum as i64, g_sum as i64);
    }

    /// Reduces a number above -2 moduli and below one to `0..modulus`, negated if `negate` is all ones.
    fn normalize(&self, number: &mut Signed, negate: i64) {
        self.add_if(number, sign(number[Self::USED - 1]));
        number.iter_mut().for_each(|limb| *limb = (*limb ^ negate) - negate);
        Self::carry(number);
        self.add_if(number, sign(number[Self::USED - 1]));
    }

    fn add_if(&self, number: &mut Signed, condition: i64) {
        for (limb, modulus) in number.iter_mut().zip(&self.limbs) {
            *limb += modulus & condition;
        }
        Self::carry(number);
    }

    fn carry(number: &mut Signed) {
        for i in 1..Self::USED {
            number[i] += number[i - 1] >> BITS;
            number[i - 1] &= MASK;
        }
    }
}

/// 62 divsteps on the lowest bits of f and g. If g is odd, f is added to it or subtracted from it, and if zeta is
/// negative, f becomes the former g; zeta tracks which of the two is longer. Then g is halved.
fn divsteps(mut zeta: i64, mut f: u64, mut g: u64) -> (i64, Transition) {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    for _ in 0..BITS {
        let negative = sign(zeta) as u64;
        let odd = opaque((g & 1).wrapping_neg());
        let negate = |value: u64| (value ^ negative).wrapping_sub(negative);
        g = g.wrapping_add(negate(f) & odd);
        q = q.wrapping_add(negate(u) & odd);
        r = r.wrapping_add(negate(v) & odd);
        let swap = negative & odd;
        zeta = (zeta ^ swap as i64) - 1;
        f = f.wrapping_add(g & swap);
        u = u.wrapping_add(q & swap) << 1;
        v = v.wrapping_add(r & swap) << 1;
        g >>= 1;
    }
    (zeta, Transition { u: u as i64, v: v as i64, q: q as i64, r: r as i64 })
}

fn wide(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// All ones for a negative number, else zero. The compiler did turn this into branches where it recognised a sign.
fn sign(highest: i64) -> i64 {
    opaque((highest >> 63) as u64) as i64
}

const fn to_signed<const N: usize>(words: &[u64; N]) -> Signed {
    let mut limbs = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let (word, shift) = (i * BITS / 64, i * BITS % 64);
        let mut limb = if word < N { words[word] >> shift } else { 0 };
        if shift > 0 && word + 1 < N {
            limb |= words[word + 1] << (64 - shift);
        }
        limbs[i] = limb as i64 & MASK;
        i += 1;
    }
    limbs
}

/// For a number that is neither negative nor too long.
fn from_signed<const N: usize>(limbs: &Signed) -> [u64; N] {
    std::array::from_fn(|word| {
        let (limb, shift) = (word * 64 / BITS, word * 64 % BITS);
        (limbs[limb] as u64) >> shift | (limbs[limb + 1] as u64) << (BITS - shift)
    })
}
