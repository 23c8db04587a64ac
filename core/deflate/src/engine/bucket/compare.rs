//! Comparing bytes, 32 at a time, on different CPUs.

/// How many bytes are compared at once.
pub(super) const WIDTH: u32 = 32;

/// A way to compare. Each is a proof that the CPU can.
pub(super) trait Compare: Copy {
    /// How many bytes are equal from the beginning: at most [`WIDTH`].
    ///
    /// # Safety
    ///
    /// [`WIDTH`] bytes can be read at both addresses.
    unsafe fn equal(self, a: *const u8, b: *const u8) -> u32;
}

/// On any CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable(());

impl Portable {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl Compare for Portable {
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

/// On x86-64 with AVX2, and with the instructions for bits that came with it.
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
impl Compare for Avx2 {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(compare: impl Compare) {
        for length in 0..=40 {
            let mut other = [7; 64];
            if length < 40 {
                other[length] = 8;
            }
            // SAFETY: both arrays are longer than what is compared.
            let equal = unsafe { compare.equal([7; 64].as_ptr(), other.as_ptr()) };
            assert_eq!(equal, (length as u32).min(WIDTH));
        }
    }

    #[test]
    fn all_ways_agree() {
        check(Portable::new());
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            check(avx2);
        }
    }
}
