//! Which engine compresses a chunk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::engine::libdeflate::COUNTERS;
use crate::engine::{Bits, Chunk, EngineKind, Settings, Strategy, serves};
use crate::stack;

/// The engines that may be used, a bit for each.
static ALLOWED: AtomicU8 = AtomicU8::new(u8::MAX);

/// Restricts the process to these engines and the original, which is always allowed.
pub fn allow(kinds: &[EngineKind]) {
    let bits = kinds.iter().fold(bit(EngineKind::Original), |bits, kind| bits | bit(*kind));
    ALLOWED.store(bits, Ordering::Relaxed);
}

/// Says of an engine whether somebody has switched it off.
type IsDisabled = fn(EngineKind) -> bool;

static IS_DISABLED: OnceLock<IsDisabled> = OnceLock::new();

/// Has this asked before each chunk, for each engine that may get it. It holds for the life of the process.
pub fn consult(is_disabled: IsDisabled) {
    IS_DISABLED.get_or_init(|| is_disabled);
}

/// Whether the process may use the engine at all.
pub fn is_allowed(kind: EngineKind) -> bool {
    ALLOWED.load(Ordering::Relaxed) & bit(kind) != 0
}

/// Whether any engine but the original is in service.
pub fn has_any() -> bool {
    let allowed = ALLOWED.load(Ordering::Relaxed);
    EngineKind::ALL.into_iter().any(|kind| kind != EngineKind::Original && is_usable(kind, allowed))
}

/// zlib's level to zlib-rs's, by `examples/measure.rs`: its lowest levels do less than zlib's.
const ZLIB_RS_LEVELS: [u8; 10] = [0, 2, 3, 4, 4, 6, 7, 7, 9, 9];

/// zlib's level to libdeflate's where every candidate is a match.
const FEW_LEVELS: [u8; 10] = [0, 8, 8, 8, 8, 8, 8, 9, 9, 9];

/// Behind a history, a chunk shorter than this takes more time for the history than for itself, least of all with zlib.
const SHORT: usize = 12 << 10;

/// The lowest level at which libdeflate looks for matches of three bytes, in all but the shortest chunks.
const LOWEST_WITH_CHAINS: u8 = 3;

/// The lowest at which it finds in numbers what zlib's lowest levels find.
const LOWEST_FOR_NUMBERS: u8 = 4;

/// Numbers that count up, if they are shorter than this, are zlib's: the piece that would tell who makes less of them is half of it.
const SHORT_FOR_COUNTERS: usize = 32 << 10;

/// Up to here libdeflate, with small tables, is done before ISA-L is.
const TINY: usize = 1200;

/// What an engine makes so many times shorter, zlib may make shorter still: the engines look at fewer candidates for a
/// match, ISA-L at one, and in rows that are nearly alike the second or third is the longer one.
const fn density(level: u8, nature: Nature) -> usize {
    match level {
        0..=1 => 7,
        2..=4 => 12,
        _ if matches!(nature, Nature::Digits | Nature::Counters) => 6,
        5 => 12,
        6..=7 => 40,
        _ => 10,
    }
}

/// A candidate for a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub kind: EngineKind,
    /// What to call it with, which may differ from the stream's settings.
    pub settings: Settings,
    /// An output shorter than this says that another engine would have made it shorter still.
    pub least: usize,
    /// An output shorter than this is to be compared with that of a [`rival`], which looks for matches where zlib does.
    pub dense: usize,
    /// Only if it makes a piece of the chunk shorter than the next choice does.
    pub on_trial: bool,
}

impl Choice {
    /// A piece of the chunk on which a choice on trial is compared with the next. At the higher levels a large one is worth
    /// its time, behind as much history as there can be: what repeats after a few thousand bytes shows nowhere else.
    pub fn piece<'a>(settings: &Settings, input: &'a [u8]) -> Chunk<'a> {
        let (length, history) = match settings.level {
            0..=1 => (4 << 10, 8 << 10),
            2..=4 => (8 << 10, 32 << 10),
            _ => (16 << 10, 32 << 10),
        };
        let (length, history) = (length.min(input.len()), history.min(settings.window()));
        let start = ((input.len() - length) / 2).max(history.min(input.len() - length));
        Chunk {
            before: Bits::NONE,
            history: &input[start.saturating_sub(history)..start],
            input: &input[start..][..length],
            last: true,
        }
    }

    /// Whether it is worth being chosen, by what it and the next have made of the piece. ISA-L is so much faster that it
    /// takes more.
    pub const fn is_better(bytes: usize, next: EngineKind, of_next: usize) -> bool {
        let percent = if matches!(next, EngineKind::Isal) { 90 } else { 97 };
        bytes * 100 < of_next * percent
    }
}

/// The engines for `chunk`, best first. The original always ends the list: what nobody else can do, it can.
pub fn choose(settings: &Settings, chunk: &Chunk) -> impl Iterator<Item = Choice> {
    let (settings, allowed) = (*settings, ALLOWED.load(Ordering::Relaxed));
    let has_room = stack::has_room();
    let serves = move |kind: &EngineKind| {
        (has_room || *kind == EngineKind::Original)
            && is_usable(*kind, allowed)
            && serves(*kind, &settings, chunk)
            && (*kind != EngineKind::Isal || !stack::is_alternate())
    };
    let nature = Nature::of(chunk, settings.level);
    let length = chunk.input.len();
    let counting = Choice {
        kind: EngineKind::Libdeflate,
        settings: Settings { level: COUNTERS, ..settings },
        least: 0,
        dense: if is_usable(EngineKind::ZlibRs, allowed) {
            length / density(settings.level, nature)
        } else {
            0
        },
        on_trial: true,
    };
    let may_count = nature == Nature::Counters && length >= SHORT_FOR_COUNTERS;
    let counting =
        Some(counting).filter(|choice| may_count && is_ours(&settings, chunk) && serves(&choice.kind));
    let ordinary = order(&settings, chunk, nature).into_iter().filter(serves).map(move |kind| Choice {
        kind,
        on_trial: false,
        settings: translate(kind, settings, nature),
        least: if kind == EngineKind::Isal && nature == Nature::Noise { length - length / 50 } else { 0 },
        dense: match kind {
            EngineKind::Isal | EngineKind::Libdeflate if is_usable(EngineKind::ZlibRs, allowed) => {
                length / density(settings.level, nature)
            }
            _ => 0,
        },
    });
    counting.into_iter().chain(ordinary)
}

/// Only the original's own matcher is as good at what the other strategies and tunings are for, and in a small window.
fn is_ours(settings: &Settings, chunk: &Chunk) -> bool {
    let is_within = chunk.history.len() + chunk.input.len() <= settings.window();
    is_plain(settings) && (settings.window_bits == 15 || is_within)
}

/// Who may make less of a dense chunk than `written` bytes, and what to call it with. Of what is denser still zlib is done
/// soon at the middle levels.
pub fn rival(settings: &Settings, length: usize, written: usize) -> (EngineKind, Settings) {
    const DENSEST: usize = 30;
    let is_quick = matches!(settings.level, 2..=7) && written < length / DENSEST;
    let kind = if is_quick { EngineKind::Original } else { EngineKind::ZlibRs };
    (kind, translate(kind, *settings, Nature::Text))
}

fn order(settings: &Settings, chunk: &Chunk, nature: Nature) -> [EngineKind; 4] {
    use EngineKind::{Isal, Libdeflate, Original, ZlibRs};
    let is_low = settings.level <= 1;
    if !is_ours(settings, chunk) {
        return [Original, ZlibRs, Libdeflate, Isal];
    }
    if nature == Nature::Counters && chunk.input.len() < SHORT_FOR_COUNTERS {
        return [Original, ZlibRs, Libdeflate, Isal];
    }
    if !chunk.history.is_empty() && chunk.input.len() < if is_low { SHORT / 3 } else { SHORT } {
        return [ZlibRs, Libdeflate, Isal, Original];
    }
    match (nature, settings.level) {
        (Nature::OneByte, ..=1) | (Nature::Noise, _) => [Isal, Libdeflate, ZlibRs, Original],
        (Nature::OneByte, _) => [Original, Libdeflate, ZlibRs, Isal],
        (Nature::Few { binary: true }, 5..=7) => [Libdeflate, ZlibRs, Isal, Original],
        (Nature::Few { binary: true }, _) | (Nature::Few { .. }, 2..=4) => {
            [Original, ZlibRs, Libdeflate, Isal]
        }
        (Nature::Few { binary: false }, 7..) => [ZlibRs, Libdeflate, Isal, Original],
        (Nature::Binary | Nature::Numbers, ..=1) => [Libdeflate, Isal, ZlibRs, Original],
        _ if chunk.input.len() <= TINY => [Libdeflate, Isal, ZlibRs, Original],
        (Nature::Numbered | Nature::Counters, ..=1) => [Libdeflate, Isal, ZlibRs, Original],
        (Nature::Digits, ..=1) if !chunk.history.is_empty() => [Libdeflate, Isal, ZlibRs, Original],
        _ if is_low => [Isal, Libdeflate, ZlibRs, Original],
        _ => [Libdeflate, ZlibRs, Isal, Original],
    }
}

/// What kind of data it is, as far as a look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
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
    fn of(chunk: &Chunk, level: u8) -> Self {
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

fn translate(kind: EngineKind, settings: Settings, nature: Nature) -> Settings {
    let level = match (kind, nature, settings.level) {
        (EngineKind::ZlibRs, _, level) if is_plain(&settings) => ZLIB_RS_LEVELS[usize::from(level.min(9))],
        (EngineKind::Isal, Nature::Noise, _) => 1,
        (EngineKind::Libdeflate, Nature::Numbers | Nature::Noise, ..LOWEST_FOR_NUMBERS) => LOWEST_FOR_NUMBERS,
        (EngineKind::Libdeflate, Nature::Binary, ..=1) => LOWEST_WITH_CHAINS,
        (EngineKind::Libdeflate, Nature::Few { .. }, level) => FEW_LEVELS[usize::from(level.min(9))],
        (_, _, level) => level,
    };
    Settings { level, ..settings }
}

const fn is_plain(settings: &Settings) -> bool {
    matches!(settings, Settings { strategy: Strategy::Default, tuning: None, .. })
}

fn is_usable(kind: EngineKind, allowed: u8) -> bool {
    let is_disabled = || IS_DISABLED.get().is_some_and(|is_disabled| is_disabled(kind));
    kind == EngineKind::Original || (allowed & bit(kind) != 0 && !is_disabled())
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
