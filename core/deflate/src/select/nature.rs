//! What kind of data a chunk is, as far as a look tells.

use super::SHORT_FOR_COUNTERS;
use crate::engine::Chunk;

/// What decides which engine makes the most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    Text,
    /// Half of it, or more, is digits.
    Digits,
    /// Rows with a number that counts up or down. ISA-L makes a little more of them than zlib does, libdeflate does not.
    Numbered,
    /// A good part of it is numbers that count up or down: most candidates for a match are as long as the longest, and the
    /// length of the output is a matter of which are taken, by half for the better or, with as much effort as is right for
    /// text, by a quarter for the worse.
    Counters,
    /// Programs, tables: ISA-L and libdeflate at their fastest make more of it than zlib does, which takes matches of three
    /// bytes.
    Binary,
    /// Sound, pictures, tables of measurements: nearly all values that a byte can have. Short matches are all there is, and
    /// the longest of many is little longer than the first, but zlib's lowest levels find it.
    Numbers,
    /// Bitmaps, sequences, tables full of zeros: some few bytes make up nearly all. Every candidate is a match, so zlib
    /// gets far by looking at many of them.
    Few {
        binary: bool,
    },
    /// Images, archives, secrets: nothing to gain, and many an engine takes its time to find out. ISA-L does not.
    Noise,
    /// Nothing but one byte, over and over, as in files with holes: zlib's fast levels leap over it, libdeflate does not.
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
            // Less of it makes a difference here, since ISA-L looks at one candidate only.
            Self::Numbered
        } else if level > 0 && has_few(input) {
            Self::Few { binary: is_binary(input) }
        } else if is_binary(input) {
            if has_all_values(input) { Self::Numbers } else { Self::Binary }
        } else if level > 0 && digits >= 50 {
            Self::Digits
        } else {
            Self::Text
        }
    }
}

/// How many of a hundred bytes are digits, in a look at pieces from all over.
fn percent_of_digits(input: &[u8]) -> usize {
    const PIECES: usize = 16;
    const PIECE: usize = 16;
    let count = |bytes: &[u8]| bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if input.len() < PIECES * PIECE * 4 {
        return count(input) * 100 / input.len().max(1);
    }
    let step = input.len() / PIECES;
    let digits: usize = (0..PIECES).map(|i| count(&input[i * step..][..PIECE])).sum();
    digits * 100 / (PIECES * PIECE)
}

/// Whether a good part of it is numbers that count. At the beginning of little text less of it makes a difference, and no
/// piece tells which way to take. Behind a history, zlib finds less than where it has read all by itself.
fn counts(chunk: &Chunk, digits: usize) -> bool {
    let (least, part) = match (chunk.history.is_empty(), chunk.input.len()) {
        (true, ..SHORT_FOR_COUNTERS) => (20, 10),
        (true, _) => (50, 7),
        (false, _) => (50, 5),
    };
    digits >= least && has_numbers(chunk.input, part) && !is_binary(chunk.input)
}

/// Whether one in `part` bytes of a piece of the middle is of a number that is a little more or less than one of the last few.
/// Decimal or hexadecimal: read as the latter, the former keep their order.
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

/// Whether a piece of the middle has nearly all bytes that there are, and hardly one twice in a row of 64.
fn is_noise(input: &[u8]) -> bool {
    // Of 64 random bytes some 57 differ, of 64 bytes of text some 25.
    sample(input).is_some_and(|sample| distinct(&sample[..64]) > 48 && distinct(sample) > 232)
}

/// Whether a piece of the middle has most of the bytes that there are: of a program it has some 160.
fn has_all_values(input: &[u8]) -> bool {
    sample(input).is_some_and(|sample| distinct(sample) > 180)
}

/// A piece of the middle.
fn sample(input: &[u8]) -> Option<&[u8]> {
    const SAMPLE: usize = 1024;
    (input.len() >= SAMPLE * 4).then(|| &input[input.len() / 2..][..SAMPLE])
}

/// How many different bytes there are.
fn distinct(bytes: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for byte in bytes.iter().copied() {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones()).sum()
}

/// Whether two bytes picked at random are the same more often than in any text: as with four letters, or one that makes up
/// half of all.
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

/// A look at the beginning and the middle for bytes that no text has.
fn is_binary(input: &[u8]) -> bool {
    const LOOK: usize = 256;
    let at = |start: usize| input[start..].iter().take(LOOK);
    at(0).chain(at(input.len() / 2)).any(|byte| matches!(byte, 0..=6 | 14..=25 | 28..=31))
}
