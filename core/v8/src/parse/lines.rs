//! Lines of any length, in bounded memory.

use std::io::{self, Read};

use memchr::memchr;

/// V8's longest lines are below 5 KB. Longer ones are read in pieces.
const LONGEST: usize = 64 << 10;
const BUFFER: usize = 4 * LONGEST;
/// V8's prefix is shorter than this, even if cut.
const PREFIX: usize = 64;
/// A V8 line that begins within this many bytes of a cut is not cut.
const NEAR: usize = 16 << 10;

/// A line, or a piece of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub text: &'a [u8],
    /// Whether the line ends here.
    pub is_last: bool,
    pub has_newline: bool,
}

/// Calls `each` with every line. An error comes after the lines that could be read.
pub(super) fn for_each(mut source: impl Read, mut each: impl FnMut(Piece)) -> io::Result<()> {
    let mut buffer = Buffer { bytes: vec![0; BUFFER], start: 0, searched: 0, end: 0 };
    loop {
        buffer.make_room();
        let read = match source.read(&mut buffer.bytes[buffer.end..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read,
        };
        let is_end = !matches!(read, Ok(1..));
        buffer.end += *read.as_ref().unwrap_or(&0);
        buffer.give(is_end, &mut each);
        if is_end {
            return read.map(drop);
        }
    }
}

/// The bytes read but not yet passed on are `bytes[start..end]`, with no newline before `searched`.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    searched: usize,
    end: usize,
}

impl Buffer {
    fn make_room(&mut self) {
        if self.bytes.len() - self.end < LONGEST {
            self.bytes.copy_within(self.start..self.end, 0);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Passes on what is complete. The places where a line is cut must not depend on how the source is read, so a long
    /// line is cut at the same places whether or not its end has arrived.
    fn give(&mut self, is_end: bool, each: &mut impl FnMut(Piece)) {
        while self.start < self.end {
            let longest = self.end.min(self.start + LONGEST);
            let rest = &self.bytes[self.start..longest];
            let newline =
                memchr(b'\n', &self.bytes[self.searched..longest]).map(|at| self.searched - self.start + at);
            let (length, piece) = match newline {
                Some(end) => (end + 1, Piece { text: &rest[..end], is_last: true, has_newline: true }),
                None if rest.len() == LONGEST => {
                    let end = cut(rest);
                    (end, Piece { text: &rest[..end], is_last: false, has_newline: false })
                }
                None if is_end => (rest.len(), Piece { text: rest, is_last: true, has_newline: false }),
                None => {
                    self.searched = longest;
                    return;
                }
            };
            each(piece);
            self.start += length;
            self.searched = self.start;
        }
    }
}

/// Where to cut a line that is too long: before the last line of V8, or prefix of one, that begins in it.
fn cut(text: &[u8]) -> usize {
    let near = text.len() - NEAR;
    let begins = |start: &usize| {
        let prefix = &text[*start..text.len().min(start + PREFIX)];
        let digits = prefix[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = &prefix[1 + digits..];
        *start > 0
            && (rest.is_empty() || digits > 0 && (rest.starts_with(b":0x") || b":0x".starts_with(rest)))
    };
    memchr::memrchr_iter(b'[', &text[near..]).map(|start| near + start).find(begins).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields at most this many bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(self.1).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn pieces(text: &[u8], step: usize) -> Vec<(Vec<u8>, bool)> {
        let mut pieces = Vec::new();
        let end = for_each(Drip(text, step), |piece| pieces.push((piece.text.to_vec(), piece.is_last)));
        assert!(end.is_ok());
        pieces
    }

    #[test]
    fn lines_do_not_depend_on_how_they_come() {
        let long =
            [&b"x".repeat(LONGEST - 10)[..], b"[12:0x3f] 5 ms: Scavenge", &b"y".repeat(BUFFER)[..], b"\nend"]
                .concat();
        let text = [&b"one\r\n\n"[..], &long, b"\n\0\xff\nlast"].concat();
        let whole = pieces(&text, text.len());
        for step in [1, 7, LONGEST - 1, LONGEST, LONGEST + 1] {
            assert!(pieces(&text, step) == whole, "step {step}");
        }
        assert!(whole.iter().any(|(text, _)| text.starts_with(b"[12:0x3f] 5 ms: Scavenge")));
        assert!(whole.iter().all(|(text, _)| text.len() <= LONGEST));
        assert_eq!(whole.iter().filter(|(_, is_last)| *is_last).count(), 6);
    }

    #[test]
    fn a_cut_goes_before_a_prefix_or_what_may_become_one() {
        for tail in ["[", "[12", "[12:", "[12:0", "[12:0x3f", "[12:0x3f] 5 ms: Scav"] {
            let text = ["a".repeat(LONGEST - tail.len()).as_str(), tail].concat();
            assert_eq!(cut(text.as_bytes()), LONGEST - tail.len(), "{tail}");
        }
        for tail in ["[x", "[12,", "[]", "[:0x"] {
            let text = ["a".repeat(LONGEST - tail.len()).as_str(), tail].concat();
            assert_eq!(cut(text.as_bytes()), LONGEST, "{tail}");
        }
        let from_the_start = ["[1:0x1] ", &"a".repeat(LONGEST - 8)].concat();
        assert_eq!(cut(from_the_start.as_bytes()), LONGEST);
    }
}
