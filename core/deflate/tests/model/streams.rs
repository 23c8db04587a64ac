//! Streams to inflate: made by zlib with all its parameters and then damaged, or made of arbitrary bytes.

use core::ffi::c_int;

use hasten_deflate::abi::{GzHeader, Z_FINISH, ZStream};

use super::zlib::{VERSION, original};

/// Choices made by data from a test or a fuzzer; zeros once it runs out.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bound
    }

    pub(crate) fn one_in(&mut self, count: u8) -> bool {
        self.byte() % count == count - 1
    }

    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// xorshift64*: the same numbers everywhere.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}

/// A stream, the window it needs, and the dictionary it may need.
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    pub(crate) window_bits: c_int,
    pub(crate) dictionary: Vec<u8>,
}

pub(crate) fn stream(choices: &mut Choices) -> Stream {
    let window_bits = choices.of(&[15, 31, -15, 9, 25, -9, 12, -12, 15, 31]);
    let mut seed = 1 + choices.below(1 << 16) as u64;
    let dictionary = if choices.one_in(4) { text(&mut seed, 1 + choices.below(40_000)) } else { Vec::new() };
    let mut bytes = if choices.one_in(8) {
        noise(&mut seed, choices.below(300))
    } else {
        deflated(choices, window_bits, &mut seed, &dictionary)
    };
    if choices.one_in(6) {
        bytes.extend(noise(&mut seed, choices.below(40)));
    }
    damage(choices, &mut bytes);
    Stream { bytes, window_bits, dictionary }
}

fn damage(choices: &mut Choices, bytes: &mut Vec<u8>) {
    if choices.one_in(2) {
        for _ in 0..=choices.byte() % 3 {
            if !bytes.is_empty() {
                // Half of the time within the headers.
                let reach = if choices.one_in(2) { bytes.len().min(60) } else { bytes.len() };
                let at = choices.below(reach);
                bytes[at] ^= 1 << (choices.byte() % 8);
            }
        }
    }
    if choices.one_in(8) {
        let len = choices.below(bytes.len() + 1);
        bytes.truncate(len);
    }
}

fn noise(seed: &mut u64, len: usize) -> Vec<u8> {
    (0..len).map(|_| next(seed) as u8).collect()
}

/// Words, numbers, runs, and repetitions near and far.
pub(crate) fn text(seed: &mut u64, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 300);
    while out.len() < len {
        match next(seed) % 8 {
            0 => out.extend(noise(seed, 3)),
            1 => out.resize(out.len() + next(seed) as usize % 300, b' '),
            2..5 if !out.is_empty() => {
                let distance = 1 + next(seed) as usize % out.len().min(1 << (next(seed) % 16));
                for _ in 0..3 + next(seed) % 60 {
                    out.push(out[out.len() - distance]);
                }
            }
            _ => out.extend(format!("<a href=\"/{:x}\">", next(seed) % 4096).bytes()),
        }
    }
    out.truncate(len);
    out
}

fn deflated(choices: &mut Choices, window_bits: c_int, seed: &mut u64, dictionary: &[u8]) -> Vec<u8> {
    let zlib = &original().1;
    let level = c_int::from(choices.byte() % 10);
    let strategy = choices.of(&[0, 0, 0, 0, 1, 2, 3, 4]);
    let mem_level = c_int::from(1 + choices.byte() % 9);
    let shift = choices.byte() % 18;
    let len = choices.below((1 << shift) + 1);
    let input = if choices.one_in(8) { noise(seed, len) } else { text(seed, len) };
    let mut out = vec![0; input.len() + input.len() / 2 + 4096];
    let mut strm = ZStream::new();
    let mut header = Header::new(choices);
    // SAFETY: zlib's documented calls on a stream local to this function.
    unsafe {
        let size = size_of::<ZStream>() as c_int;
        let version = VERSION.as_ptr();
        assert_eq!((zlib.init2)(&mut strm, level, 8, window_bits, mem_level, strategy, version, size), 0);
        if window_bits > 15 && choices.one_in(2) {
            assert_eq!((zlib.set_header)(&mut strm, &mut *header.fields), 0);
        } else if !dictionary.is_empty() && window_bits <= 15 {
            (zlib.set_dictionary)(&mut strm, dictionary.as_ptr(), dictionary.len() as u32);
        }
        (strm.next_out, strm.avail_out) = (out.as_mut_ptr(), out.len() as u32);
        let mut rest = &input[..];
        while !rest.is_empty() && choices.one_in(2) {
            let (part, tail) = rest.split_at(choices.below(rest.len()) + 1);
            (strm.next_in, strm.avail_in) = (part.as_ptr(), part.len() as u32);
            (zlib.deflate)(&mut strm, choices.of(&[0, 1, 2, 3, 5]));
            assert_eq!(strm.avail_in, 0);
            rest = tail;
        }
        (strm.next_in, strm.avail_in) = (rest.as_ptr(), rest.len() as u32);
        assert_eq!((zlib.deflate)(&mut strm, Z_FINISH), 1);
        out.truncate(strm.total_out as usize);
        (zlib.end)(&mut strm);
    }
    out
}

/// A description of a gzip header, with its buffers.
pub(crate) struct Header {
    pub(crate) fields: Box<GzHeader>,
    pub(crate) extra: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) comment: Vec<u8>,
}

impl Header {
    pub(crate) fn new(choices: &mut Choices) -> Self {
        let mut extra = vec![b'x'; choices.below(70)];
        let mut name = vec![b'n'; choices.below(70)];
        let mut comment = vec![b'c'; choices.below(70)];
        let has = choices.byte();
        name.push(0);
        comment.push(0);
        let pointer = |bit: u8, bytes: &mut Vec<u8>| {
            if has & bit != 0 { bytes.as_mut_ptr() } else { core::ptr::null_mut() }
        };
        let fields = Box::new(GzHeader {
            text: 1,
            time: 0x1234_5678,
            xflags: 0,
            os: 7,
            extra: pointer(1, &mut extra),
            extra_len: extra.len() as u32,
            extra_max: extra.len() as u32,
            name: pointer(2, &mut name),
            name_max: name.len() as u32,
            comment: pointer(4, &mut comment),
            comm_max: comment.len() as u32,
            hcrc: c_int::from(has & 8 != 0),
            done: 0,
        });
        Self { fields, extra, name, comment }
    }
}
