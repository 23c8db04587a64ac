//! What matches of a later call may refer to: the last bytes of the output, in a ring.

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// `1 << bits` bytes from the stream's allocator; null until they are needed.
    pub(super) base: *mut u8,
    /// A power of two; zero until something is kept after a reset.
    pub(super) size: usize,
    /// How many bytes are kept.
    pub(super) have: usize,
    /// Where the next byte goes.
    pub(super) next: usize,
}

impl Window {
    /// Forgets the contents but keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.size, self.have, self.next) = (0, 0, 0);
    }

    /// Keeps the end of `bytes`. The memory must be allocated, with `size` bytes.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        debug_assert!(!self.base.is_null() && self.size > 0);
        if bytes.len() >= self.size {
            self.write(0, &bytes[bytes.len() - self.size..]);
            (self.next, self.have) = (0, self.size);
            return;
        }
        let (head, tail) = bytes.split_at(bytes.len().min(self.size - self.next));
        self.write(self.next, head);
        if !tail.is_empty() {
            self.write(0, tail);
        }
        self.have = (self.have + bytes.len()).min(self.size);
        self.next = (self.next + bytes.len()) & (self.size - 1);
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.size);
        // SAFETY: within the window, whose memory is this stream's alone.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at), bytes.len()) };
    }

    /// At most `len` of the bytes kept `back` bytes before the next one, as far as they are
    /// contiguous. `back` is at least 1 and at most `have`.
    #[inline]
    pub(super) fn piece(&self, back: usize, len: usize) -> &[u8] {
        assert!(back >= 1 && back <= self.have);
        let (at, here) = if back > self.next {
            (self.size + self.next - back, back - self.next)
        } else {
            (self.next - back, back)
        };
        // SAFETY: the piece lies within the window and was written: `back <= have`.
        unsafe { core::slice::from_raw_parts(self.base.add(at), here.min(len)) }
    }

    /// The contents, oldest first.
    pub(super) fn contents(&self) -> (&[u8], &[u8]) {
        if self.have == 0 {
            return (&[], &[]);
        }
        // SAFETY: `have` bytes were written; the oldest lie behind `next` once the ring is full,
        // and before that `have == next`.
        unsafe {
            (
                core::slice::from_raw_parts(self.base.add(self.next), self.have - self.next),
                core::slice::from_raw_parts(self.base, self.next),
            )
        }
    }
}
