//! Stored blocks, and the few bits that need no engine: flush markers and the empty last block.

use crate::engine::{Bits, Chunk, Written};

/// The most that one stored block holds.
const BLOCK: usize = 65_535;

/// How many bytes [`write`] writes.
fn len(chunk: &Chunk) -> usize {
    // Three bits of the first block's header may not fit into the unfinished byte.
    let extra = usize::from(chunk.before.count() > 5);
    bound(chunk.input.len()) - 1 + extra
}

/// Holds whatever bits come before.
pub(crate) fn bound(input: usize) -> usize {
    input + input.div_ceil(BLOCK).max(1) * 5 + 1
}

/// Inputs up to this may be smaller as literals of the fixed codes than with the header of a stored block.
const TINY: usize = 64;

/// The number of bytes for a chunk in the smaller of the two forms without matches.
pub(crate) fn plain_len(chunk: &Chunk) -> usize {
    len(chunk).min(literals_len(chunk).unwrap_or(usize::MAX))
}

/// Writes that form; `out` must have room for [`plain_len`].
pub(crate) fn write_plain(chunk: &Chunk, out: &mut [u8]) -> Written {
    match literals_len(chunk) {
        Some(literals) if literals < len(chunk) => write_literals(chunk, out),
        _ => write(chunk, out),
    }
}

/// The size of one block with fixed codes and no match, if that is worth considering.
fn literals_len(chunk: &Chunk) -> Option<usize> {
    if chunk.input.len() > TINY {
        return None;
    }
    let body: usize = chunk.input.iter().map(|byte| if *byte < 144 { 8 } else { 9 }).sum();
    Some((usize::from(chunk.before.count()) + 3 + body + 7).div_ceil(8))
}

fn write_literals(chunk: &Chunk, out: &mut [u8]) -> Written {
    let mut writer = BitWriter::after(chunk.before);
    writer.push(u32::from(chunk.last), 1);
    writer.push(1, 2);
    let mut at = 0;
    let mut take = |writer: &mut BitWriter| {
        let bytes = writer.bytes();
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
        *writer = BitWriter::after(writer.rest());
    };
    for byte in chunk.input.iter().copied() {
        // Codes have their first bit highest; the stream has it lowest.
        match byte {
            0..144 => writer.push(u32::from((0x30 + byte).reverse_bits()), 8),
            _ => writer.push(u32::from((0x190 + u16::from(byte - 144)).reverse_bits() >> 7), 9),
        }
        take(&mut writer);
    }
    writer.push(0, 7);
    if chunk.last {
        writer.align();
    }
    take(&mut writer);
    Written { bytes: at, after: writer.rest(), synced: false }
}

/// Stores the input uncompressed, for when every engine's output is larger. `out` must have room for [`len`].
fn write(chunk: &Chunk, out: &mut [u8]) -> Written {
    let mut at = 0;
    let mut before = chunk.before;
    let mut rest = chunk.input;
    loop {
        let (block, later) = rest.split_at(rest.len().min(BLOCK));
        let mut head = BitWriter::after(before);
        head.push(u32::from(chunk.last && later.is_empty()), 1);
        head.push(0, 2);
        head.align();
        head.push(block.len() as u32, 16);
        head.push(!(block.len() as u32) & 0xffff, 16);
        for part in [head.bytes(), block] {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        before = Bits::NONE;
        rest = later;
        if rest.is_empty() {
            return Written { bytes: at, after: Bits::NONE, synced: false };
        }
    }
}

/// Collects bits into bytes, lowest first; room for a flush marker behind an unfinished byte.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bits: u64,
    count: u32,
    bytes: [u8; 8],
}

impl BitWriter {
    pub(crate) fn after(before: Bits) -> Self {
        Self { bits: before.value().into(), count: before.count().into(), bytes: [0; 8] }
    }

    /// `count` must be at most 16, and the total at most 64 bits.
    pub(crate) fn push(&mut self, value: u32, count: u32) {
        self.bits |= u64::from(value) << self.count;
        self.count += count;
    }

    pub(crate) fn align(&mut self) {
        self.count = self.count.next_multiple_of(8);
    }

    /// An empty stored block, which ends a sync flush.
    pub(crate) fn push_sync(&mut self) {
        self.push(0, 3);
        self.align();
        self.push(0, 16);
        self.push(0xffff, 16);
    }

    /// An empty block with fixed codes, which ends a partial flush and makes up an empty stream.
    pub(crate) fn push_empty(&mut self, last: bool) {
        self.push(u32::from(last), 1);
        self.push(1, 2);
        self.push(0, 7);
    }

    /// The complete bytes.
    pub(crate) fn bytes(&mut self) -> &[u8] {
        self.bytes = self.bits.to_le_bytes();
        &self.bytes[..self.count as usize / 8]
    }

    /// The rest of the last byte.
    pub(crate) fn rest(&self) -> Bits {
        let whole = self.count & !7;
        Bits::new(self.bits.checked_shr(whole).unwrap_or(0) as u8, (self.count - whole) as u8)
    }
}
