//! One RSA private operation at a time: for a connection that nobody shares lanes with, at a fraction of a batch's cost.
//!
//! The two halves of the operation, modulo p and modulo q, run side by side, each with its limbs across the lanes of vectors
//! (`montgomery.rs`). The public operation is applied to the result, and a result that does not lead back is withheld.
//!
//! # Constant time
//! No branch and no address depends on a secret. Loops run as often as the size of the modulus says. For each window of an
//! exponent, zero included, a power is selected by reading all of them (`select`). Sums are carried, and numbers reduced, by
//! masks, which are hidden from the compiler. The multiplications take the same time whatever their factors. The only
//! comparison is that of the public operation's result with its input.
//!
//! # Secrets
//! The table of powers is wiped after each operation, and so are the stack and the vector registers that were used.

// The lint takes a safe function with target features for an unsafe one.
#![allow(clippy::missing_safety_doc, unsafe_code)]

mod montgomery;
mod number;

use core::arch::asm;
use core::arch::x86_64::*;

use self::montgomery::{Modulus, multiply, square};
use self::number::{LANES, Number, add_words};
use crate::Ifma;
use crate::limbs::{self, from_be_padded};
use crate::memory::{wipe_limbs, wipe_stack};
use crate::rsa::{MODULUS_LIMBS, PRIME_LIMBS, RsaKey, RsaSize};

/// Bits of an exponent that are handled at once.
const WINDOW: usize = 5;

/// Powers for a window.
const POWERS: usize = 1 << WINDOW;

/// Vectors of a prime of the largest size.
const MAX_VECTORS: usize = 10;

/// Bytes of the stack that are wiped after an operation: more than any of them uses (`tests/process.rs`).
const STACK: usize = 24 << 10;

/// Working memory: the powers of both halves. All zero between calls.
pub(crate) struct Powers(Box<[[u64; LANES]]>);

impl Powers {
    pub(crate) fn new() -> Self {
        Self(vec![[0; LANES]; 2 * POWERS * MAX_VECTORS].into_boxed_slice())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.as_flattened().iter().all(|&limb| limb == 0)
    }

    fn wipe(&mut self) {
        wipe_limbs(self.0.as_flattened_mut());
    }
}

/// What the engine computes once for each key.
pub(crate) struct Prepared {
    ifma: Ifma,
    numbers: Numbers,
}

/// By size; what is inside of a key cannot be in the heap.
#[allow(clippy::large_enum_variant)]
enum Numbers {
    Rsa2048(Halves<5, 10>),
    Rsa3072(Halves<8, 15>),
    Rsa4096(Halves<10, 20>),
}

/// The numbers of a key whose primes have K vectors, and whose modulus has N.
struct Halves<const K: usize, const N: usize> {
    primes: [Modulus<K>; 2],
    modulus: Modulus<N>,
    /// The inverse of q modulo p.
    inverse: Number<K>,
}

impl Prepared {
    /// The key has its numbers, which belong together. The caller wipes the stack ([`leave_nothing`]).
    pub(crate) fn new(ifma: Ifma, key: &RsaKey) -> Self {
        // SAFETY: the token is the proof that the CPU has what the functions require.
        let numbers = unsafe {
            match key.size() {
                RsaSize::Rsa2048 => Numbers::Rsa2048(Halves::new(key)),
                RsaSize::Rsa3072 => Numbers::Rsa3072(Halves::new(key)),
                RsaSize::Rsa4096 => Numbers::Rsa4096(Halves::new(key)),
            }
        };
        Self { ifma, numbers }
    }

    /// Signs `padded` by the key that this belongs to. Input and signature are as long as the modulus. Without a result, the
    /// signature is zeros.
    pub(crate) fn sign(
        &self,
        powers: &mut Powers,
        key: &RsaKey,
        padded: &[u8],
        signature: &mut [u8],
    ) -> bool {
        signature.fill(0);
        // SAFETY: as in `new`.
        let is_done = unsafe {
            match &self.numbers {
                Numbers::Rsa2048(halves) => halves.sign(powers, key, padded, signature),
                Numbers::Rsa3072(halves) => halves.sign(powers, key, padded, signature),
                Numbers::Rsa4096(halves) => halves.sign(powers, key, padded, signature),
            }
        };
        powers.wipe();
        leave_nothing(self.ifma);
        is_done
    }

    pub(crate) fn wipe(&mut self) {
        match &mut self.numbers {
            Numbers::Rsa2048(halves) => halves.wipe(),
            Numbers::Rsa3072(halves) => halves.wipe(),
            Numbers::Rsa4096(halves) => halves.wipe(),
        }
    }
}

impl<const K: usize, const N: usize> Halves<K, N> {
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn new(key: &RsaKey) -> Self {
        let bits = key.size().bits();
        let prime = |words: &[u64]| Modulus::new(Number::from_words(words), bits / 2);
        Self {
            primes: [prime(&key.p), prime(&key.q)],
            modulus: Modulus::new(Number::from_words(&key.n), bits),
            inverse: Number::from_words(&key.qinv),
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn sign(&self, powers: &mut Powers, key: &RsaKey, padded: &[u8], signature: &mut [u8]) -> bool {
        let words = signature.len() / 8;
        let input = Number::from_words(&from_be_padded::<MODULUS_LIMBS>(padded)[..words]);
        let base = self.reduce(&input);
        let halves = self.power(powers, key, &base);
        let result = self.combine(key, &halves);
        let is_good = self.raised(&Number::from_words(&result[..words])).equals(&input);
        if is_good {
            limbs::to_be(&result[..words], signature);
        }
        is_good
    }

    /// The input modulo each prime, in Montgomery form, less than six times the prime.
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn reduce(&self, input: &Number<N>) -> [Number<K>; 2] {
        let moduli = self.primes.each_ref();
        let squares = moduli.map(Modulus::square);
        let limbs = moduli[0].limbs();
        // Both parts are less than R, which the upper one is to be multiplied with: by R³ instead of R².
        let [low, high] = [input.part(0, limbs), input.part(limbs, limbs)];
        let cubes = multiply(squares, squares, moduli);
        let low = multiply([&low, &low], squares, moduli);
        let high = multiply([&high, &high], cubes.each_ref(), moduli);
        [low[0].plus(&high[0]), low[1].plus(&high[1])]
    }

    /// Each half to the power of its private exponent, in Montgomery form, less than twice the prime.
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn power(&self, powers: &mut Powers, key: &RsaKey, base: &[Number<K>; 2]) -> [Number<K>; 2] {
        let moduli = self.primes.each_ref();
        let table = &mut powers.0.as_chunks_mut::<K>().0[..2 * POWERS];
        let mut power = multiply(moduli.map(Modulus::square), [&Number::ONE; 2], moduli);
        for pair in table.chunks_exact_mut(2) {
            pair.copy_from_slice(&power.map(|half| half.0));
            power = multiply(power.each_ref(), base.each_ref(), moduli);
        }
        let exponents = [&key.dp, &key.dq];
        let windows = (key.size().bits() / 2).div_ceil(WINDOW);
        let selected = |at: usize| [0, 1].map(|half| select(table, half, window(exponents[half], at)));
        let mut result = selected(windows - 1);
        for at in (0..windows - 1).rev() {
            for _ in 0..WINDOW {
                square(&mut result, moduli);
            }
            result = multiply(result.each_ref(), selected(at).each_ref(), moduli);
        }
        result
    }

    /// The number below the modulus that is what the halves are modulo their primes.
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn combine(&self, key: &RsaKey, halves: &[Number<K>; 2]) -> [u64; MODULUS_LIMBS] {
        let [p, q] = self.primes.each_ref();
        let [rest] = multiply([&halves[1]], [&Number::ONE], [q]);
        let rest = rest.reduced_once(q.number());
        // The first half minus the second one is positive once two primes have been added.
        let [other] = multiply([&rest], [p.square()], [p]);
        let raised = halves[0].plus(p.number()).plus(p.number());
        let [factor] = multiply([&raised.minus(&other).0], [&self.inverse], [p]);
        let factor = factor.reduced_once(p.number());

        let mut words = [[0; PRIME_LIMBS]; 2];
        rest.write_words(&mut words[0]);
        factor.write_words(&mut words[1]);
        let len = key.size().bits() / 128;
        let mut result = [0; MODULUS_LIMBS];
        limbs::multiply(&words[1][..len], &key.q[..len], &mut result[..2 * len]);
        add_words(&mut result[..2 * len], &words[0][..len]);
        result
    }

    /// The result of the public operation, whose exponent is 65537.
    #[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
    fn raised(&self, number: &Number<N>) -> Number<N> {
        let n = &self.modulus;
        let [mut power] = multiply([number], [n.square()], [n]);
        for _ in 0..16 {
            [power] = multiply([&power], [&power], [n]);
        }
        // One factor is not in Montgomery form, and neither is the product.
        let [power] = multiply([&power], [number], [n]);
        power.reduced_once(n.number())
    }

    fn wipe(&mut self) {
        self.primes.iter_mut().for_each(Modulus::wipe);
        self.inverse.wipe();
    }
}

/// The bits of a window of an exponent.
fn window(exponent: &[u64; PRIME_LIMBS], at: usize) -> u64 {
    let (word, shift) = (at * WINDOW / 64, at * WINDOW % 64);
    let above = exponent.get(word + 1).map_or(0, |word| word << 1 << (63 - shift));
    (exponent[word] >> shift | above) & (POWERS as u64 - 1)
}

/// A half's power, of which only the computation knows the index: all are read.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
fn select<const K: usize>(table: &[[[u64; LANES]; K]], half: usize, index: u64) -> Number<K> {
    let mut selected = Number::ZERO.vectors();
    let (wanted, one) = (_mm256_set1_epi64x(index as i64), _mm256_set1_epi64x(1));
    let mut at = _mm256_setzero_si256();
    for pair in table.chunks_exact(2) {
        let mask = hidden(_mm256_cmpeq_epi64(at, wanted));
        at = _mm256_add_epi64(at, one);
        for (selected, vector) in selected.iter_mut().zip(Number(pair[half]).vectors()) {
            *selected = _mm256_or_si256(*selected, _mm256_and_si256(vector, mask));
        }
    }
    Number::from_vectors(selected)
}

/// Returns the vector unchanged, but unknown to the compiler, as [`opaque`](crate::memory::opaque) does.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma,bmi2")]
fn hidden(mut vector: __m256i) -> __m256i {
    // SAFETY: the block has no instruction and leaves the register as it is.
    unsafe { asm!("/* {0} */", inout(ymm_reg) vector, options(pure, nomem, nostack, preserves_flags)) }
    vector
}

/// Wipes the stack and the vector registers that the functions here use.
#[inline(never)]
pub(crate) fn leave_nothing(_: Ifma) {
    wipe_stack::<STACK>();
    // SAFETY: the registers exist, as the token proves, and the compiler is told that they change.
    unsafe {
        asm!(
            "vzeroall",
            "vpxord zmm16, zmm16, zmm16",
            "vpxord zmm17, zmm17, zmm17",
            "vpxord zmm18, zmm18, zmm18",
            "vpxord zmm19, zmm19, zmm19",
            "vpxord zmm20, zmm20, zmm20",
            "vpxord zmm21, zmm21, zmm21",
            "vpxord zmm22, zmm22, zmm22",
            "vpxord zmm23, zmm23, zmm23",
            "vpxord zmm24, zmm24, zmm24",
            "vpxord zmm25, zmm25, zmm25",
            "vpxord zmm26, zmm26, zmm26",
            "vpxord zmm27, zmm27, zmm27",
            "vpxord zmm28, zmm28, zmm28",
            "vpxord zmm29, zmm29, zmm29",
            "vpxord zmm30, zmm30, zmm30",
            "vpxord zmm31, zmm31, zmm31",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nomem, nostack, preserves_flags),
        );
    }
}
