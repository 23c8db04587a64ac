//! `[pid:isolate] N ms: `, which begins every line of V8; in its tables, without the time.

use memchr::memmem::Finder;

use super::cursor::Cursor;
use crate::event::Isolate;

/// Some thirty years: no process is older.
const LATEST_MS: f64 = 1e12;

/// Finds the beginning of V8's output, including after a program's own unfinished line.
pub(super) struct Prefixes {
    middle: Finder<'static>,
}

/// The beginning of a line of V8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prefix {
    pub isolate: Isolate,
    /// Node 24 and later write a third number in some lines.
    pub has_group: bool,
    pub at_ms: Option<f64>,
}

impl Prefixes {
    pub(super) fn new() -> Self {
        Self { middle: Finder::new(b":0x") }
    }

    /// The position of the first prefix in `text`, the prefix itself, and where it ends.
    pub(super) fn find(&self, text: &[u8]) -> Option<(usize, Prefix, usize)> {
        let mut from = 0;
        while let Some(middle) = self.middle.find(&text[from..]) {
            let middle = from + middle;
            let digits =
                text[from..middle].iter().rev().take(10).take_while(|byte| byte.is_ascii_digit()).count();
            let start = middle - digits;
            if digits > 0
                && text[..start].last() == Some(&b'[')
                && let Some((prefix, length)) = Prefix::parse(&text[start - 1..])
            {
                return Some((start - 1, prefix, start - 1 + length));
            }
            from = middle + 3;
        }
        None
    }
}

impl Prefix {
    /// The prefix that `text` begins with, and its length.
    pub(super) fn parse(text: &[u8]) -> Option<(Prefix, usize)> {
        let mut cursor = Cursor(text);
        cursor.expect(b"[")?;
        let pid = cursor.whole().and_then(|pid| u32::try_from(pid).ok())?;
        cursor.expect(b":0x")?;
        let address = cursor.hex()?;
        let has_group = cursor.eat(b":");
        if has_group {
            cursor.whole()?;
        }
        cursor.expect(b"] ")?;
        let isolate = Isolate { pid, address };
        let at_ms = time(cursor);
        if let Some((_, rest)) = at_ms {
            cursor = rest;
        }
        let prefix = Prefix { isolate, has_group, at_ms: at_ms.map(|(at_ms, _)| at_ms) };
        Some((prefix, text.len() - cursor.0.len()))
    }
}

/// `     123 ms: `
fn time(mut cursor: Cursor) -> Option<(f64, Cursor)> {
    cursor.spaces();
    let at_ms = cursor.number().filter(|at_ms| *at_ms <= LATEST_MS)?;
    cursor.expect(b" ms: ")?;
    Some((at_ms, cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<(usize, Prefix, &str)> {
        Prefixes::new().find(text.as_bytes()).map(|(start, prefix, end)| (start, prefix, &text[end..]))
    }

    fn prefix(has_group: bool, at_ms: Option<f64>) -> Prefix {
        Prefix { isolate: Isolate { pid: 42, address: 0x1f00 }, has_group, at_ms }
    }

    #[test]
    fn a_prefix_is_found_anywhere() {
        let expected = prefix(false, Some(25.0));
        assert_eq!(find("[42:0x1f00]       25 ms: Scavenge"), Some((0, expected, "Scavenge")));
        assert_eq!(find("50%\r[42:0x1f00] 25 ms: x"), Some((4, expected, "x")));
        assert_eq!(find("a 7:0x1 b [42:0x1f00] 25 ms: x"), Some((10, expected, "x")));
        assert_eq!(find("[42:0x1f00:0]     25 ms: GC"), Some((0, prefix(true, Some(25.0)), "GC")));
        assert_eq!(find("[42:0x1f00] New space"), Some((0, prefix(false, None), "New space")));
        assert_eq!(find("[42:0x1f00] 12 MB"), Some((0, prefix(false, None), "12 MB")));
    }

    #[test]
    fn what_only_resembles_one_is_none() {
        for text in [
            "",
            "[42:0x]",
            ":0x",
            "[x:0x1] ",
            "[99999999999:0x1] ",
            "[42:0x1f00",
            "42:0x1f00] 25 ms: ",
            "[4:0x1:] ",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
