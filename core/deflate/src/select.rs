//! Which engine compresses a chunk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::engine::{Chunk, EngineKind, Settings, Strategy, serves};

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

/// Behind a history, a chunk shorter than this takes more time for the history than for itself, least of all with zlib.
const SHORT: usize = 12 << 10;

/// Up to here libdeflate, with small tables, is done before ISA-L is.
const TINY: usize = 1200;

/// Programs and the like from this size on are faster with ISA-L at its best than with libdeflate at its fastest.
const LARGE_BINARY: usize = 24 << 10;

/// A candidate for a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub kind: EngineKind,
    /// What to call it with, which may differ from the stream's settings.
    pub settings: Settings,
    /// An output shorter than this says that another engine would have made it shorter still.
    pub least: usize,
}

/// The engines for `chunk`, best first. The original always ends the list: what nobody else can do, it can.
pub fn choose(settings: &Settings, chunk: &Chunk) -> impl Iterator<Item = Choice> {
    let (settings, allowed) = (*settings, ALLOWED.load(Ordering::Relaxed));
    let serves = move |kind: &EngineKind| is_usable(*kind, allowed) && serves(*kind, &settings, chunk);
    let nature = Nature::of(chunk.input, settings.level);
    let length = chunk.input.len();
    order(&settings, chunk, nature).into_iter().filter(serves).map(move |kind| Choice {
        kind,
        settings: translate(kind, settings, nature),
        least: if kind == EngineKind::Isal && nature == Nature::Noise { length - length / 50 } else { 0 },
    })
}

fn order(settings: &Settings, chunk: &Chunk, nature: Nature) -> [EngineKind; 4] {
    use EngineKind::{Isal, Libdeflate, Original, ZlibRs};
    let is_low = settings.level <= 1;
    if !chunk.history.is_empty() && chunk.input.len() < if is_low { SHORT / 3 } else { SHORT } {
        return [ZlibRs, Libdeflate, Isal, Original];
    }
    match nature {
        Nature::OneByte | Nature::Noise => [Isal, Libdeflate, ZlibRs, Original],
        Nature::Binary if is_low && chunk.input.len() < LARGE_BINARY => [Libdeflate, Isal, ZlibRs, Original],
        _ if chunk.input.len() <= TINY => [Libdeflate, Isal, ZlibRs, Original],
        _ if is_low => [Isal, Libdeflate, ZlibRs, Original],
        _ => [Libdeflate, ZlibRs, Isal, Original],
    }
}

/// What kind of data it is, as far as a look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Text,
    /// Programs, tables: ISA-L at its fastest makes more of it than zlib does.
    Binary,
    /// Images, archives, secrets: nothing to gain, and many an engine takes its time to find out. ISA-L does not.
    Noise,
    /// Nothing but one byte, over and over, as in files with holes: zlib's fast levels leap over it, libdeflate does not.
    OneByte,
}

impl Nature {
    fn of(input: &[u8], level: u8) -> Self {
        // Nearly always the first comparison says no.
        if level > 0 && input.len() > 1 && input[1..] == input[..input.len() - 1] {
            Self::OneByte
        } else if is_noise(input) {
            Self::Noise
        } else if level <= 1 && is_binary(input) {
            Self::Binary
        } else {
            Self::Text
        }
    }
}

/// Whether a piece of the middle has nearly all bytes that there are.
fn is_noise(input: &[u8]) -> bool {
    const SAMPLE: usize = 1024;
    if input.len() < SAMPLE * 4 {
        return false;
    }
    let sample = &input[input.len() / 2..][..SAMPLE];
    // Of 64 random bytes some 57 differ, of 64 bytes of text some 25.
    distinct(&sample[..64]) > 48 && distinct(sample) > 232
}

/// How many different bytes there are.
fn distinct(bytes: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for byte in bytes.iter().copied() {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones()).sum()
}

/// A look at the beginning and the middle for bytes that no text has.
fn is_binary(input: &[u8]) -> bool {
    const LOOK: usize = 256;
    let at = |start: usize| input[start..].iter().take(LOOK);
    at(0).chain(at(input.len() / 2)).any(|byte| matches!(byte, 0..=6 | 14..=25 | 28..=31))
}

fn translate(kind: EngineKind, settings: Settings, nature: Nature) -> Settings {
    let is_plain = settings.strategy == Strategy::Default && settings.tuning.is_none();
    let level = match (kind, nature) {
        (EngineKind::ZlibRs, _) if is_plain => ZLIB_RS_LEVELS[usize::from(settings.level.min(9))],
        (EngineKind::Isal, Nature::Noise) => 1,
        // ISA-L has more to give than its fastest level.
        (EngineKind::Isal, Nature::Binary) => settings.level.max(2),
        _ => settings.level,
    };
    Settings { level, ..settings }
}

fn is_usable(kind: EngineKind, allowed: u8) -> bool {
    let is_disabled = || IS_DISABLED.get().is_some_and(|is_disabled| is_disabled(kind));
    kind == EngineKind::Original || (allowed & bit(kind) != 0 && !is_disabled())
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
