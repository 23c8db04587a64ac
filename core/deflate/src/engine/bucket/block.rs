//! Blocks: the smallest of deflate's three forms for some tokens.

use super::bits::Writer;
use super::cpu::{Cpu, Work};
use super::huffman;
use super::symbols::{
    DISTANCE_EXTRA, DISTANCES, END_OF_BLOCK, FIRST_LENGTH, FIXED_DISTANCE_LENGTHS, FIXED_LENGTHS,
    LENGTH_EXTRA, LENGTH_STARTS, LENGTHS, LITERALS_AND_LENGTHS,
};
use super::tokens::{FIRST_MATCH, Tokens};

/// Up to this many tokens, no codes of a block's own are worth the header that describes them.
const FEW: usize = 40;

/// Writes the tokens, which stand for `plain`, as one block; whether there is room for it.
pub(super) fn write<C: Cpu>(
    cpu: C,
    writer: &mut Writer,
    tokens: &Tokens,
    plain: &[u8],
    last: bool,
) -> Option<()> {
    let frequencies = Frequencies::of(tokens);
    let stored = stored_bits(writer, plain.len());
    let fixed = frequencies.bits(&FIXED_LENGTHS, &FIXED_DISTANCE_LENGTHS);
    if tokens.len() > FEW {
        let codes = Codes::for_frequencies(&frequencies);
        let header = Header::of(&codes);
        let own = header.bits() + frequencies.bits(&codes.lengths, &codes.distance_lengths);
        if own < fixed && own <= stored {
            writer.has_room(own + 3).then_some(())?;
            header.write(writer, last);
            cpu.run(Emit { writer, tokens, table: &Table::of(&codes) });
            writer.push(codes.codes[END_OF_BLOCK].into(), codes.lengths[END_OF_BLOCK].into());
            return Some(());
        }
    }
    writer.has_room(stored.min(fixed) + 3).then_some(())?;
    if stored < fixed {
        store(writer, plain, last);
    } else {
        writer.push(u64::from(last) | FIXED << 1, 3);
        cpu.run(Emit { writer, tokens, table: &FIXED_TABLE });
        writer.push(0, FIXED_LENGTHS[END_OF_BLOCK].into());
    }
    Some(())
}

/// A block with nothing in it, which ends an empty stream.
pub(super) fn write_empty(writer: &mut Writer) -> Option<()> {
    writer.has_room(10).then_some(())?;
    writer.push(1 | FIXED << 1, 3 + u32::from(FIXED_LENGTHS[END_OF_BLOCK]));
    Some(())
}

/// The forms' numbers.
const FIXED: u64 = 1;
const DYNAMIC: u64 = 2;

const MOST_STORED: usize = 65_535;

fn stored_bits(writer: &Writer, length: usize) -> u64 {
    // The first block's three bits may be all that is missing of a byte, or five too many.
    let first = (writer.missing() + 5) % 8 + 3;
    let others = length.div_ceil(MOST_STORED).max(1) - 1;
    (length + others * 5 + 4) as u64 * 8 + u64::from(first)
}

fn store(writer: &mut Writer, plain: &[u8], last: bool) {
    let count = plain.len().div_ceil(MOST_STORED);
    for (i, piece) in plain.chunks(MOST_STORED).enumerate() {
        writer.push(u64::from(last && i + 1 == count), 3);
        writer.align();
        let length = piece.len() as u16;
        writer.push(u64::from(length) | u64::from(!length) << 16, 32);
        writer.extend(piece);
    }
}

/// How often each symbol occurs in a block.
struct Frequencies {
    symbols: [u32; LITERALS_AND_LENGTHS],
    distances: [u32; DISTANCES],
    /// The bits that follow the symbols.
    extra: u64,
}

impl Frequencies {
    fn of(tokens: &Tokens) -> Self {
        let mut symbols = [0; LITERALS_AND_LENGTHS];
        let literals = &tokens.frequencies[..END_OF_BLOCK];
        symbols[..END_OF_BLOCK].copy_from_slice(literals);
        symbols[END_OF_BLOCK] = 1;
        let lengths: &[u32] = &tokens.frequencies[FIRST_MATCH as usize..];
        let mut extra = 0;
        for slot in 0..LENGTHS {
            let (start, end) = (usize::from(LENGTH_STARTS[slot]), usize::from(LENGTH_STARTS[slot + 1]));
            let count: u32 = lengths[start..end].iter().sum();
            symbols[FIRST_LENGTH + slot] = count;
            extra += u64::from(count) * u64::from(LENGTH_EXTRA[slot]);
        }
        let mut distances = [0; DISTANCES];
        distances.copy_from_slice(&tokens.distances[..DISTANCES]);
        for (count, bits) in distances.iter().zip(DISTANCE_EXTRA) {
            extra += u64::from(*count) * u64::from(bits);
        }
        Self { symbols, distances, extra }
    }

    /// How many bits the block takes with codes of these lengths, header apart.
    fn bits(&self, lengths: &[u8; LITERALS_AND_LENGTHS], distance_lengths: &[u8; DISTANCES]) -> u64 {
        // No block has 2^28 tokens of 15 bits.
        let product = |(count, length): (&u32, &u8)| *count * u32::from(*length);
        let symbols: u32 = self.symbols.iter().zip(lengths).map(product).sum();
        let distances: u32 = self.distances.iter().zip(distance_lengths).map(product).sum();
        u64::from(symbols) + u64::from(distances) + self.extra
    }
}

/// A block's codes. Those without a length are undefined.
struct Codes {
    lengths: [u8; LITERALS_AND_LENGTHS],
    codes: [u16; LITERALS_AND_LENGTHS],
    distance_lengths: [u8; DISTANCES],
    distance_codes: [u16; DISTANCES],
}

impl Codes {
    fn for_frequencies(frequencies: &Frequencies) -> Self {
        const LIMIT: usize = 15;
        let (mut lengths, mut codes) = ([0; LITERALS_AND_LENGTHS], [0; LITERALS_AND_LENGTHS]);
        let (mut distance_lengths, mut distance_codes) = ([0; DISTANCES], [0; DISTANCES]);
        huffman::build(&frequencies.symbols, LIMIT, &mut lengths, &mut codes);
        huffman::build(&frequencies.distances, LIMIT, &mut distance_lengths, &mut distance_codes);
        Self { lengths, codes, distance_lengths, distance_codes }
    }
}

/// The code of code lengths has this many symbols: lengths, and three kinds of repetition.
const KINDS: usize = 19;
const REPEAT: u8 = 16;
const ZEROS: u8 = 17;
const MANY_ZEROS: u8 = 18;
const KIND_EXTRA: [u8; KINDS] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 7];

/// The order in which lengths of their codes are written.
const KIND_ORDER: [u8; KINDS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The description of a block's codes.
struct Header {
    symbols: usize,
    distances: usize,
    /// Each kind, with the value of its extra bits.
    items: [(u8, u8); LITERALS_AND_LENGTHS + DISTANCES],
    count: usize,
    lengths: [u8; KINDS],
    codes: [u16; KINDS],
    frequencies: [u32; KINDS],
    /// How many lengths of the kinds' own codes are written.
    kinds: usize,
}

impl Header {
    fn of(codes: &Codes) -> Self {
        const LIMIT: usize = 7;
        let symbols = used(&codes.lengths, FIRST_LENGTH);
        let distances = used(&codes.distance_lengths, 1);
        let mut all = [0; LITERALS_AND_LENGTHS + DISTANCES];
        all[..symbols].copy_from_slice(&codes.lengths[..symbols]);
        all[symbols..symbols + distances].copy_from_slice(&codes.distance_lengths[..distances]);
        let mut header = Self {
            symbols,
            distances,
            items: [(0, 0); LITERALS_AND_LENGTHS + DISTANCES],
            count: 0,
            lengths: [0; KINDS],
            codes: [0; KINDS],
            frequencies: [0; KINDS],
            kinds: 0,
        };
        header.list(&all[..symbols + distances]);
        huffman::build(&header.frequencies, LIMIT, &mut header.lengths, &mut header.codes);
        let is_used = |kind: &u8| header.lengths[usize::from(*kind)] > 0;
        header.kinds = KIND_ORDER.iter().rposition(is_used).map_or(4, |last| (last + 1).max(4));
        header
    }

    /// Lists lengths with their repetitions.
    fn list(&mut self, lengths: &[u8]) {
        for run in lengths.chunk_by(|a, b| a == b) {
            let (value, mut left) = (run[0], run.len());
            if value > 0 {
                self.item(value, 0);
                left -= 1;
            }
            while left >= 3 {
                let (kind, least, most) = match (value, left) {
                    (1.., _) => (REPEAT, 3, 6),
                    (0, ..=10) => (ZEROS, 3, 10),
                    (0, _) => (MANY_ZEROS, 11, 138),
                };
                let now = left.min(most);
                self.item(kind, (now - least) as u8);
                left -= now;
            }
            (0..left).for_each(|_| self.item(value, 0));
        }
    }

    fn item(&mut self, kind: u8, extra: u8) {
        self.items[self.count] = (kind, extra);
        self.count += 1;
        self.frequencies[usize::from(kind)] += 1;
    }

    /// How many bits it takes.
    fn bits(&self) -> u64 {
        let kinds = (0..KINDS)
            .map(|kind| u64::from(self.frequencies[kind]) * u64::from(self.lengths[kind] + KIND_EXTRA[kind]));
        5 + 5 + 4 + 3 * self.kinds as u64 + kinds.sum::<u64>()
    }

    fn write(&self, writer: &mut Writer, last: bool) {
        let counts = (self.symbols - FIRST_LENGTH) | (self.distances - 1) << 5 | (self.kinds - 4) << 10;
        writer.push(u64::from(last) | DYNAMIC << 1 | (counts as u64) << 3, 17);
        for part in KIND_ORDER[..self.kinds].chunks(16) {
            let bits = part
                .iter()
                .rev()
                .fold(0, |bits, kind| bits << 3 | u64::from(self.lengths[usize::from(*kind)]));
            writer.push(bits, 3 * part.len() as u32);
        }
        for (kind, extra) in &self.items[..self.count] {
            let kind = usize::from(*kind);
            let length = self.lengths[kind];
            let bits = u64::from(self.codes[kind]) | u64::from(*extra) << length;
            writer.push(bits, u32::from(length + KIND_EXTRA[kind]));
        }
    }
}

/// How many lengths there are up to the last that is not zero; at least `least`.
fn used(lengths: &[u8], least: usize) -> usize {
    lengths.iter().rposition(|length| *length > 0).map_or(least, |last| (last + 1).max(least))
}

/// What is written for each token: by its literal or length, and by the symbol of its distance.
struct Table {
    /// The bits, and their number from bit 24 on.
    symbols: [u32; 512],
    /// The code, its length from bit 32 on, and the number of bits that follow it from bit 40 on.
    distances: [u64; 32],
}

impl Table {
    fn of(codes: &Codes) -> Self {
        Self::new(&codes.lengths, &codes.codes, &codes.distance_lengths, &codes.distance_codes)
    }

    const fn new(
        lengths: &[u8; LITERALS_AND_LENGTHS],
        codes: &[u16; LITERALS_AND_LENGTHS],
        distance_lengths: &[u8; DISTANCES],
        distance_codes: &[u16; DISTANCES],
    ) -> Self {
        let (mut symbols, mut distances) = ([0; 512], [0; 32]);
        let mut literal = 0;
        while literal < END_OF_BLOCK {
            symbols[literal] = codes[literal] as u32 | (lengths[literal] as u32) << 24;
            literal += 1;
        }
        let mut slot = 0;
        while slot < LENGTHS {
            let (code, length) = (codes[FIRST_LENGTH + slot] as u32, lengths[FIRST_LENGTH + slot] as u32);
            let count = length + LENGTH_EXTRA[slot] as u32;
            let (start, end) = (LENGTH_STARTS[slot] as usize, LENGTH_STARTS[slot + 1] as usize);
            let mut at = start;
            while length > 0 && at < end {
                symbols[FIRST_MATCH as usize + at] = code | ((at - start) as u32) << length | count << 24;
                at += 1;
            }
            slot += 1;
        }
        let mut symbol = 0;
        while symbol < DISTANCES {
            distances[symbol] = distance_codes[symbol] as u64
                | (distance_lengths[symbol] as u64) << 32
                | (DISTANCE_EXTRA[symbol] as u64) << 40;
            symbol += 1;
        }
        Self { symbols, distances }
    }

    /// The bits of a token and their number, at most 48. A literal has no distance, which the table does not hold.
    #[inline(always)]
    fn bits(&self, token: u32) -> (u64, u32) {
        let symbol = self.symbols[token as usize & 511];
        let distance = self.distances[(token >> 24) as usize & 31];
        let (count, length, extra) = (symbol >> 24, (distance >> 32) as u32 & 255, (distance >> 40) as u32);
        let low = u64::from(token >> 9 & 0x7fff) & ((1 << (extra & 63)) - 1);
        let bits = distance & 0xffff_ffff | low << (length & 63);
        (u64::from(symbol & 0xff_ffff) | bits << (count & 63), count + length + extra)
    }
}

static FIXED_TABLE: Table = {
    let (codes, distance_codes) = (canonical(&FIXED_LENGTHS), canonical(&FIXED_DISTANCE_LENGTHS));
    Table::new(&FIXED_LENGTHS, &codes, &FIXED_DISTANCE_LENGTHS, &distance_codes)
};

/// As [`huffman::assign`], for constants.
const fn canonical<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let mut codes = [0; N];
    let (mut code, mut length) = (0_u16, 1_u32);
    while length < 16 {
        let mut symbol = 0;
        while symbol < N {
            if lengths[symbol] as u32 == length {
                codes[symbol] = code.reverse_bits() >> (16 - length);
                code = code.wrapping_add(1);
            }
            symbol += 1;
        }
        // Two fixed codes of eight bits belong to no symbol.
        if length == 8 && N == LITERALS_AND_LENGTHS {
            code += 2;
        }
        code <<= 1;
        length += 1;
    }
    codes
}

/// Writes the tokens, two at a time, for most of them are short.
struct Emit<'e, 'o> {
    writer: &'e mut Writer<'o>,
    tokens: &'e Tokens,
    table: &'e Table,
}

impl Work for Emit<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Cpu>(self, _: C) {
        let Self { writer, tokens, table } = self;
        let mut pairs = tokens.list().chunks_exact(2);
        for pair in &mut pairs {
            let ((first, count), (second, other)) = (table.bits(pair[0]), table.bits(pair[1]));
            if count + other <= 56 {
                writer.push(first | second << (count & 63), count + other);
            } else {
                writer.push(first, count);
                writer.push(second, other);
            }
        }
        for token in pairs.remainder() {
            let (bits, count) = table.bits(*token);
            writer.push(bits, count);
        }
    }
}
