//! `--trace-gc`: one line of text for each collection.
//!
//! ```text
//! Mark-sweep 11.7 (24.4) -> 8.5 (26.4) MB, 10.2 / 0.0 ms  (+ 4.8 ms in 21 steps since start of marking, …) (average mu = …) task; GC in old space requested
//! Scavenge (interleaved) 4.7 (5.8) -> 3.9 (6.8) MB, pooled: 0 MB, 0.83 / 0.00 ms  (average mu = 1.000, …) allocation failure;
//! ```

use super::cursor::{Cursor, Decimal, MOST};
use super::event::Releases;
use crate::event::Kind;

const MIB: f64 = 1024.0 * 1024.0;

/// V8's words, 2018 to now; a word that begins with another one comes before it.
const KINDS: [(&[u8], Kind); 9] = [
    (b"Scavenge", Kind::Scavenge),
    (b"Mark-Compact", Kind::MarkCompact),
    (b"Mark-sweep", Kind::MarkCompact),
    (b"Mark-Sweep-Compact", Kind::MarkCompact),
    (b"Incremental Mark-Compact", Kind::MarkCompact),
    (b"Minor Mark-Compact", Kind::MinorMarkSweep),
    (b"Minor Mark-Sweep", Kind::MinorMarkSweep),
    (b"Incremental Minor Mark-Compact", Kind::MinorMarkSweep),
    (b"Incremental Minor Mark-Sweep", Kind::MinorMarkSweep),
];

/// The part of a `--trace-gc` line after the prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plain<'a> {
    pub kind: Kind,
    pub pause_ms: f64,
    pub steps_ms: f64,
    pub used_before: u64,
    pub committed_before: u64,
    pub used_after: u64,
    pub committed_after: u64,
    pub reason: &'a [u8],
    pub releases: Releases,
}

/// Whether the line is meant to be one of these, complete or not.
pub(super) fn kind(text: &[u8]) -> Option<(Kind, &[u8])> {
    KINDS.iter().find_map(|(word, kind)| Some((*kind, text.strip_prefix(*word)?)))
}

pub(super) fn parse(text: &[u8]) -> Option<Plain<'_>> {
    let (kind, rest) = kind(text)?;
    let mut line = Cursor(rest);
    remarks(&mut line)?;
    let (used_before, committed_before) = size(&mut line)?;
    line.expect(b" -")?;
    // Docker's json-file driver escapes the arrow.
    if !line.eat(b">") {
        line.expect(b"\\u003e")?;
    }
    line.expect(b" ")?;
    let (used_after, committed_after) = size(&mut line)?;
    line.expect(b" MB, ")?;
    let pooled = pooled(&mut line)?;
    let pause = line.decimal().filter(|pause| pause.value <= MOST)?;
    line.expect(b" / ")?;
    line.number()?;
    line.expect(b" ms")?;
    line.spaces();
    Some(Plain {
        kind,
        pause_ms: pause.value,
        steps_ms: steps(line).unwrap_or(0.0),
        used_before,
        committed_before,
        used_after,
        committed_after,
        reason: reason(line.0),
        releases: releases(pooled, pause),
    })
}

/// ` (interleaved) (reduce) `, and whatever later releases put there.
fn remarks(line: &mut Cursor) -> Option<()> {
    line.expect(b" ")?;
    while line.eat(b"(") {
        let end = line.0.iter().take(32).position(|byte| *byte == b')')?;
        line.0 = &line.0[end..];
        line.expect(b") ")?;
    }
    Some(())
}

/// `11.7 (24.4)`: used, and obtained from the system, in MiB.
fn size(line: &mut Cursor) -> Option<(u64, u64)> {
    let used = line.number()?;
    line.expect(b" (")?;
    let committed = line.number()?;
    line.expect(b")")?;
    Some((bytes(used)?, bytes(committed)?))
}

/// `pooled: 0 MB, `, since Node 22.
fn pooled(line: &mut Cursor) -> Option<Option<Decimal>> {
    if !line.eat(b"pooled: ") {
        return Some(None);
    }
    let pooled = line.decimal()?;
    line.expect(b" MB, ")?;
    Some(Some(pooled))
}

/// `(+ 4.8 ms in 21 steps since start of marking, …`
fn steps(mut line: Cursor) -> Option<f64> {
    line.expect(b"(+ ")?;
    let steps = line.number()?;
    line.expect(b" ms in ")?;
    Some(steps)
}

/// The text between the last parenthesis and the semicolon; a line that was cut has none.
fn reason(rest: &[u8]) -> &[u8] {
    let Some(end) = memchr::memchr(b';', rest) else { return b"" };
    let start = memchr::memrchr(b')', &rest[..end]).map_or(0, |parenthesis| parenthesis + 1);
    rest[start..end].trim_ascii()
}

fn releases(pooled: Option<Decimal>, pause: Decimal) -> Releases {
    match pooled {
        Some(pooled) if pooled.decimals == 0 => Releases::V22 | Releases::V24,
        Some(_) => Releases::V26,
        None if pause.decimals == 1 => Releases::V18,
        None => Releases::V20,
    }
}

fn bytes(mib: f64) -> Option<u64> {
    let bytes = mib * MIB;
    // `round` is a function call on the processors that Debian supports, and this gives the same result.
    (bytes <= MOST).then_some((bytes + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL_18: &[u8] = b"Mark-sweep (reduce) 11.7 (24.4) -> 8.5 (26.4) MB, 10.2 / 0.0 ms  (+ 4.8 ms in 21 steps since start of \
        marking, biggest step 4.1 ms, walltime since start of marking 22 ms) (average mu = 1.000, current mu = 1.000) \
        finalize incremental marking via task; GC in old space requested";
    const SCAVENGE_24: &[u8] =
        b"Scavenge (interleaved) 4.7 (5.8) -> 3.9 (6.8) MB, pooled: 0 MB, 0.83 / 0.00 ms  \
        (average mu = 1.000, current mu = 1.000) allocation failure; ";

    #[test]
    fn every_part_of_a_line_is_read() {
        let line = parse(FULL_18).expect("a line");
        assert_eq!((line.kind, line.pause_ms, line.steps_ms), (Kind::MarkCompact, 10.2, 4.8));
        assert_eq!((line.used_before, line.committed_after), (12_268_339, 27_682_406));
        assert_eq!(line.reason, b"finalize incremental marking via task");
        assert_eq!(line.releases, Releases::V18);
        let line = parse(SCAVENGE_24).expect("a line");
        assert_eq!(
            (line.kind, line.pause_ms, line.reason),
            (Kind::Scavenge, 0.83, &b"allocation failure"[..])
        );
        assert_eq!(line.releases, Releases::V22 | Releases::V24);
    }

    #[test]
    fn a_line_may_end_behind_its_pause_but_not_before() {
        let end = FULL_18.windows(3).position(|word| word == b" ms").expect("a pause") + 3;
        assert!(
            (end..FULL_18.len()).all(|end| parse(&FULL_18[..end]).is_some_and(|line| line.pause_ms == 10.2))
        );
        assert!((0..end).all(|end| parse(&FULL_18[..end]).is_none()));
    }

    #[test]
    fn docker_escapes_the_arrow() {
        let escaped =
            b"Scavenge 4.5 (4.9) -\\u003e 3.7 (5.9) MB, 0.81 / 0.00 ms  (average mu = 1.000) task; ";
        assert_eq!(parse(escaped).map(|line| line.used_after), Some(3_879_731));
    }
}
