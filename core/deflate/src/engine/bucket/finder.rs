//! Finds matches: buckets of positions by the hash of four bytes.
//!
//! A bucket is one word, or two, of 16-bit positions, the latest lowest; a new one shifts the oldest out. It has no
//! tags: whether a candidate is any good, only a comparison tells. So nothing is decided, and mispredicted, until the
//! lengths of all matches of a position are known. Buckets are read, and written, a good way ahead of the parser for
//! all positions, where one cache miss hides behind the next; candidates are compared only where the parser goes.

use super::compare::{Compare, WIDTH};
use super::symbols::LONGEST;

/// Text in a buffer, between bytes that may be read, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    start: *const u8,
    end: u32,
}

impl Text {
    /// How many readable bytes must follow the text: positions are hashed that far ahead, and matches compared beyond
    /// its end.
    pub(super) const BEHIND: usize = 384;

    /// The text in `buffer` without the last [`Self::BEHIND`] bytes.
    ///
    /// # Safety
    ///
    /// The buffer stays as it is as long as the result is used.
    pub(super) unsafe fn new(buffer: &[u8]) -> Self {
        Self { start: buffer.as_ptr(), end: (buffer.len() - Self::BEHIND) as u32 }
    }

    pub(super) fn end(self) -> u32 {
        self.end
    }

    #[inline(always)]
    pub(super) fn byte(self, at: u32) -> u8 {
        debug_assert!(at < self.end);
        // SAFETY: the parser asks for bytes of the text only.
        unsafe { *self.start.add(at as usize) }
    }
}
