//! Which engine compresses a chunk.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::breaker;
use crate::engine::{Chunk, EngineKind, Settings, Strategy, serves};

/// The engines that may be used, a bit for each.
static ALLOWED: AtomicU8 = AtomicU8::new(u8::MAX);

/// Restricts the process to these engines and the original, which is always allowed.
pub fn allow(kinds: &[EngineKind]) {
    let bits = kinds.iter().fold(bit(EngineKind::Original), |bits, kind| bits | bit(*kind));
    ALLOWED.store(bits, Ordering::Relaxed);
}

/// zlib's level to zlib-rs's, by `examples/measure.rs`: its lowest levels do less than zlib's.
const ZLIB_RS_LEVELS: [u8; 10] = [0, 2, 3, 4, 4, 6, 7, 7, 9, 9];

/// Behind a history, a chunk shorter than this takes more time for the history than for itself, least of all with zlib.
const SHORT: usize = 12 << 10;

/// The engines for `chunk`, best first. Each comes with the settings to call it with, which may differ from the stream's.
/// The original always ends the list: what nobody else can do, it can.
pub fn choose(settings: &Settings, chunk: &Chunk) -> impl Iterator<Item = (EngineKind, Settings)> {
    let (settings, allowed) = (*settings, ALLOWED.load(Ordering::Relaxed));
    order(&settings, chunk)
        .into_iter()
        .filter(move |kind| is_usable(*kind, allowed) && serves(*kind, &settings, chunk))
        .map(move |kind| (kind, translate(kind, settings)))
}

fn order(settings: &Settings, chunk: &Chunk) -> [EngineKind; 4] {
    use EngineKind::{Isal, Libdeflate, Original, ZlibRs};
    if !chunk.history.is_empty() && chunk.input.len() < SHORT {
        return [ZlibRs, Libdeflate, Isal, Original];
    }
    match settings.level {
        1..=9 if is_one_byte(chunk.input) => [Isal, Libdeflate, ZlibRs, Original],
        // ISA-L is made for text: of programs and images it makes more than zlib does.
        0 | 1 if is_binary(chunk.input) => [Libdeflate, Isal, ZlibRs, Original],
        0 | 1 => [Isal, Libdeflate, ZlibRs, Original],
        _ => [Libdeflate, ZlibRs, Isal, Original],
    }
}

/// A look at the beginning and the middle for bytes that no text has.
fn is_binary(input: &[u8]) -> bool {
    const LOOK: usize = 256;
    let at = |start: usize| input[start..].iter().take(LOOK);
    at(0).chain(at(input.len() / 2)).any(|byte| matches!(byte, 0..=6 | 14..=25 | 28..=31))
}

/// Nothing but one byte, over and over, as in files with holes: zlib's fast levels leap over it, libdeflate does not.
fn is_one_byte(input: &[u8]) -> bool {
    // Nearly always the first comparison says no.
    input.len() > 1 && input[1..] == input[..input.len() - 1]
}

fn translate(kind: EngineKind, settings: Settings) -> Settings {
    let is_plain = settings.strategy == Strategy::Default && settings.tuning.is_none();
    match ZLIB_RS_LEVELS.get(usize::from(settings.level)) {
        Some(level) if kind == EngineKind::ZlibRs && is_plain => Settings { level: *level, ..settings },
        _ => settings,
    }
}

fn is_usable(kind: EngineKind, allowed: u8) -> bool {
    kind == EngineKind::Original || (allowed & bit(kind) != 0 && !breaker::is_open(kind))
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
