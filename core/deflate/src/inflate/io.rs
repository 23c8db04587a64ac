//! The two ends of a call: the bits coming in, the bytes going out.

use core::ffi::c_int;
use core::ptr::copy_nonoverlapping;

use crate::abi::Z_OK;

/// Why a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this result, after the stream's fields are brought up to date.
    Leave(c_int),
    /// With this result at once: zlib leaves its totals as they are.
    Return(c_int),
}

pub(super) type Step = Result<(), Exit>;

/// The caller's input, and the bits taken from it but not used yet.
///
/// No more bytes are taken than needed, so that the caller sees exactly how far the stream got.
#[derive(Debug)]
pub(super) struct Input {
    /// Valid for reads of `have` bytes.
    next: *const u8,
    have: usize,
    /// `bits` bits, and zeros above them.
    pub(super) hold: u64,
    pub(super) bits: u32,
}

impl Input {
    /// # Safety
    ///
    /// `next` must be valid for reads of `have` bytes for as long as this lives.
    pub(super) unsafe fn new(next: *const u8, have: usize, hold: u64, bits: u32) -> Self {
        Self { next, have, hold, bits }
    }

    pub(super) fn next(&self) -> *const u8 {
        self.next
    }

    pub(super) fn have(&self) -> usize {
        self.have
    }

    /// The input not taken yet.
    pub(super) fn rest(&self) -> &[u8] {
        if self.have == 0 {
            return &[];
        }
        // SAFETY: `new`'s caller vouches for `have` bytes at `next`.
        unsafe { core::slice::from_raw_parts(self.next, self.have) }
    }

    /// Skips bytes that were used directly.
    pub(super) fn advance(&mut self, count: usize) {
        assert!(count <= self.have);
        // SAFETY: at least `count` bytes are left.
        self.next = unsafe { self.next.add(count) };
        self.have -= count;
    }

    /// One more byte, or the end of the call.
    #[inline]
    pub(super) fn pull(&mut self) -> Step {
        if self.have == 0 {
            return Err(Exit::Leave(Z_OK));
        }
        // SAFETY: at least one byte is left.
        self.hold += u64::from(unsafe { *self.next }) << self.bits;
        self.bits += 8;
        self.advance(1);
        Ok(())
    }

    /// At least `count` bits, or the end of the call.
    #[inline]
    pub(super) fn need(&mut self, count: u32) -> Step {
        while self.bits < count {
            self.pull()?;
        }
        Ok(())
    }

    /// The next `count` bits, at most 31; zeros where there are none yet.
    #[inline]
    pub(super) fn peek(&self, count: u32) -> usize {
        (self.hold & ((1 << count) - 1)) as usize
    }

    #[inline]
    pub(super) fn drop(&mut self, count: u32) {
        self.hold >>= count;
        self.bits -= count;
    }

    /// The next `count` bits, which `need` has ensured.
    pub(super) fn take(&mut self, count: u32) -> usize {
        let value = self.peek(count);
        self.drop(count);
        value
    }

    /// Drops all bits.
    pub(super) fn clear(&mut self) {
        self.hold = 0;
        self.bits = 0;
    }

    /// Drops the bits up to the next byte boundary.
    pub(super) fn align(&mut self) {
        self.drop(self.bits & 7);
    }
}

/// Room for the output of a call.
#[derive(Debug)]
pub(super) struct Output {
    /// Valid for writes of `left` bytes; `begun - left` bytes before it were written by this call.
    put: *mut u8,
    left: usize,
    /// How much room there was when the call, or the trailer, began.
    begun: usize,
}

impl Output {
    /// # Safety
    ///
    /// `put` must be valid for reads and writes of `left` bytes for as long as this lives.
    pub(super) unsafe fn new(put: *mut u8, left: usize) -> Self {
        Self { put, left, begun: left }
    }

    pub(super) fn next(&self) -> *mut u8 {
        self.put
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// How far back a match may reach within this call's output.
    pub(super) fn written(&self) -> usize {
        self.begun - self.left
    }

    /// Output of this call that is not accounted for yet.
    pub(super) fn fresh(&self) -> &[u8] {
        let len = self.written();
        if len == 0 {
            return &[];
        }
        // SAFETY: these bytes were written, in the caller's memory, before `put`.
        unsafe { core::slice::from_raw_parts(self.put.sub(len), len) }
    }

    /// Marks the output as accounted for.
    pub(super) fn settle(&mut self) {
        self.begun = self.left;
    }

    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        assert!(self.left > 0);
        // SAFETY: there is room for one byte.
        unsafe {
            *self.put = byte;
            self.put = self.put.add(1);
        }
        self.left -= 1;
    }

    /// Writes bytes from outside the output.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.left);
        // SAFETY: there is room. A C program may decompress in place, so the two may overlap.
        unsafe { core::ptr::copy(bytes.as_ptr(), self.put, bytes.len()) };
        self.advance(bytes.len());
    }

    /// Repeats the output from `distance` bytes ago.
    pub(super) fn repeat(&mut self, distance: usize, len: usize) {
        assert!(distance >= 1 && distance <= self.written() && len <= self.left);
        // SAFETY: reads lie behind and writes ahead of `put`, all within this call's output.
        unsafe { repeat_exactly(self.put, distance, len) };
        self.advance(len);
    }

    /// Skips bytes that were written elsewhere.
    pub(super) fn advance(&mut self, count: usize) {
        assert!(count <= self.left);
        // SAFETY: the result is within the room, or at its end.
        self.put = unsafe { self.put.add(count) };
        self.left -= count;
    }
}

/// Repeats what lies `distance` bytes before `put`.
///
/// # Safety
///
/// `distance` bytes before `put` must be readable, and `len` bytes at `put` writable.
#[inline(always)]
pub(super) unsafe fn repeat_exactly(put: *mut u8, distance: usize, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let from = put.sub(distance).cast_const();
        if distance >= len {
            copy_nonoverlapping(from, put, len);
        } else if distance == 1 {
            put.write_bytes(*from, len);
        } else {
            for at in 0..len {
                *put.add(at) = *from.add(at);
            }
        }
    }
}
