//! What kind of data a chunk is, as far as a quick look tells.

use super::SHORT_FOR_COUNTERS;
use crate::engine::Chunk;

/// The kinds of data, which decide which engine does best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    Text,
    /// Half of it, or more, is digits.
    Digits,
    /// A good part of it: with two candidates for a match, or without matches of three bytes, too little is found.
    SomeDigits,
    /// Rows with an ascending or descending number. ISA-L makes a little more of them than zlib does, libdeflate does
    /// not.
    Numbered,
    /// Largely ascending or descending numbers: most candidates for a match are as long as the longest, and the choice
    /// among them decides the length of the output, by up to half for the better or, with as much effort as is right
    /// for text, by a quarter for the worse.
    Counters,
    /// Letters of two bytes or more: the four bytes that our own engine hashes are two letters, which occur too often.
    Wide,
    /// Programs, tables: ISA-L and libdeflate at their fastest make more of them than zlib does, which takes matches of
    /// three bytes.
    Binary,
    /// Sound, pictures, tables of measurements: nearly all byte values occur. Matches are all short, and the longest of
    /// many is hardly longer than the first, but zlib's lowest levels find it.
    Numbers,
    /// Bitmaps, sequences, tables full of zeros: a few byte values make up nearly all. Every candidate is a match, so
    /// zlib gets far by looking at many of them.
    Few {
        binary: bool,
    },
    /// Images, archives, secrets: nothing to gain, and many engines are slow to find out. ISA-L is not.
    Noise,
    /// One byte, over and over, as in files with holes: zlib's fast levels leap over it, libdeflate does not.
    OneByte,
}

impl Nature {
    pub(super) fn of(chunk: &Chunk, level: u8) -> Self {
        let input = chunk.input;
        // Nearly always the first comparison says no.
        if level > 0 && input.len() > 1 && input[1..] == input[..input.len() - 1] {
            return Self::OneByte;
        } else if is_noise(input) {
            return Self::Noise;
        }
        let digits = percent_of_digits(input);
        if level > 0 && counts(chunk, digits) {
            Self::Counters
        } else if level == 1 && digits >= 30 && has_numbers(input, 7) {
            // Fewer of them make a difference here, since ISA-L looks at one candidate only.
            Self::Numbered
        } else if level > 0 && has_few(input) {
            Self::Few { binary: is_binary(input) }
        } else if is_binary(input) {
            if has_all_values(input) { Self::Numbers } else { Self::Binary }
        } else if level > 1 && is_wide(input) {
            Self::Wide
        } else if level > 0 && digits >= 50 {
            Self::Digits
        } else if level > 1 && digits >= if level < 5 { 30 } else { 15 } {
            Self::SomeDigits
        } else {
            Self::Text
        }
    }
}

/// The percentage of digits.
fn percent_of_digits(input: &[u8]) -> usize {
    percent_of(input, u8::is_ascii_digit)
}

/// Whether a quarter of it is parts of letters outside ASCII.
fn is_wide(input: &[u8]) -> bool {
    percent_of(input, |byte| !byte.is_ascii()) >= 25
}

/// The percentage of such bytes, in a look at pieces from all over.
fn percent_of(input: &[u8], is_such: impl Fn(&u8) -> bool) -> usize {
    const PIECES: usize = 16;
    const PIECE: usize = 16;
    let count = |bytes: &[u8]| bytes.iter().filter(|byte| is_such(byte)).count();
    if input.len() < PIECES * PIECE * 4 {
        return count(input) * 100 / input.len().max(1);
    }
    let step = input.len() / PIECES;
    let such: usize = (0..PIECES).map(|i| count(&input[i * step..][..PIECE])).sum();
    such * 100 / (PIECES * PIECE)
}

/// Whether a good part of it is counting numbers. At the beginning of a short text fewer of them make a difference, and
/// no piece shows which way to take. Behind a history, zlib finds less than where it has read everything by itself.
fn counts(chunk: &Chunk, digits: usize) -> bool {
    let (least, part) = match (chunk.history.is_empty(), chunk.input.len()) {
        (true, ..SHORT_FOR_COUNTERS) => (20, 10),
        (true, _) => (50, 7),
        (false, _) => (50, 5),
    };
    digits >= least && has_numbers(chunk.input, part) && !is_binary(chunk.input)
}

/// Whether one in `part` bytes of a piece from the middle belongs to a number slightly above or below one of the last
/// few. Decimal or hexadecimal: decimal numbers read as hexadecimal keep their order.
fn has_numbers(input: &[u8], part: usize) -> bool {
    const SAMPLE: usize = 1024;
    const LATEST: usize = 8;
    let middle = &input[input.len().saturating_sub(SAMPLE) / 2..];
    let sample = &middle[..middle.len().min(SAMPLE)];
    let (mut latest, mut next, mut counted) = ([0_u64; LATEST], 0, 0);
    for word in sample.split(|byte| !byte.is_ascii_hexdigit()) {
        if word.len() < 2 || !word.iter().any(u8::is_ascii_digit) {
            continue;
        }
        let value = word.iter().fold(0, |value: u64, digit| {
            let digit = (*digit as char).to_digit(16).unwrap_or(0);
            value << 4 | u64::from(digit)
        });
        let is_close = |other: &u64| (1..=(value >> 6).max(1)).contains(&value.abs_diff(*other));
        if latest.iter().any(is_close) {
            counted += word.len();
        }
        latest[next] = value;
        next = (next + 1) % LATEST;
    }
    counted * part >= sample.len()
}

/// Whether a piece from the middle has nearly all byte values, and hardly any of them twice among 64 consecutive bytes.
fn is_noise(input: &[u8]) -> bool {
    // About 57 of 64 random bytes are distinct, about 25 of 64 bytes of text.
    sample(input).is_some_and(|sample| distinct(&sample[..64]) > 48 && distinct(sample) > 232)
}

/// Whether a piece from the middle has most byte values: a program's has about 160.
fn has_all_values(input: &[u8]) -> bool {
    sample(input).is_some_and(|sample| distinct(sample) > 180)
}

/// A piece from the middle.
fn sample(input: &[u8]) -> Option<&[u8]> {
    const SAMPLE: usize = 1024;
    (input.len() >= SAMPLE * 4).then(|| &input[input.len() / 2..][..SAMPLE])
}

/// The number of distinct bytes.
fn distinct(bytes: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for byte in bytes.iter().copied() {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones()).sum()
}

/// Whether two bytes picked at random are equal more often than in any text: as with four letters, or with one that
/// makes up half of all.
fn has_few(input: &[u8]) -> bool {
    const PIECES: usize = 16;
    const PIECE: usize = 16;
    const PICKED: u32 = (PIECES * PIECE) as u32;
    if input.len() < 4 << 10 {
        return false;
    }
    let step = input.len() / PIECES;
    let picked = || (0..PIECES).flat_map(|i| &input[i * step..][..PIECE]).map(|byte| usize::from(*byte));
    let mut counts = [0_u16; 256];
    picked().for_each(|byte| counts[byte] += 1);
    let pairs: u32 = picked().map(|byte| u32::from(counts[byte])).sum();
    pairs > PICKED * PICKED / 100 * 24
}

/// Looks at the beginning and the middle for bytes that no text has.
fn is_binary(input: &[u8]) -> bool {
    const LOOK: usize = 256;
    let at = |start: usize| input[start..].iter().take(LOOK);
    at(0).chain(at(input.len() / 2)).any(|byte| matches!(byte, 0..=6 | 14..=25 | 28..=31))
}
