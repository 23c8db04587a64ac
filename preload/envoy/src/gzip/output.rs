//! Compressed bytes on their way to a buffer.

use hasten_deflate::pool;

use super::buffer::Buffer;

/// Where compressed bytes are put before they go to the end of a buffer. From the allocator: the pool keeps as many
/// buffers as the engines need themselves.
pub(super) struct Output {
    memory: Vec<u8>,
    length: usize,
}

impl Output {
    /// For the output of `input` bytes.
    pub(super) fn new(input: usize) -> Self {
        /// gzip's header and trailer, and the marker of a flush.
        const AROUND: usize = 10 + 8 + 8;
        Self { memory: vec![0; pool::bound(input) + AROUND], length: 0 }
    }

    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.length == self.memory.len() {
            self.memory.resize(self.length * 2, 0);
        }
        &mut self.memory[self.length..]
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.length += bytes;
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if end > self.memory.len() {
            self.memory.resize(end, 0);
        }
        self.memory[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// The number of bytes.
    pub(super) fn add_to(self, buffer: &mut Buffer) -> u64 {
        buffer.add(&self.memory[..self.length]);
        self.length as u64
    }
}
