//! The output of the recorder of `plugins/node`: JSON lines, the first of which describes the process.

use std::borrow::Cow;

use serde::Deserialize;

use super::cursor::{Cursor, MOST};
use crate::event::{Isolate, Kind, Spaces, Young};
use crate::summary::Process;

/// `{"hasten_gc":1,…}`.
#[derive(Debug, Deserialize)]
pub(super) struct Header<'a> {
    hasten_gc: u32,
    pid: u32,
    #[serde(borrow)]
    node: Option<Cow<'a, str>>,
    #[serde(borrow)]
    script: Option<Cow<'a, str>>,
    semi_space_max: Option<u64>,
    heap_limit: Option<u64>,
    memory_limit: Option<u64>,
}

/// `{"gc":"scavenge",…}`.
#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    gc: Cow<'a, str>,
    pub at_ms: f64,
    pub pause_ms: f64,
    #[serde(borrow, default)]
    pub flags: Cow<'a, str>,
    /// If collections are frequent, most entries contain only the pause.
    pub before: Option<Heap>,
    pub after: Option<Heap>,
    new_before: Option<u64>,
    spaces: Option<Sizes>,
    spaces_before: Option<Sizes>,
}

/// `{"gap":true,…}`: a stretch without observation.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Gap {
    gap: bool,
    pub from_ms: f64,
    pub at_ms: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(super) struct Heap {
    pub used: u64,
    pub committed: u64,
    #[serde(default)]
    pub external: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Sizes {
    new: u64,
    old: u64,
    code: u64,
    map: u64,
    large: u64,
    new_large: u64,
    read_only: u64,
    other: u64,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Collection(Kind),
    /// A marking step: it belongs to the next collection of the whole heap.
    Step,
    Callbacks,
}

impl<'a> Header<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        json(line).filter(|header: &Header| header.hasten_gc == 1)
    }

    pub(super) fn isolate(&self) -> Isolate {
        Isolate { pid: self.pid, address: 0 }
    }

    pub(super) fn process(&self) -> Process {
        let version = |node: &Cow<str>| node.strip_prefix('v').unwrap_or(node).to_owned();
        Process {
            node: self.node.as_ref().map(version),
            script: self.script.as_deref().map(str::to_owned),
            semi_space_max: self.semi_space_max,
            heap_limit: self.heap_limit,
            memory_limit: self.memory_limit,
        }
    }
}

impl Gap {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let gap: Self = json(line)?;
        let is_sound = is_time(gap.from_ms) && is_time(gap.at_ms) && gap.from_ms <= gap.at_ms;
        (gap.gap && is_sound).then_some(gap)
    }
}

impl<'a> Entry<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let entry = Self::as_written(line).or_else(|| json(line))?;
        let heaps = [entry.before, entry.after]
            .into_iter()
            .flatten()
            .flat_map(|heap| [heap.used, heap.committed, heap.external]);
        let spaces = [entry.spaces, entry.spaces_before].into_iter().flatten().flat_map(Sizes::all);
        let is_size = |size: u64| size <= MOST as u64;
        let is_sound = heaps.chain(spaces).chain(entry.new_before).all(is_size)
            && is_time(entry.at_ms)
            && is_time(entry.pause_ms);
        is_sound.then_some(entry)
    }

    /// With exactly these names in this order, as `plugins/node` writes it: four times as fast as a JSON parser.
    fn as_written(line: &'a [u8]) -> Option<Self> {
        let mut line = Cursor(line);
        line.expect(br#"{"gc":""#)?;
        let gc = word(&mut line)?;
        let at_ms = number(&mut line, br#","at_ms":"#, Cursor::number)?;
        let pause_ms = number(&mut line, br#","pause_ms":"#, Cursor::number)?;
        line.expect(br#","flags":""#)?;
        let flags = word(&mut line)?;
        let mut entry = Self {
            gc: Cow::Borrowed(gc),
            at_ms,
            pause_ms,
            flags: Cow::Borrowed(flags),
            before: None,
            after: None,
            new_before: None,
            spaces: None,
            spaces_before: None,
        };
        if line.eat(br#","before":"#) {
            entry.before = Some(Heap::as_written(&mut line)?);
            line.expect(br#","after":"#)?;
            entry.after = Some(Heap::as_written(&mut line)?);
            entry.new_before = Some(bytes(&mut line, br#","new_before":"#)?);
            line.expect(br#","spaces":"#)?;
            entry.spaces = Some(Sizes::as_written(&mut line)?);
            line.expect(br#","spaces_before":"#)?;
            entry.spaces_before = Some(Sizes::as_written(&mut line)?);
        }
        (line.0 == b"}").then_some(entry)
    }

    pub(super) fn what(&self) -> Option<What> {
        match &*self.gc {
            "scavenge" => Some(What::Collection(Kind::Scavenge)),
            "minor-mark-sweep" => Some(What::Collection(Kind::MinorMarkSweep)),
            "mark-compact" => Some(What::Collection(Kind::MarkCompact)),
            "incremental-marking" => Some(What::Step),
            "weak-callbacks" => Some(What::Callbacks),
            _ => None,
        }
    }

    pub(super) fn spaces(&self) -> Option<Spaces> {
        let Sizes { new, old, code, map, large, new_large, read_only, other } = self.spaces?;
        Some(Spaces { new, old, code, map, large, new_large, read_only, other })
    }

    /// The spaces before and after a pause show what happened to young objects: it examined the young spaces before
    /// it, copied what is in the young spaces after it, and promoted the growth of the others.
    pub(super) fn young(&self, kind: Kind) -> Option<Young> {
        if kind == Kind::MarkCompact {
            return None;
        }
        let after = self.spaces?;
        let before = self.spaces_before;
        let promoted = before.map(|before| after.elder().saturating_sub(before.elder()));
        let new_large = before.map_or(0, |before| before.new_large);
        Some(Young {
            examined: self
                .new_before
                .or(before.map(|before| before.new))
                .map(|new| new.saturating_add(new_large)),
            allocated: None,
            copied: Some(after.new.saturating_add(after.new_large)),
            promoted,
            capacity: None,
        })
    }
}

impl Heap {
    fn as_written(line: &mut Cursor) -> Option<Self> {
        let used = bytes(line, br#"{"used":"#)?;
        let committed = bytes(line, br#","committed":"#)?;
        let external = bytes(line, br#","external":"#)?;
        line.expect(b"}")?;
        Some(Self { used, committed, external })
    }
}

impl Sizes {
    fn as_written(line: &mut Cursor) -> Option<Self> {
        let sizes = Self {
            new: bytes(line, br#"{"new":"#)?,
            old: bytes(line, br#","old":"#)?,
            code: bytes(line, br#","code":"#)?,
            map: bytes(line, br#","map":"#)?,
            large: bytes(line, br#","large":"#)?,
            new_large: bytes(line, br#","new_large":"#)?,
            read_only: bytes(line, br#","read_only":"#)?,
            other: bytes(line, br#","other":"#)?,
        };
        line.expect(b"}")?;
        Some(sizes)
    }

    fn all(self) -> [u64; 8] {
        let Self { new, old, code, map, large, new_large, read_only, other } = self;
        [new, old, code, map, large, new_large, read_only, other]
    }

    fn elder(&self) -> u64 {
        [self.old, self.code, self.map, self.large, self.other].into_iter().fold(0, u64::saturating_add)
    }
}

/// The byte count after `name`.
fn bytes(line: &mut Cursor, name: &[u8]) -> Option<u64> {
    number(line, name, Cursor::whole)
}

/// The number after `name`. JSON has no number with leading zeros.
fn number<'a, T>(line: &mut Cursor<'a>, name: &[u8], read: fn(&mut Cursor<'a>) -> Option<T>) -> Option<T> {
    line.expect(name)?;
    if let [b'0', b'0'..=b'9', ..] = line.0 { None } else { read(line) }
}

/// A string up to its closing quote, if it needs no unescaping.
fn word<'a>(line: &mut Cursor<'a>) -> Option<&'a str> {
    let end = memchr::memchr(b'"', line.0)?;
    let word = &line.0[..end];
    line.0 = &line.0[end + 1..];
    let is_plain = word.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'\\');
    str::from_utf8(word).ok().filter(|_| is_plain)
}

/// Validates UTF-8 once: `from_slice` does so for each of the forty strings of a line.
fn json<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_str(str::from_utf8(line).ok()?).ok()
}

fn is_time(ms: f64) -> bool {
    (0.0..=MOST).contains(&ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURES: [&str; 3] = [
        include_str!("../../tests/fixtures/recorder-v18.app.jsonl"),
        include_str!("../../tests/fixtures/recorder-v22.fast.jsonl"),
        include_str!("../../tests/fixtures/recorder-v26.busy.jsonl"),
    ];

    fn entries() -> impl Iterator<Item = &'static str> {
        FIXTURES.into_iter().flat_map(str::lines).filter(|line| line.starts_with("{\"gc\""))
    }

    #[test]
    fn what_the_recorder_writes_is_read_as_json_is() {
        assert!(entries().count() > 300);
        for line in entries() {
            let entry = Entry::as_written(line.as_bytes());
            assert!(entry.is_some(), "{line}");
            assert_eq!(entry, json(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn other_json_is_read_as_well() {
        let line = entries().next().expect("an entry");
        let spaced = line.replace(':', ": ");
        assert_eq!(Entry::as_written(spaced.as_bytes()), None);
        assert_eq!(Entry::parse(spaced.as_bytes()), Entry::parse(line.as_bytes()));
        let escaped = br#"{"gc":"scavenge","at_ms":5e1,"pause_ms":0.5,"flags":"a\u0062","later":[1]}"#;
        let entry = Entry::parse(escaped).expect("an entry");
        assert_eq!((&*entry.flags, entry.at_ms), ("ab", 50.0));
    }

    #[test]
    fn what_is_changed_is_never_read_as_something_else() {
        let whole = entries().next().expect("an entry");
        for at in 0..whole.len() {
            assert_eq!(Entry::parse(&whole.as_bytes()[..at]), None);
            for byte in b"\"{}:,.-0 \\\xff" {
                let mut line = whole.as_bytes().to_vec();
                line[at] = *byte;
                let entry = Entry::as_written(&line);
                assert!(entry.is_none() || entry == json(&line), "{}", line.escape_ascii());
            }
        }
    }
}
