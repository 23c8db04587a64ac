//! Which engine compresses a chunk.

mod nature;
pub(crate) mod wide;

use self::nature::Nature;
use crate::engine::bucket::Bucket;
use crate::engine::libdeflate::COUNTERS;
use crate::engine::{Bits, Chunk, EngineKind, Settings, Strategy, serves};
use crate::engines::Engines;
use crate::stack;

/// Maps zlib's levels to zlib-rs's, by `examples/measure_streams.rs`: zlib-rs's lowest levels do less than zlib's.
const ZLIB_RS_LEVELS: [u8; 10] = [0, 2, 3, 4, 4, 6, 7, 7, 9, 9];

/// Maps zlib's levels to libdeflate's where every candidate is a match.
const FEW_LEVELS: [u8; 10] = [0, 8, 8, 8, 8, 8, 8, 9, 9, 9];

/// Behind a full window of 32 KiB, a chunk shorter than this costs more time for the window than for itself; zlib suffers
/// least.
const SHORT: usize = 12 << 10;

/// The lowest level at which libdeflate looks for matches of three bytes, in all but the shortest chunks.
const LOWEST_WITH_CHAINS: u8 = 3;

/// The lowest level at which libdeflate finds in numbers what zlib's lowest levels find.
const LOWEST_FOR_NUMBERS: u8 = 4;

/// Ascending numbers shorter than this go to zlib: the piece that would show which engine does better is half of the
/// input.
const SHORT_FOR_COUNTERS: usize = 32 << 10;

/// Up to this size libdeflate with small tables finishes before ISA-L does.
const TINY: usize = 1200;

/// If an engine shortens its input by this factor, zlib may shorten it still more: the engines look at fewer candidates
/// for a match, ISA-L at one, and in nearly identical rows the second or third is the longer one.
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
    /// The settings to call it with, which may differ from the stream's.
    pub settings: Settings,
    /// An output shorter than this shows that another engine would have made it shorter still.
    pub least: usize,
    /// An output shorter than this is compared with that of a [`rival`], which looks for matches where zlib does.
    pub dense: usize,
    /// Use it only if it makes a piece of the chunk shorter than the next choice does.
    pub on_trial: bool,
    /// Use it only if it makes a piece of the stream shorter than zlib-rs does with these settings.
    pub against: Option<Settings>,
}

impl Choice {
    /// A piece of the chunk on which a choice on trial is compared with the next. At the higher levels a large piece is
    /// worth its time, behind as much history as possible: nothing else shows what repeats only after a few thousand
    /// bytes.
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

    /// Whether a choice is worth taking, given its own and the next choice's output for the piece. Against ISA-L, which
    /// is so much faster, it must win by more.
    pub const fn is_better(bytes: usize, next: EngineKind, of_next: usize) -> bool {
        let percent = if matches!(next, EngineKind::Isal) { 90 } else { 97 };
        bytes * 100 < of_next * percent
    }
}

impl Engines {
    /// The choices for `chunk`, best first. The original always ends the list: it can do whatever the others cannot.
    pub fn choose(&self, settings: &Settings, chunk: &Chunk) -> impl Iterator<Item = Choice> {
        let settings = *settings;
        let has_room = stack::has_room();
        // Where small windows are asked for, the original is zlib-ng, whose output is smaller than zlib's and our own engine's.
        let is_stock_zlib = !self.has_small_windows();
        let serves_at_all = move |kind: &EngineKind| {
            (has_room || *kind == EngineKind::Original)
                && self.is_usable(*kind)
                && serves(*kind, &settings, chunk)
                && (!takes_much_stack(*kind) || !stack::is_alternate())
        };
        let serves =
            move |kind: &EngineKind| serves_at_all(kind) && (*kind != EngineKind::Bucket || is_stock_zlib);
        let nature = Nature::of(chunk, settings.level);
        let length = chunk.input.len();
        let wide = wide::choices(&settings, chunk, nature).into_iter().flatten();
        let dense_wide = if self.is_usable(EngineKind::ZlibRs) { length / wide::DENSITY } else { 0 };
        let wide = wide
            .filter(move |choice| serves_at_all(&choice.kind))
            .map(move |choice| Choice { dense: dense_wide, ..choice });
        // The others do as they would in the window that was asked for.
        let settings = Settings {
            window_bits: settings.narrow.unwrap_or(settings.window_bits),
            narrow: None,
            ..settings
        };
        let dense = move || {
            let has_rival = self.is_usable(EngineKind::ZlibRs);
            if has_rival { length / density(settings.level, nature) } else { 0 }
        };
        let counting = Choice {
            kind: EngineKind::Libdeflate,
            settings: Settings { level: COUNTERS, ..settings },
            least: 0,
            dense: dense(),
            on_trial: true,
            against: None,
        };
        let may_count = nature == Nature::Counters && length >= SHORT_FOR_COUNTERS;
        let is_ours = self.has_small_windows() && is_plain(&settings) || is_ours(&settings, chunk);
        let counting = Some(counting).filter(|choice| may_count && is_ours && serves(&choice.kind));
        let ordinary = order(&settings, chunk, nature, is_ours, is_stock_zlib)
            .into_iter()
            .filter(serves)
            .map(move |kind| Choice {
                kind,
                on_trial: false,
                against: None,
                settings: translate(kind, settings, nature),
                least: if kind == EngineKind::Isal && nature == Nature::Noise {
                    length - length / 50
                } else {
                    0
                },
                dense: match kind {
                    EngineKind::Isal | EngineKind::Libdeflate | EngineKind::Bucket => dense(),
                    _ => 0,
                },
            });
        wide.chain(counting).chain(ordinary)
    }
}

/// Whether it takes several times as much of the stack as zlib: ISA-L 17 KiB, our own 11.
fn takes_much_stack(kind: EngineKind) -> bool {
    matches!(kind, EngineKind::Isal | EngineKind::Bucket)
}

/// Only the original's own matcher is as good at the purposes of the other strategies and tunings, and in a small
/// window.
fn is_ours(settings: &Settings, chunk: &Chunk) -> bool {
    is_plain(settings) && has_all_of_its_window(settings, chunk)
}

/// Whether a larger window would show no more.
fn has_all_of_its_window(settings: &Settings, chunk: &Chunk) -> bool {
    settings.window_bits == 15 || chunk.history.len() + chunk.input.len() <= settings.window()
}

/// The engine that may compress a dense chunk to less than `written` bytes, and the settings to call it with. At the
/// middle levels zlib finishes still denser chunks quickly.
pub fn rival(settings: &Settings, length: usize, written: usize) -> Choice {
    const DENSEST: usize = 30;
    let is_quick = matches!(settings.level, 2..=7) && written < length / DENSEST;
    let kind = if is_quick { EngineKind::Original } else { EngineKind::ZlibRs };
    let settings = translate(kind, *settings, Nature::Text);
    Choice { kind, settings, least: 0, dense: 0, on_trial: false, against: None }
}

fn order(
    settings: &Settings,
    chunk: &Chunk,
    nature: Nature,
    is_ours: bool,
    is_stock_zlib: bool,
) -> [EngineKind; 5] {
    use EngineKind::{Bucket, Isal, Libdeflate, Original, ZlibRs};
    let is_low = settings.level <= 1;
    if !is_ours {
        return [Original, ZlibRs, Libdeflate, Bucket, Isal];
    }
    if nature == Nature::Counters && chunk.input.len() < SHORT_FOR_COUNTERS {
        return [Original, ZlibRs, Libdeflate, Bucket, Isal];
    }
    let suits_bucket = is_stock_zlib && suits_bucket(settings, chunk, nature);
    if !chunk.history.is_empty() && chunk.input.len() < short(settings, suits_bucket) {
        return [ZlibRs, Libdeflate, Bucket, Isal, Original];
    }
    if suits_bucket {
        return [Bucket, Libdeflate, ZlibRs, Isal, Original];
    }
    match (nature, settings.level) {
        (Nature::OneByte, ..=1) | (Nature::Noise, _) => [Isal, Libdeflate, Bucket, ZlibRs, Original],
        (Nature::OneByte, _) => [Original, Libdeflate, Bucket, ZlibRs, Isal],
        (Nature::Few { binary: true }, 5..=7) => [Libdeflate, Bucket, ZlibRs, Isal, Original],
        (Nature::Few { binary: true }, _) | (Nature::Few { .. }, 2..=4) => {
            [Original, ZlibRs, Libdeflate, Bucket, Isal]
        }
        (Nature::Few { binary: false }, 7..) => [ZlibRs, Libdeflate, Bucket, Isal, Original],
        (Nature::Binary | Nature::Numbers, ..=1) => [Libdeflate, Isal, Bucket, ZlibRs, Original],
        _ if chunk.input.len() <= TINY => [Libdeflate, Isal, Bucket, ZlibRs, Original],
        (Nature::Numbered | Nature::Counters, ..=1) => [Libdeflate, Isal, Bucket, ZlibRs, Original],
        (Nature::Digits, ..=1) if !chunk.history.is_empty() => [Libdeflate, Isal, Bucket, ZlibRs, Original],
        _ if is_low => [Isal, Libdeflate, Bucket, ZlibRs, Original],
        _ => [Libdeflate, Bucket, ZlibRs, Isal, Original],
    }
}

/// Whether our own engine is the fastest for such a chunk, and its output short enough. By `examples/frontier.rs`: with
/// few bytes libdeflate's fastest parsing is faster at the lower levels; with many, what zlib finds at level 6 and above
/// takes more candidates than a bucket has.
fn suits_bucket(settings: &Settings, chunk: &Chunk, nature: Nature) -> bool {
    let is_first = chunk.history.is_empty();
    let sizes = match settings.level {
        2 => 4 << 10..usize::MAX,
        3 => 2 << 10..usize::MAX,
        4..=5 => 0..usize::MAX,
        6 if is_first => 0..16 << 10,
        _ => return false,
    };
    let is_text = match nature {
        Nature::Text => true,
        // More candidates make a difference.
        Nature::SomeDigits | Nature::Digits => matches!(settings.level, 3..=4),
        _ => false,
    };
    // In a smaller window, what some zlibs find has not been measured.
    let has_window = has_all_of_its_window(settings, chunk);
    is_text && has_window && sizes.contains(&chunk.input.len()) && Bucket::is_fast()
}

/// Behind a history, such a chunk goes to zlib first.
fn short(settings: &Settings, suits_bucket: bool) -> usize {
    const FULL: usize = 32 << 10;
    let short = match settings.level {
        0..=1 => SHORT / 3,
        _ if suits_bucket => SHORT / 2,
        _ => SHORT,
    };
    short * settings.window() / FULL
}

fn translate(kind: EngineKind, settings: Settings, nature: Nature) -> Settings {
    let level = match (kind, nature, settings.level) {
        (EngineKind::ZlibRs, _, level) if is_plain(&settings) => ZLIB_RS_LEVELS[usize::from(level.min(9))],
        (EngineKind::Isal, Nature::Noise, _) => 1,
        (EngineKind::Libdeflate, Nature::Numbers | Nature::Noise, ..LOWEST_FOR_NUMBERS) => LOWEST_FOR_NUMBERS,
        (EngineKind::Libdeflate, Nature::Binary, ..=1) => LOWEST_WITH_CHAINS,
        // Of letters, level 8 finds hardly more, and takes up to six times as long. Long runs need level 7 to be as small as zlib's 6.
        (EngineKind::Libdeflate, Nature::Few { binary: false }, 5) => 5,
        (EngineKind::Libdeflate, Nature::Few { binary: false }, 6) => 7,
        (EngineKind::Libdeflate, Nature::Few { .. }, level) => FEW_LEVELS[usize::from(level.min(9))],
        (_, _, level) => level,
    };
    Settings { level, ..settings }
}

const fn is_plain(settings: &Settings) -> bool {
    matches!(settings, Settings { strategy: Strategy::Default, tuning: None, .. })
}
