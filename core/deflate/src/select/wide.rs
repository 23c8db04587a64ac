//! Streams whose owner asked zlib-ng for a small window, and allows the largest.
//!
//! What the window adds is worth less effort: faster engines come as far as zlib-ng does in the small one. By
//! measurement with some hundred pieces of files of all kinds, each of them: none is more than 1 % longer.

use super::Choice;
use super::nature::Nature;
use crate::engine::bucket::Bucket;
use crate::engine::{Chunk, EngineKind, Settings};

/// The only window for which the levels below were measured. In those between it and the largest, ISA-L may be short
/// enough, but nothing else is faster than what serves that window.
const SMALLEST: u8 = 12;

/// The levels that this applies to; the last index is the highest. For each, zlib's level for our own engine.
const FOR_BUCKET: [u8; 7] = [0, 0, 2, 3, 3, 5, 6];
/// The same for libdeflate.
const FOR_LIBDEFLATE: [u8; 7] = [0, 1, 2, 4, 4, 5, 5];
/// With what level of zlib-rs ISA-L competes: zlib-ng's second is less than that.
const FOR_RIVAL: [u8; 7] = [0, 1, 3, 3, 3, 5, 6];

/// In mid-stream, a window of 32 KiB costs more than a shorter piece gains by it.
const LEAST_FOR_ISAL: usize = 4 << 10;
const LEAST_FOR_OTHERS: usize = 12 << 10;

/// As [`super::density`].
pub(super) const DENSITY: usize = 12;

/// What such a stream tries first, best first.
pub(super) fn choices(settings: &Settings, chunk: &Chunk, nature: Nature) -> [Option<Choice>; 2] {
    let Some(narrow) = settings.narrow else { return [None, None] };
    let level = usize::from(settings.level);
    let is_long = |least: usize| chunk.history.is_empty() || chunk.input.len() >= least;
    if !(1..FOR_RIVAL.len()).contains(&level) || chunk.input.len() <= 1_usize << narrow {
        return [None, None];
    }
    let wide = |kind, own| Choice {
        kind,
        settings: Settings { level: own, narrow: None, ..*settings },
        least: 0,
        dense: 0,
        on_trial: false,
        against: (level > 1).then_some(Settings {
            level: FOR_RIVAL[level],
            window_bits: narrow,
            narrow: None,
            ..*settings
        }),
    };
    let isal = wide(EngineKind::Isal, 1);
    // Matches of three bytes, which ISA-L does not find, are not spread evenly over programs.
    let suits_isal = level == 1 || !matches!(nature, Nature::Binary | Nature::Numbers | Nature::Few { .. });
    let other = if Bucket::is_fast() {
        wide(EngineKind::Bucket, FOR_BUCKET[level])
    } else {
        wide(EngineKind::Libdeflate, FOR_LIBDEFLATE[level])
    };
    [
        Some(isal).filter(|_| suits_isal && is_long(LEAST_FOR_ISAL)),
        Some(other).filter(|_| level > 1 && narrow == SMALLEST && is_long(LEAST_FOR_OTHERS)),
    ]
}

/// A piece from the middle of the chunk, by which an engine is judged, with the history that it has there in a window; `None` if
/// the chunk is too short to judge by, or for the judgement to pay.
pub(crate) fn sample<'a>(chunk: &Chunk<'a>, window: usize) -> Option<Chunk<'a>> {
    const LENGTH: usize = 6 << 10;
    /// There are other chunks to come that the judgement is good for.
    const LEAST: usize = 16 << 10;
    const LEAST_WHOLE: usize = 32 << 10;
    let least = if chunk.last { LEAST_WHOLE } else { LEAST };
    let input = chunk.input;
    let start = (input.len().checked_sub(LENGTH)?) / 2;
    (input.len() >= least).then(|| Chunk {
        history: &input[start.saturating_sub(window)..start],
        input: &input[start..][..LENGTH],
        last: true,
        ..*chunk
    })
}

/// Whether an engine's output for a sample says that all of its output is short enough: the sample may be better than the rest.
pub(crate) const fn is_short_enough(bytes: usize, of_rival: usize) -> bool {
    bytes * 100 <= of_rival * 98
}
