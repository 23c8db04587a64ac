//! `--trace-gc-nvp`: some fifty to a hundred names with values for each collection. Node 26 writes them as JSON.
//!
//! ```text
//! pause=0.7 mutator=20.5 gc=s … total_size_before=4740512 … promoted=0 semi_space_copied=199312 … promotion_ratio=0.0% …
//! GC: {"pause":0.699,"mutator":122.267,"gc":"s",…,"reason":"allocation failure",…,"start_object_size":5012016,…}
//! ```

use memchr::memchr;

use super::cursor::{Cursor, MOST};
use super::event::Releases;
use crate::event::{Kind, Young};

/// The part of a line that hasten uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pairs<'a> {
    kind: Option<Kind>,
    pause_ms: Option<f64>,
    steps_ms: Option<f64>,
    used: (Option<f64>, Option<f64>),
    committed: (Option<f64>, Option<f64>),
    allocated: Option<f64>,
    copied: Option<f64>,
    promoted: Option<f64>,
    /// In percent of the young generation.
    copied_share: Option<f64>,
    promoted_share: Option<f64>,
    capacity: Option<f64>,
    pub reason: &'a [u8],
    is_18: bool,
    is_22: bool,
    is_24: bool,
}

/// A line without these is incomplete: it was cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub kind: Kind,
    pub pause_ms: f64,
    pub steps_ms: f64,
    pub used_before: u64,
    pub used_after: u64,
    pub committed_before: u64,
    pub committed_after: u64,
    pub young: Young,
    pub releases: Releases,
}

/// `name=value name=value …`. Node 24 omits a space, so a name may begin where a number ends.
pub(super) fn equations(text: &[u8]) -> Pairs<'_> {
    let mut pairs = Pairs::default();
    let mut rest = text;
    while let Some(equals) = memchr(b'=', rest) {
        let name = rest[..equals].trim_ascii_start();
        rest = &rest[equals + 1..];
        let end = pairs.take(name, rest);
        let value = &rest[..end];
        rest = rest[end..].trim_ascii_start();
        if name == b"gc" {
            pairs.kind = kind(value);
            pairs.is_18 |= value == b"ms";
        }
    }
    pairs
}

/// `"name":value,…` up to the closing brace; `None` if that is missing.
pub(super) fn json(text: &[u8]) -> Option<Pairs<'_>> {
    let mut pairs = Pairs::default();
    let mut rest = text;
    loop {
        rest = rest.strip_prefix(b"\"")?;
        let end = memchr(b'"', rest)?;
        let name = &rest[..end];
        rest = rest[end..].strip_prefix(b"\":")?;
        if let Some(string) = rest.strip_prefix(b"\"") {
            let end = memchr(b'"', string)?;
            pairs.take_string(name, &string[..end]);
            rest = &string[end + 1..];
        } else {
            let end = pairs.take(name, rest);
            rest = &rest[end..];
        }
        match rest.split_first()? {
            (b',', more) => rest = more,
            (b'}', _) => return Some(pairs),
            _ => return None,
        }
    }
}

impl<'a> Pairs<'a> {
    /// Reads the value of `name` at the beginning of `text`; returns its length.
    fn take(&mut self, name: &[u8], text: &'a [u8]) -> usize {
        let place = match name {
            b"pause" => &mut self.pause_ms,
            b"incremental" => &mut self.steps_ms,
            b"total_size_before" => &mut self.used.0,
            b"total_size_after" => &mut self.used.1,
            b"start_object_size" => {
                self.is_24 = true;
                &mut self.used.0
            }
            b"end_object_size" => &mut self.used.1,
            b"start_memory_size" => &mut self.committed.0,
            b"end_memory_size" => &mut self.committed.1,
            b"allocated" => &mut self.allocated,
            b"promoted" => &mut self.promoted,
            b"semi_space_copied" => {
                self.is_18 = true;
                &mut self.copied
            }
            b"new_space_survived" => &mut self.copied,
            b"promotion_ratio" => &mut self.promoted_share,
            b"semi_space_copy_rate" | b"new_space_survive_rate" | b"new_space_survive_rate_" => {
                &mut self.copied_share
            }
            b"new_space_capacity" => &mut self.capacity,
            b"interleaved" | b"pool_chunks" => {
                self.is_22 = true;
                return length(text);
            }
            _ => return length(text),
        };
        let mut cursor = Cursor(text);
        *place = cursor.number().filter(|value| *value <= MOST);
        match *place {
            // The rest may be a unit, or the next name.
            Some(_) => text.len() - cursor.0.len() + usize::from(cursor.0.first() == Some(&b'%')),
            None => length(text),
        }
    }

    fn take_string(&mut self, name: &[u8], value: &'a [u8]) {
        match name {
            b"gc" => self.kind = kind(value),
            b"reason" => self.reason = value,
            _ => {}
        }
    }

    pub(super) fn measured(&self, is_json: bool) -> Option<Measured> {
        let bytes = |value: f64| value.round() as u64;
        let kind = self.kind?;
        let young = Young {
            examined: self.examined().filter(|_| kind != Kind::MarkCompact).map(bytes),
            allocated: self.allocated.map(bytes),
            copied: self.copied.map(bytes),
            promoted: self.promoted.map(bytes),
            capacity: self.capacity.map(bytes),
        };
        Some(Measured {
            kind,
            pause_ms: self.pause_ms?,
            steps_ms: self.steps_ms.unwrap_or(0.0),
            used_before: bytes(self.used.0?),
            used_after: bytes(self.used.1?),
            committed_before: self.committed.0.map_or(0, bytes),
            committed_after: self.committed.1.map_or(0, bytes),
            young,
            releases: self.releases(is_json),
        })
    }

    /// V8 reports what it kept in bytes and as a share of what it examined.
    fn examined(&self) -> Option<f64> {
        let share = (self.copied_share? + self.promoted_share?) / 100.0;
        (share > 0.0).then_some((self.copied? + self.promoted?) / share)
    }

    fn releases(&self, is_json: bool) -> Releases {
        match self {
            _ if is_json => Releases::V26,
            Pairs { is_24: true, .. } => Releases::V24,
            Pairs { is_22: true, .. } => Releases::V22,
            Pairs { is_18: true, .. } => Releases::V18,
            _ => Releases::V20,
        }
    }
}

/// An unused value: a number up to where it ends, or a word.
fn length(text: &[u8]) -> usize {
    match text.first() {
        Some(byte) if byte.is_ascii_digit() => {
            let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
            let end = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
            end + exponent(&text[end..])
        }
        _ => text.iter().position(|byte| b" ,}\r\n".contains(byte)).unwrap_or(text.len()),
    }
}

/// `%`, or `e+06`, but not the `e` of the next name.
fn exponent(text: &[u8]) -> usize {
    match text {
        [b'%', ..] => 1,
        [b'e', b'+' | b'-', digits @ ..] => {
            2 + digits.iter().take_while(|byte| byte.is_ascii_digit()).count()
        }
        _ => 0,
    }
}

fn kind(value: &[u8]) -> Option<Kind> {
    match value {
        b"s" => Some(Kind::Scavenge),
        b"ms" | b"mc" => Some(Kind::MarkCompact),
        b"mmc" | b"mms" => Some(Kind::MinorMarkSweep),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_24_forgets_a_space() {
        let text = b"pause=2.5 mutator=1.0 gc=mc clear.join_filter_job=0.0clear.join_job=0.0 pause.x=7 \
            start_object_size=20 end_object_size=10 promotion_ratio=75.3% allocated=5";
        let measured = equations(text).measured(false).expect("a line");
        assert_eq!((measured.kind, measured.pause_ms), (Kind::MarkCompact, 2.5));
        assert_eq!((measured.used_before, measured.used_after), (20, 10));
        assert_eq!(measured.young.allocated, Some(5));
        assert_eq!(measured.releases, Releases::V24);
        let forgotten = b"total_size_before=4end_object_size=3 total_size_after=2pause=1.5gc=s ";
        let pairs = equations(forgotten);
        assert_eq!((pairs.pause_ms, pairs.used), (Some(1.5), (Some(4.0), Some(2.0))));
    }

    #[test]
    fn what_was_looked_at_follows_from_shares() {
        let text =
            b"pause=1 gc=s total_size_before=9 total_size_after=5 promoted=200 new_space_survived=100 \
            promotion_ratio=20.0% new_space_survive_rate_=10.0%";
        let young = equations(text).measured(false).expect("a line").young;
        assert_eq!(young.examined, Some(1000));
    }

    #[test]
    fn json_needs_its_end() {
        let text = br#""pause":0.5,"gc":"s","stack":true,"reason":"task","start_object_size":4e+3,"x":-1,"end_object_size":3}"#;
        let pairs = json(text).expect("an object");
        let measured = pairs.measured(true).expect("a line");
        assert_eq!((measured.used_before, measured.used_after, pairs.reason), (4000, 3, &b"task"[..]));
        assert!((0..text.len()).all(|end| json(&text[..end]).is_none()));
    }

    #[test]
    fn a_line_that_was_cut_is_not_measured() {
        assert_eq!(equations(b"pause=0.5 gc=s total_size_before=5").measured(false), None);
        assert_eq!(
            equations(b"pause=0.5 gc=zz total_size_before=5 total_size_after=2").measured(false),
            None
        );
        assert_eq!(equations(b"==== = =").measured(false), None);
    }
}
