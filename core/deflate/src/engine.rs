//! What an engine is: something that turns bytes into deflate blocks.
//!
//! An engine knows nothing of streams. It is handed a [`Chunk`] with all it needs to continue a stream (the window, the
//! bits of an unfinished byte) and keeps nothing of it afterwards. So the large tables of an engine belong to the
//! process, a few sets for all streams, while a stream owns no more than its bytes.

pub mod bucket;
pub mod isal;
pub mod libdeflate;
pub mod zlib;

use std::fmt;

use hasten_names::ORIGINAL;

/// The engines, in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EngineKind {
    /// Intel's ISA-L: the fastest by far, for the lowest levels.
    Isal,
    /// libdeflate: the smallest output for the time.
    Libdeflate,
    /// Our own: output of the same size as libdeflate's in less time.
    Bucket,
    /// zlib-rs: everything zlib can do.
    ZlibRs,
    /// The zlib that the program would have used.
    Original,
}

impl EngineKind {
    pub const ALL: [Self; 5] = [Self::Isal, Self::Libdeflate, Self::Bucket, Self::ZlibRs, Self::Original];

    /// The name under which it is counted and switched. The original has none: it is what remains.
    pub const fn name(self) -> Option<hasten_names::Engine> {
        match self {
            Self::Isal => Some(hasten_names::Engine::Isal),
            Self::Libdeflate => Some(hasten_names::Engine::Libdeflate),
            Self::Bucket => Some(hasten_names::Engine::Bucket),
            Self::ZlibRs => Some(hasten_names::Engine::ZlibRs),
            Self::Original => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self.name() {
            Some(name) => name.as_str(),
            None => ORIGINAL,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the stream's owner asked of zlib.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// 0 to 9; zlib's default is 6.
    pub level: u8,
    /// Binary logarithm of the window, 9 to 15.
    pub window_bits: u8,
    /// 1 to 9; zlib's default is 8.
    pub mem_level: u8,
    pub strategy: Strategy,
    /// What `deflateTune` set.
    pub tuning: Option<Tuning>,
    /// The window that the owner asked for, if he allows this larger one: the output is to be as short as zlib-ng's in
    /// that.
    pub narrow: Option<u8>,
}

impl Settings {
    /// How far back a match may reach.
    pub const fn window(&self) -> usize {
        1 << self.window_bits
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            level: 6,
            window_bits: 15,
            mem_level: 8,
            strategy: Strategy::Default,
            tuning: None,
            narrow: None,
        }
    }
}

/// zlib's strategies, with zlib's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Strategy {
    Default = 0,
    Filtered = 1,
    HuffmanOnly = 2,
    Rle = 3,
    Fixed = 4,
}

impl Strategy {
    pub const fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Default,
            1 => Self::Filtered,
            2 => Self::HuffmanOnly,
            3 => Self::Rle,
            4 => Self::Fixed,
            _ => return None,
        })
    }
}

/// The arguments of `deflateTune`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    pub good_length: i32,
    pub max_lazy: i32,
    pub nice_length: i32,
    pub max_chain: i32,
}

/// Up to seven bits of a byte that is not complete yet, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    value: u8,
    count: u8,
}

impl Bits {
    pub const NONE: Self = Self { value: 0, count: 0 };

    /// The lowest `count` bits of `value`; `count` is at most 7.
    pub const fn new(value: u8, count: u8) -> Self {
        assert!(count < 8);
        Self { value: value & ((1 << count) - 1), count }
    }

    pub const fn value(self) -> u8 {
        self.value
    }

    pub const fn count(self) -> u8 {
        self.count
    }

    pub const fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// A part of a stream, to be compressed by one call.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The bits that the first byte of the output begins with.
    pub before: Bits,
    /// Preceding plain text within reach of matches: at most the window.
    pub history: &'a [u8],
    pub input: &'a [u8],
    /// Whether the stream ends here. If not, the last block must not be marked as final.
    pub last: bool,
}

/// What an engine has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Complete bytes, including [`Chunk::before`].
    pub bytes: usize,
    /// Bits that follow them; none after the last chunk, which is padded to a byte.
    pub after: Bits,
    /// Whether the output ends with an empty stored block, as a sync flush does.
    pub synced: bool,
}

/// One set of an engine's tables. It may be moved between threads, but not shared.
pub trait Engine: Send {
    fn kind(&self) -> EngineKind;

    /// Compresses `chunk` into `out`. `None` if it does not fit or does not suit this engine; the contents of `out` are
    /// then undefined.
    fn compress(&mut self, settings: &Settings, chunk: &Chunk, out: &mut [u8]) -> Option<Written>;
}

/// Whether an engine can handle such a chunk at all.
pub fn serves(kind: EngineKind, settings: &Settings, chunk: &Chunk) -> bool {
    let plain = settings.strategy == Strategy::Default && settings.tuning.is_none() && settings.level > 0;
    match kind {
        EngineKind::Isal | EngineKind::Bucket => plain,
        EngineKind::Libdeflate => {
            let starts = !chunk.input.is_empty() || (chunk.history.is_empty() && chunk.before.is_empty());
            plain && starts
        }
        EngineKind::ZlibRs | EngineKind::Original => true,
    }
}

/// No engine writes more than this for `length` bytes, including the bits before and after.
///
/// The worst case is codes that do not fit the data: nine bits for a byte in a block with fixed codes, and the headers
/// of blocks as small as `mem_level` 1 makes them.
pub const fn bound(length: usize) -> usize {
    length + length.div_ceil(8) + length.div_ceil(64) + 512
}
