//! What depends on the CPU: how bytes are compared, and which instructions the loops are compiled for.

use core::array::from_fn;

/// How many bytes are compared at once.
pub(super) const WIDTH: u32 = 32;

/// The largest distance, less one.
pub(super) const FARTHEST: u32 = 0x7fff;

/// How many positions are measured at once.
pub(super) const LANES: usize = 16;

/// A piece of work that is compiled for each kind of CPU.
pub(super) trait Work {
    type Output;

    fn run<C: Cpu>(self, cpu: C) -> Self::Output;
}

/// A kind of CPU. A value is a proof that the code runs on one.
pub(super) trait Cpu: Copy {
    /// How many bytes are equal from the beginning: at most [`WIDTH`].
    ///
    /// # Safety
    ///
    /// [`WIDTH`] bytes can be read at both addresses.
    unsafe fn equal(self, a: *const u8, b: *const u8) -> u32;

    /// How near a candidate is to its position, as [`FARTHEST`] less the distance less one. The low halves of candidates
    /// are `old`, those of positions `before` plus the offset plus one. A distance is cut to `cap`, and with a `limit`
    /// of zero to the beginning of the text, too.
    fn nearness(
        self,
        old: &[u16; LANES],
        before: u16,
        offsets: &[u16; LANES],
        limit: u16,
        cap: u16,
    ) -> [u16; LANES];

    /// Does the work with the CPU's instructions, in a function of its own.
    fn run<W: Work>(self, work: W) -> W::Output;
}

/// Any CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable(());

impl Portable {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl Cpu for Portable {
    #[inline(always)]
    unsafe fn equal(self, a: *const u8, b: *const u8) -> u32 {
        // Most candidates differ within the first word.
        for at in (0..WIDTH as usize).step_by(8) {
            // SAFETY: the word lies within the bytes that the caller may read.
            let difference = unsafe { word(a.add(at)) ^ word(b.add(at)) };
            if difference != 0 {
                return at as u32 + difference.trailing_zeros() / 8;
            }
        }
        WIDTH
    }

    #[inline(always)]
    fn nearness(
        self,
        old: &[u16; LANES],
        before: u16,
        offsets: &[u16; LANES],
        limit: u16,
        cap: u16,
    ) -> [u16; LANES] {
        from_fn(|i| {
            let farthest = before.wrapping_add(offsets[i]);
            FARTHEST as u16 ^ farthest.wrapping_sub(old[i]).min(farthest | limit).min(cap)
        })
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        work.run(self)
    }
}

/// The eight bytes at an address, the first one lowest.
///
/// # Safety
///
/// They can be read.
#[inline(always)]
unsafe fn word(at: *const u8) -> u64 {
    // SAFETY: the caller says so, and no alignment is expected.
    u64::from_le(unsafe { at.cast::<u64>().read_unaligned() })
}

/// x86-64 with AVX2, and with the instructions for bits that came with it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let is_there = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt");
        is_there.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Cpu for Avx2 {
    #[inline(always)]
    unsafe fn equal(self, a: *const u8, b: *const u8) -> u32 {
        use std::arch::x86_64::{__m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8};
        // SAFETY: `self` proves that the CPU has the instructions, and the caller that the bytes can be read.
        let equal = unsafe {
            let (a, b) = (_mm256_loadu_si256(a.cast::<__m256i>()), _mm256_loadu_si256(b.cast::<__m256i>()));
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b))
        };
        equal.trailing_ones()
    }

    #[inline(always)]
    fn nearness(
        self,
        old: &[u16; LANES],
        before: u16,
        offsets: &[u16; LANES],
        limit: u16,
        cap: u16,
    ) -> [u16; LANES] {
        use std::arch::x86_64::{
            __m256i, _mm256_add_epi16, _mm256_loadu_si256, _mm256_min_epu16, _mm256_or_si256,
            _mm256_set1_epi16, _mm256_sub_epi16, _mm256_xor_si256,
        };
        // SAFETY: `self` proves that the CPU has the instructions, and the arrays are as long as a vector.
        unsafe {
            let (old, offsets) =
                (_mm256_loadu_si256(old.as_ptr().cast()), _mm256_loadu_si256(offsets.as_ptr().cast()));
            let farthest = _mm256_add_epi16(_mm256_set1_epi16(before as i16), offsets);
            let longest = _mm256_or_si256(farthest, _mm256_set1_epi16(limit as i16));
            let distance = _mm256_min_epu16(_mm256_sub_epi16(farthest, old), longest);
            let distance = _mm256_min_epu16(distance, _mm256_set1_epi16(cap as i16));
            core::mem::transmute::<__m256i, [u16; LANES]>(_mm256_xor_si256(
                distance,
                _mm256_set1_epi16(FARTHEST as i16),
            ))
        }
    }

    #[inline(always)]
    fn run<W: Work>(self, work: W) -> W::Output {
        /// # Safety
        ///
        /// The CPU has the instructions.
        /// # Safety
        ///
        /// The CPU has the instructions.
        #[inline(never)]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn with_avx2<W: Work>(work: W, cpu: Avx2) -> W::Output {
            work.run(cpu)
        }
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { with_avx2(work, self) }
    }
}

/// No other CPU has it.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(super) enum Avx2 {}

#[cfg(not(target_arch = "x86_64"))]
impl Avx2 {
    pub(super) const fn detect() -> Option<Self> {
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Cpu for Avx2 {
    unsafe fn equal(self, _: *const u8, _: *const u8) -> u32 {
        match self {}
    }

    fn nearness(self, _: &[u16; LANES], _: u16, _: &[u16; LANES], _: u16, _: u16) -> [u16; LANES] {
        match self {}
    }

    fn run<W: Work>(self, _: W) -> W::Output {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cpu: impl Cpu) {
        for length in 0..=40 {
            let mut other = [7; 64];
            if length < 40 {
                other[length] = 8;
            }
            // SAFETY: both arrays are longer than what is compared.
            let equal = unsafe { cpu.equal([7; 64].as_ptr(), other.as_ptr()) };
            assert_eq!(equal, (length as u32).min(WIDTH));
        }
    }

    fn nearness(cpu: impl Cpu) -> Vec<[u16; LANES]> {
        let old: [u16; LANES] = from_fn(|i| (i * 0x1357) as u16);
        let offsets: [u16; LANES] = from_fn(|i| i as u16 / 4);
        let positions = (0..1 << 16).step_by(13);
        let all = positions.flat_map(|before| [(before, 0), (before, u16::MAX)]);
        all.map(|(before, limit)| cpu.nearness(&old, before as u16, &offsets, limit, 4095)).collect()
    }

    #[test]
    fn all_ways_agree() {
        check(Portable::new());
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            check(avx2);
            assert_eq!(nearness(avx2), nearness(Portable::new()));
        }
    }
}
