//! Memory for secrets: wiping that the compiler cannot remove, comparison in constant time, and pages that are not
//! inherited by a fork.

#![allow(unsafe_code)]

use std::arch::asm;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Overwrites `bytes` with zeros, even if nothing reads them afterwards.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    keep(bytes.as_ptr());
}

/// Overwrites what functions that have returned may have left on the stack, `N` bytes deep.
#[inline(never)]
pub(crate) fn wipe_stack<const N: usize>() {
    wipe(&mut [0; N]);
}

/// Like [`wipe`], for limbs.
pub(crate) fn wipe_limbs(limbs: &mut [u64]) {
    limbs.fill(0);
    keep(limbs.as_ptr().cast());
}

/// Like [`wipe_limbs`], for signed limbs.
pub(crate) fn wipe_signed(limbs: &mut [i64]) {
    limbs.fill(0);
    keep(limbs.as_ptr().cast());
}

/// Compares in time that depends only on the lengths.
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let difference = a.iter().zip(b).fold(0, |any, (a, b)| any | (a ^ b));
    // Hides the value, or the compiler might stop at the first difference.
    std::hint::black_box(difference) == 0
}

/// Makes the compiler assume that the memory at `address` is read here.
fn keep(address: *const u8) {
    // SAFETY: the block has no instruction; by its default clobbers it may read any memory whose address it was given,
    // so earlier stores are kept.
    unsafe { asm!("/* {0} */", in(reg) address, options(nostack, preserves_flags)) }
}

/// Returns the value unchanged, but unknown to the compiler: a mask stays a mask and does not become a branch.
#[inline(always)]
pub(crate) fn opaque(mut value: u64) -> u64 {
    // SAFETY: the block has no instruction and leaves the register as it is.
    unsafe { asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags)) }
    value
}

/// Returns the reference unchanged, but to what might be another value: in a loop, what is read through it stays in memory and is
/// not kept in registers that are then spilled.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for vectors"))]
#[inline(always)]
pub(crate) fn in_memory<T>(value: &T) -> &T {
    let mut address = ptr::from_ref(value);
    // SAFETY: the block has no instruction and leaves the address as it is, so it is that of the value, for as long.
    unsafe {
        asm!("/* {0} */", inout(reg) address, options(readonly, nostack, preserves_flags));
        &*address
    }
}

/// Types for which every bit pattern, including all zeros, is valid, and which own nothing.
///
/// # Safety
/// The type is an integer or is made up of integers, without padding.
pub(crate) unsafe trait Plain: Copy + 'static {
    const ZERO: Self;
}

// SAFETY: an integer.
unsafe impl Plain for u8 {
    const ZERO: Self = 0;
}

// SAFETY: an integer.
unsafe impl Plain for u64 {
    const ZERO: Self = 0;
}

// SAFETY: arrays have no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}

/// A stack of secrets that is empty in a forked child.
///
/// The kernel zeroes the pages in the child (`MADV_WIPEONFORK`), including the count, however the child was created:
/// two processes sharing a nonce or an ephemeral key would reveal their secrets. Core dumps omit the pages.
///
/// A copy of the process that is made from outside, by a checkpoint or a snapshot, contains all of it; only expiry
/// protects against that ([`expire`](Self::expire)).
pub(crate) struct SecretStack<T: Plain, const N: usize> {
    region: NonNull<Region<T, N>>,
    /// The time of day, in ns, when the oldest secret may have been pushed.
    since: u64,
    owned: PhantomData<T>,
}

#[repr(C)]
struct Region<T, const N: usize> {
    length: usize,
    slots: [T; N],
}

impl<T: Plain, const N: usize> SecretStack<T, N> {
    /// A server with work to batch uses up a pool in less time, and a process is seldom copied and resumed so soon.
    const MAX_AGE_NS: u64 = 1_000_000_000;

    const BYTES: usize = size_of::<Region<T, N>>();

    /// `None` if the kernel refuses such pages (before Linux 4.14, or out of memory).
    pub(crate) fn new() -> Option<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address the kernel chooses touches no memory of ours.
        let address =
            unsafe { mmap_anonymous(ptr::null_mut(), Self::BYTES, protection, MapFlags::PRIVATE) }.ok()?;
        // Page alignment is enough for any T here, and zeroed pages are an empty stack.
        let stack = Self { region: NonNull::new(address.cast())?, since: 0, owned: PhantomData };
        let advised = |advice| {
            // SAFETY: the range is the mapping just made.
            unsafe { madvise(address, Self::BYTES, advice) }.is_ok()
        };
        (advised(Advice::LinuxWipeOnFork) && advised(Advice::LinuxDontDump)).then_some(stack)
    }

    pub(crate) fn len(&self) -> usize {
        // The bound holds even if a stray write of the host program hits the page.
        self.region().length.min(N)
    }

    /// Returns the secret if the stack is full.
    pub(crate) fn push(&mut self, secret: T) -> Result<(), T> {
        let length = self.len();
        let region = self.region_mut();
        let Some(slot) = region.slots.get_mut(length) else {
            return Err(secret);
        };
        *slot = secret;
        region.length = length + 1;
        Ok(())
    }

    /// Removes a secret and leaves zeros in its place.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let top = self.len().checked_sub(1)?;
        let region = self.region_mut();
        region.length = top;
        let slot = &mut region.slots[top];
        let secret = *slot;
        *slot = T::ZERO;
        keep(ptr::from_mut(slot).cast());
        Some(secret)
    }

    /// Wipes everything if the oldest secret may be more than a second old at `now`, a time of day in ns. Call before
    /// each use.
    ///
    /// A clock that was set back says nothing about age, so that counts as old.
    pub(crate) fn expire(&mut self, now: u64) {
        if now.checked_sub(self.since).is_none_or(|age| age > Self::MAX_AGE_NS) {
            self.clear();
        }
        if self.len() == 0 {
            self.since = now;
        }
    }

    pub(crate) fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    fn region(&self) -> &Region<T, N> {
        // SAFETY: the mapping lives as long as self, is aligned and zero-initialised, and `Plain` allows any bytes.
        unsafe { self.region.as_ref() }
    }

    fn region_mut(&mut self) -> &mut Region<T, N> {
        // SAFETY: as in `region`; the mapping is private to this value, which is borrowed mutably.
        unsafe { self.region.as_mut() }
    }
}

impl<T: Plain, const N: usize> Drop for SecretStack<T, N> {
    fn drop(&mut self) {
        self.clear();
        // SAFETY: the range is the mapping made in `new`, and no reference to it outlives self.
        let _ = unsafe { munmap(self.region.as_ptr().cast(), Self::BYTES) };
    }
}

// SAFETY: the mapping belongs to this value alone, and T owns nothing bound to a thread.
unsafe impl<T: Plain + Send, const N: usize> Send for SecretStack<T, N> {}

#[cfg(test)]
mod tests {
    use super::*;

    type Stack = SecretStack<[u64; 3], 4>;

    #[test]
    fn last_in_first_out_and_nothing_stays_behind() {
        let mut stack = Stack::new().unwrap();
        assert_eq!((stack.len(), stack.pop()), (0, None));
        for i in 1..=4 {
            assert_eq!(stack.push([i; 3]), Ok(()));
        }
        assert_eq!(stack.push([5; 3]), Err([5; 3]), "full");
        assert_eq!(stack.pop(), Some([4; 3]));
        assert_eq!(stack.region().slots, [[1; 3], [2; 3], [3; 3], [0; 3]]);
        stack.clear();
        assert_eq!(stack.len(), 0);
        assert_eq!(stack.region().slots, [[0; 3]; 4]);
    }

    #[test]
    fn secrets_live_for_a_second() {
        const SECOND: u64 = 1_000_000_000;
        let mut stack = Stack::new().unwrap();
        let mut left = |push: u64, now: u64| {
            (0..push).for_each(|_| stack.push([7; 3]).unwrap());
            stack.expire(now);
            (stack.len(), stack.region().slots == [[0; 3]; 4])
        };
        assert_eq!(left(0, 5 * SECOND), (0, true));
        assert_eq!(left(1, 6 * SECOND), (1, false), "exactly a second");
        assert_eq!(left(1, 6 * SECOND), (2, false));
        assert_eq!(left(0, 6 * SECOND + 1), (0, true), "the age is that of the oldest");
        assert_eq!(left(2, 6 * SECOND + 2), (2, false), "what came after the wiping is new");
        assert_eq!(left(0, 6 * SECOND), (0, true), "the clock was set back");
        assert_eq!(left(3, 6 * SECOND), (3, false));
        assert_eq!(left(0, u64::MAX), (0, true));
    }

    #[test]
    fn a_forked_child_finds_it_empty() {
        let mut stack = Stack::new().unwrap();
        stack.push([7; 3]).unwrap();
        // SAFETY: the child only reads memory and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let empty = stack.len() == 0 && stack.pop().is_none() && stack.region().slots == [[0; 3]; 4];
            // SAFETY: exits without running the parent's exit handlers.
            unsafe { libc::_exit(if empty { 42 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 42);
        assert_eq!(stack.pop(), Some([7; 3]), "the parent keeps its own");
    }

    #[test]
    fn wiped_is_zero_and_equal_is_equal() {
        let mut bytes = [0xaa; 100];
        wipe(&mut bytes[1..99]);
        assert_eq!((bytes[0], bytes[99]), (0xaa, 0xaa));
        assert!(bytes[1..99].iter().all(|&byte| byte == 0));
        assert!(constant_time_eq(&[], &[]) && constant_time_eq(b"abc", b"abc"));
        assert!(!constant_time_eq(b"abc", b"ab") && !constant_time_eq(b"abc", b"abd"));
        for bit in 0..24 {
            let mut other = *b"abc";
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!constant_time_eq(b"abc", &other));
        }
    }
}
