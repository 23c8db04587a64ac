//! What surrounds the deflate blocks: RFC 1950 (zlib) and RFC 1952 (gzip).

use crate::checksum::{adler32, crc32};
use crate::engine::{Settings, Strategy};

/// What the blocks are wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapper {
    Raw,
    Zlib,
    Gzip,
}

impl Wrapper {
    /// The checksum of no data, as `z_stream.adler` shows it.
    pub fn initial_check(self) -> u32 {
        match self {
            Self::Gzip => 0,
            Self::Zlib | Self::Raw => 1,
        }
    }

    /// Continues the checksum `before` with `bytes`.
    pub fn check(self, before: u32, bytes: &[u8]) -> u32 {
        match self {
            Self::Raw => before,
            Self::Zlib => adler32(before, bytes),
            Self::Gzip => crc32(before, bytes),
        }
    }
}

/// A gzip header supplied by the stream's owner, borrowed while it is being written.
#[derive(Clone, Copy, Debug, Default)]
pub struct GzipHeader<'a> {
    pub text: bool,
    pub time: u32,
    pub os: u8,
    pub extra: Option<&'a [u8]>,
    /// Without the terminating zero.
    pub name: Option<&'a [u8]>,
    pub comment: Option<&'a [u8]>,
    pub check: bool,
}

impl GzipHeader<'_> {
    /// The number of bytes beyond the ten that every header has.
    pub fn optional_len(&self) -> usize {
        let text = |text: Option<&[u8]>| text.map_or(0, |text| text.len() + 1);
        let extra = self.extra.map_or(0, |extra| extra.len() + 2);
        extra + text(self.name) + text(self.comment) + if self.check { 2 } else { 0 }
    }
}

/// The bytes of a header, in at most ten slices.
#[derive(Debug)]
pub(crate) struct GzipHeaderBytes<'a> {
    fixed: [u8; 10],
    extra_len: [u8; 2],
    header: GzipHeader<'a>,
    check: [u8; 2],
}

impl<'a> GzipHeaderBytes<'a> {
    pub(crate) fn new(settings: &Settings, header: GzipHeader<'a>) -> Self {
        let flag = |set: bool, bit: u8| u8::from(set) << bit;
        let flags = flag(header.text, 0)
            | flag(header.check, 1)
            | flag(header.extra.is_some(), 2)
            | flag(header.name.is_some(), 3)
            | flag(header.comment.is_some(), 4);
        let time = header.time.to_le_bytes();
        let fixed =
            [0x1f, 0x8b, 8, flags, time[0], time[1], time[2], time[3], extra_flags(settings), header.os];
        let extra_len = header.extra.map_or(0, |extra| extra.len() as u16).to_le_bytes();
        let mut bytes = Self { fixed, extra_len, header, check: [0; 2] };
        let sum = bytes.slices().into_iter().take(7).fold(0, crc32);
        bytes.check = (sum as u16).to_le_bytes();
        bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.slices().iter().map(|slice| slice.len()).sum()
    }

    /// Copies the bytes from `skip` on and returns how many fitted.
    pub(crate) fn copy(&self, skip: usize, out: &mut [u8]) -> usize {
        let (mut skip, mut done) = (skip, 0);
        for slice in self.slices() {
            let rest = &slice[skip.min(slice.len())..];
            skip = skip.saturating_sub(slice.len());
            let step = rest.len().min(out.len() - done);
            out[done..done + step].copy_from_slice(&rest[..step]);
            done += step;
        }
        done
    }

    fn slices(&self) -> [&[u8]; 8] {
        let GzipHeader { extra, name, comment, check, .. } = self.header;
        let end = |text: Option<&[u8]>| if text.is_some() { &[0][..] } else { &[] };
        [
            &self.fixed,
            if extra.is_some() { &self.extra_len } else { &[] },
            extra.unwrap_or_default(),
            name.unwrap_or_default(),
            end(name),
            comment.unwrap_or_default(),
            end(comment),
            if check { &self.check } else { &[] },
        ]
    }
}

/// The header that zlib writes if the caller supplies none.
pub fn plain_gzip(settings: &Settings) -> [u8; 10] {
    const UNIX: u8 = 3;
    [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra_flags(settings), UNIX]
}

/// XFL: how hard the compressor tried.
fn extra_flags(settings: &Settings) -> u8 {
    match settings.level {
        9 => 2,
        _ if settings.level < 2 || settings.strategy as u8 >= Strategy::HuffmanOnly as u8 => 4,
        _ => 0,
    }
}

/// CMF and FLG, with the checksum of a preset dictionary if there is one.
pub fn zlib(settings: &Settings, dictionary: Option<u32>) -> ([u8; 6], usize) {
    let level = match settings.level {
        _ if settings.level < 2 || settings.strategy as u8 >= Strategy::HuffmanOnly as u8 => 0,
        2..=5 => 1,
        6 => 2,
        _ => 3,
    };
    let cmf = 8 | (u16::from(settings.window_bits) - 8) << 4;
    let mut header = cmf << 8 | level << 6 | u16::from(dictionary.is_some()) << 5;
    header += 31 - header % 31;
    let [a, b] = header.to_be_bytes();
    let [c, d, e, f] = dictionary.unwrap_or_default().to_be_bytes();
    ([a, b, c, d, e, f], if dictionary.is_some() { 6 } else { 2 })
}

/// What ends a stream; `total_in` counts modulo 2^32.
pub fn trailer(wrapper: Wrapper, check: u32, total_in: u32) -> ([u8; 8], usize) {
    match wrapper {
        Wrapper::Raw => ([0; 8], 0),
        Wrapper::Zlib => {
            let [a, b, c, d] = check.to_be_bytes();
            ([a, b, c, d, 0, 0, 0, 0], 4)
        }
        Wrapper::Gzip => {
            let ([a, b, c, d], [e, f, g, h]) = (check.to_le_bytes(), total_in.to_le_bytes());
            ([a, b, c, d, e, f, g, h], 8)
        }
    }
}
