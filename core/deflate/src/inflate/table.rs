//! Decoding tables: what the next bits of the stream mean.
//!
//! An entry says all there is to know about a code: its symbol, how many extra bits follow it and how many bits to
//! drop. Codes longer than the table's root continue in a second table behind the first.

/// Root bits: one look into a table that stays in the L1 cache decodes nearly every symbol, and both tables fit into
/// the memory that zlib takes for its own.
const LITLEN_ROOT: u32 = 9;
const DIST_ROOT: u32 = 8;
const PRECODE_ROOT: u32 = 7;
/// zlib's own, which `inflateCodesUsed` reveals.
const ZLIB_LITLEN_ROOT: u32 = 9;
const ZLIB_DIST_ROOT: u32 = 6;

/// The largest tables that 288 and 32 codes of up to 15 bits can need, by exhaustive
/// search (zlib's examples/enough.c: `enough 288 9 15`, `enough 32 8 15`).
pub(super) const LITLEN_SIZE: usize = 854;
pub(super) const DIST_SIZE: usize = 402;

const MAX_BITS: usize = 15;
const MAX_CODES: usize = 288;

/// What a sequence of bits means.
///
/// Bits 0–7: how many bits to drop, extra bits included. Bits 8–11: how many of
/// them are the code. Bits 12–15: flags. Bits 16–30: literal, base or start of
/// the second table. Bit 31: literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Entry(u32);

impl Entry {
    const INVALID: u32 = 1 << 12;
    const END: u32 = 1 << 13;
    const LINK: u32 = 1 << 14;
    /// Set along with any of the others.
    const SPECIAL: u32 = 1 << 15;
    const LITERAL: u32 = 1 << 31;

    const fn literal(value: usize, code: u32) -> Self {
        Self(Self::LITERAL | (value as u32) << 16 | code << 8 | code)
    }

    const fn base(base: u16, extra: u8, code: u32) -> Self {
        Self((base as u32) << 16 | code << 8 | (code + extra as u32))
    }

    const fn end(code: u32) -> Self {
        Self(Self::SPECIAL | Self::END | code << 8 | code)
    }

    const fn invalid(code: u32) -> Self {
        Self(Self::SPECIAL | Self::INVALID | code << 8 | code)
    }

    /// Continue in a table of `bits` bits at `start`, after dropping the root's bits.
    const fn link(start: usize, bits: u32, root: u32) -> Self {
        Self(Self::SPECIAL | Self::LINK | (start as u32) << 16 | bits << 8 | root)
    }

    #[inline(always)]
    pub(super) const fn is_literal(self) -> bool {
        self.0 & Self::LITERAL != 0
    }

    #[inline(always)]
    pub(super) const fn is_special(self) -> bool {
        self.0 & Self::SPECIAL != 0
    }

    #[inline(always)]
    pub(super) const fn is_link(self) -> bool {
        self.0 & Self::LINK != 0
    }

    pub(super) const fn is_end(self) -> bool {
        self.0 & Self::END != 0
    }

    /// How many bits to drop: the code and its extra bits, or the root of a link.
    #[inline(always)]
    pub(super) const fn total(self) -> u32 {
        self.0 & 0xff
    }

    /// How many bits the code has; for a link, how many index the second table.
    #[inline(always)]
    pub(super) const fn code(self) -> u32 {
        self.0 >> 8 & 15
    }

    /// Literal, base of a length or distance, or start of the second table.
    #[inline(always)]
    pub(super) const fn value(self) -> usize {
        (self.0 >> 16 & 0x7fff) as usize
    }
}

/// Which alphabet a code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// The lengths of the other codes.
    Precode,
    LitLen,
    Dist,
}

impl Alphabet {
    const fn root(self) -> u32 {
        match self {
            Self::Precode => PRECODE_ROOT,
            Self::LitLen => LITLEN_ROOT,
            Self::Dist => DIST_ROOT,
        }
    }

    const fn entry(self, symbol: usize, code: u32) -> Entry {
        match self {
            Self::Precode => Entry::literal(symbol, code),
            Self::LitLen => match symbol {
                0..256 => Entry::literal(symbol, code),
                256 => Entry::end(code),
                257..286 => Entry::base(LENGTH_BASE[symbol - 257], LENGTH_EXTRA[symbol - 257], code),
                _ => Entry::invalid(code),
            },
            Self::Dist if symbol < 30 => Entry::base(DIST_BASE[symbol], DIST_EXTRA[symbol], code),
            Self::Dist => Entry::invalid(code),
        }
    }
}

const LENGTH_BASE: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DIST_BASE: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
const DIST_EXTRA: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];

/// A table that was built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Built {
    /// How many bits index it.
    pub(super) root: u32,
    /// How many entries it has, second tables included.
    pub(super) used: usize,
}

/// Builds the table of the code with these lengths. `None` if they do not form a code: over-subscribed, or incomplete
/// except for the one code of one bit that deflate allows.
pub(super) const fn build(alphabet: Alphabet, lens: &[u8], table: &mut [Entry]) -> Option<Built> {
    build_with_root(alphabet, lens, table, alphabet.root())
}

/// How many entries zlib's tables have for these codes.
pub(super) fn zlib_used(alphabet: Alphabet, lens: &[u8]) -> usize {
    let root = if alphabet == Alphabet::LitLen { ZLIB_LITLEN_ROOT } else { ZLIB_DIST_ROOT };
    let mut table = [Entry::default(); LITLEN_SIZE];
    build_with_root(alphabet, lens, &mut table, root).map_or(0, |built| built.used)
}

const fn build_with_root(
    alphabet: Alphabet,
    lens: &[u8],
    table: &mut [Entry],
    root_wanted: u32,
) -> Option<Built> {
    let (mut count, sorted) = sort(lens);
    let mut max = MAX_BITS;
    while max > 0 && count[max] == 0 {
        max -= 1;
    }
    let left = unused(&count);
    if left < 0 || (left > 0 && max > 0 && (max != 1 || matches!(alphabet, Alphabet::Precode))) {
        return None;
    }
    // No code, or half of one: meeting the rest in the stream is an error.
    if left > 0 {
        table[0] = Entry::invalid(1);
        table[1] = Entry::invalid(1);
    }
    if max == 0 {
        return Some(Built { root: 1, used: 2 });
    }
    let root = root_of(&count, root_wanted, max as u32);
    let mut end = 1 << root;
    let mut prefix = usize::MAX;
    let mut start = 0;
    let mut code = 0;
    let mut i = 0;
    let mut len = 1;
    while len <= max {
        if len as u32 <= root {
            // The table so far is the same for both values of the next bit.
            double(table, len);
        }
        while count[len] > 0 {
            let symbol = sorted[i] as usize;
            let bits = reverse(code, len);
            if len as u32 <= root {
                table[bits] = alphabet.entry(symbol, len as u32);
            } else {
                if bits & ((1 << root) - 1) != prefix {
                    prefix = bits & ((1 << root) - 1);
                    start = end;
                    let width = width(&count, len, root as usize, max);
                    end += 1 << width;
                    table[prefix] = Entry::link(start, width, root);
                }
                let rest = len as u32 - root;
                fill(table, start + (bits >> root), 1 << rest, end, alphabet.entry(symbol, rest));
            }
            count[len] -= 1;
            code += 1;
            i += 1;
        }
        code <<= 1;
        len += 1;
    }
    Some(Built { root, used: end })
}

/// Makes a table of one bit less into one of `len` bits.
const fn double(table: &mut [Entry], len: usize) {
    let (half, rest) = table.split_at_mut(1 << (len - 1));
    let (other, _) = rest.split_at_mut(half.len());
    other.copy_from_slice(half);
}

/// How many codes there are of each length, and the symbols in the order of their codes.
const fn sort(lens: &[u8]) -> ([u16; MAX_BITS + 1], [u16; MAX_CODES]) {
    let count = count(lens);
    let mut offset = [0u16; MAX_BITS + 2];
    let mut len = 1;
    while len <= MAX_BITS {
        offset[len + 1] = offset[len] + count[len];
        len += 1;
    }
    let mut sorted = [0u16; MAX_CODES];
    let mut i = 0;
    while i < lens.len() {
        let len = lens[i] as usize;
        if len != 0 {
            sorted[offset[len] as usize] = i as u16;
            offset[len] += 1;
        }
        i += 1;
    }
    (count, sorted)
}

/// Counts in four rows: neighbours tend to be of the same length, and incrementing the same counter twice in a row
/// takes the CPU several times as long.
const fn count(lens: &[u8]) -> [u16; MAX_BITS + 1] {
    let mut rows = [[0u16; MAX_BITS + 1]; 4];
    let mut i = 0;
    while i < lens.len() {
        rows[i % 4][(lens[i] & 15) as usize] += 1;
        i += 1;
    }
    let mut count = [0u16; MAX_BITS + 1];
    let mut len = 1;
    while len <= MAX_BITS {
        count[len] = rows[0][len] + rows[1][len] + rows[2][len] + rows[3][len];
        len += 1;
    }
    count
}

/// How much of the code space is left over; negative if there are too many codes.
const fn unused(count: &[u16; MAX_BITS + 1]) -> i32 {
    let mut left = 1i32;
    let mut len = 1;
    while len <= MAX_BITS {
        left = (left << 1) - count[len] as i32;
        if left < 0 {
            return left;
        }
        len += 1;
    }
    left
}

const fn root_of(count: &[u16; MAX_BITS + 1], wanted: u32, max: u32) -> u32 {
    let mut min = 1;
    while min < max && count[min as usize] == 0 {
        min += 1;
    }
    let root = if wanted > max { max } else { wanted };
    if root < min { min } else { root }
}

/// How many bits a second table needs that begins with a code of `len` bits; `count` covers the codes that have no
/// entry yet.
const fn width(count: &[u16; MAX_BITS + 1], len: usize, root: usize, max: usize) -> u32 {
    let mut width = len - root;
    let mut left = 1i32 << width;
    while width + root < max {
        left -= count[width + root] as i32;
        if left <= 0 {
            break;
        }
        width += 1;
        left <<= 1;
    }
    width as u32
}

/// Codes are stored in the stream with their first bit lowest.
const fn reverse(code: usize, len: usize) -> usize {
    (code as u16).reverse_bits() as usize >> (16 - len)
}

const fn fill(table: &mut [Entry], first: usize, step: usize, end: usize, entry: Entry) {
    let mut i = first;
    while i < end {
        table[i] = entry;
        i += step;
    }
}

/// The tables of blocks with the fixed codes.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) litlen: [Entry; 1 << 9],
    pub(super) dist: [Entry; 1 << 5],
}

pub(super) static FIXED: Fixed = Fixed::new();

impl Fixed {
    pub(super) const LITLEN_ROOT: u32 = 9;
    pub(super) const DIST_ROOT: u32 = 5;

    const fn new() -> Self {
        let mut lens = [8u8; MAX_CODES];
        let mut i = 144;
        while i < 280 {
            lens[i] = if i < 256 { 9 } else { 7 };
            i += 1;
        }
        let mut litlen = [Entry(0); 1 << 9];
        let mut dist = [Entry(0); 1 << 5];
        assert!(build(Alphabet::LitLen, &lens, &mut litlen).is_some());
        assert!(build(Alphabet::Dist, &[5; 32], &mut dist).is_some());
        Self { litlen, dist }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> [Entry; LITLEN_SIZE] {
        [Entry::default(); LITLEN_SIZE]
    }

    #[test]
    fn only_codes_are_accepted() {
        for (alphabet, lens, accepted) in [
            (Alphabet::LitLen, &[1, 1][..], true),
            (Alphabet::LitLen, &[1, 1, 1], false),
            (Alphabet::LitLen, &[1, 2], false),
            (Alphabet::LitLen, &[1, 0], true),
            (Alphabet::Dist, &[0, 0], true),
            (Alphabet::Dist, &[2, 0], false),
            (Alphabet::Precode, &[1, 0], false),
            (Alphabet::Precode, &[1, 2, 2], true),
        ] {
            assert_eq!(build(alphabet, lens, &mut table()).is_some(), accepted, "{alphabet:?} {lens:?}");
        }
    }

    #[test]
    fn the_unused_half_of_a_code_is_invalid() {
        let mut table = table();
        let built = build(Alphabet::Dist, &[0, 1], &mut table).unwrap();
        assert_eq!((built.root, built.used), (1, 2));
        assert_eq!(table[..2], [Entry::base(2, 0, 1), Entry::invalid(1)]);
    }

    /// Every sequence of bits leads to the code that it begins with.
    #[test]
    fn long_codes_are_found_in_second_tables() {
        let mut lens = [0u8; MAX_CODES];
        for (len, at) in lens.iter_mut().zip(1u8..=14) {
            *len = at;
        }
        (lens[14], lens[15]) = (15, 15);
        let mut table = table();
        let built = build(Alphabet::LitLen, &lens, &mut table).unwrap();
        assert_eq!(built.root, LITLEN_ROOT);
        for bits in 0..1usize << 15 {
            let mut entry = table[bits & ((1 << built.root) - 1)];
            let mut dropped = 0;
            if entry.is_link() {
                dropped = entry.total();
                entry = table[entry.value() + (bits >> dropped & ((1 << entry.code()) - 1))];
            }
            let ones = bits.trailing_ones() as usize;
            assert_eq!(entry.value(), ones.min(15), "{bits:b}");
            assert_eq!((dropped + entry.code()) as u8, lens[entry.value()], "{bits:b}");
        }
    }
}
