//! Reads single lines, whatever wrote them.

use memchr::memmem::Finder;

use super::event::{Event, Origin, Releases};
use super::pairs::{self, Measured};
use super::plain;
use super::prefix::{Prefix, Prefixes};
use super::profile;
use super::reasons::{Reasons, is_last_resort};
use super::recorder::{Entry, Gap, Header, What};
use super::table;
use crate::event::{Collection, Isolate, Kind};
use crate::summary::Format;

/// What became of a line; if one line holds two things, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    Other,
    Understood,
    Unknown,
}

/// Reads lines in the order of the trace.
pub(super) struct Lines {
    prefixes: Prefixes,
    /// The middle of a line of `--trace-gc` that has lost its beginning.
    torn: Finder<'static>,
    reasons: Reasons,
    /// The process of this recording, and marking steps that belong to its next full collection.
    recorder: Option<(Isolate, f64)>,
    profile: profile::Readers,
    is_last_words: bool,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            prefixes: Prefixes::new(),
            torn: Finder::new(b"(average mu = "),
            reasons: Reasons::new(),
            recorder: None,
            profile: profile::Readers::default(),
            is_last_words: false,
        }
    }

    pub(super) fn read(&mut self, line: &[u8], tell: &mut impl FnMut(Event)) -> Fate {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut found = match Prefix::parse(line) {
            Some((prefix, end)) => Some((0, prefix, end)),
            None => match self.without_prefix(line, tell) {
                Some(fate) => return fate,
                None => self.prefixes.find(line),
            },
        };
        let mut fate = if found.is_none() { self.torn(line) } else { Fate::Other };
        let mut rest = line;
        // Another process may have written into the middle of a line.
        while let Some((_, prefix, end)) = found {
            rest = &rest[end..];
            found = self.prefixes.find(rest);
            let body = &rest[..found.map_or(rest.len(), |(start, ..)| start)];
            fate = fate.max(self.v8(prefix, body, tell));
        }
        fate
    }

    /// Reads lines without a prefix.
    fn without_prefix(&mut self, line: &[u8], tell: &mut impl FnMut(Event)) -> Option<Fate> {
        match line.first()? {
            b'{' => self.recording(line, tell),
            b'<' if line.starts_with(b"<--- Last few GCs --->") => {
                self.is_last_words = true;
                Some(Fate::Understood)
            }
            b'<' if line.starts_with(b"<--- JS stacktrace --->") => {
                self.is_last_words = false;
                Some(Fate::Understood)
            }
            b'F' if line.starts_with(b"FATAL ERROR: ") => {
                self.is_last_words = false;
                let is_full = memchr::memmem::find(line, b"heap out of memory").is_some();
                is_full.then(|| {
                    tell(Event::OutOfMemory);
                    Fate::Understood
                })
            }
            // Node 26 breaks a remark in two.
            b',' if line.starts_with(b", removed zone reservations: ") => Some(Fate::Understood),
            _ => None,
        }
    }

    /// A line without any prefix may still be part of one.
    fn torn(&self, line: &[u8]) -> Fate {
        let is_torn = line.starts_with(b"[") && is_cut_prefix(line) || self.torn.find(line).is_some();
        if is_torn { Fate::Unknown } else { Fate::Other }
    }

    fn v8(&mut self, prefix: Prefix, body: &[u8], tell: &mut impl FnMut(Event)) -> Fate {
        let collection = match prefix.at_ms {
            Some(at_ms) if body.starts_with(b"pause=") => {
                let pairs = pairs::equations(body);
                let read = pairs.measured(false).map(|measured| (measured, pairs.reason));
                self.measured(prefix.isolate, at_ms, read, Format::TraceGcNvp)
            }
            Some(at_ms) if body.starts_with(b"GC: {") => {
                let pairs = pairs::json(&body[5..]);
                let read = pairs.and_then(|pairs| Some((pairs.measured(true)?, pairs.reason)));
                self.measured(prefix.isolate, at_ms, read, Format::TraceGcJson)
            }
            Some(at_ms) if plain::kind(body).is_some() => self.plain(prefix.isolate, at_ms, body),
            _ => return table_or_remark(prefix, body, tell),
        };
        match collection {
            Some((collection, origin)) => {
                tell(Event::Collection(collection, origin));
                Fate::Understood
            }
            None => Fate::Unknown,
        }
    }

    fn plain(&mut self, isolate: Isolate, at_ms: f64, body: &[u8]) -> Option<(Collection, Origin)> {
        let line = plain::parse(body)?;
        let collection = Collection {
            isolate,
            at_ms,
            kind: line.kind,
            pause_ms: line.pause_ms,
            steps_ms: line.steps_ms,
            used_before: Some(line.used_before),
            used_after: Some(line.used_after),
            committed_before: line.committed_before,
            committed_after: line.committed_after,
            external_after: None,
            reason: self.reasons.intern(line.reason),
            last_resort: is_last_resort(line.reason),
            young: None,
            spaces: None,
        };
        Some((collection, self.origin(Format::TraceGc, line.releases)))
    }

    fn measured(
        &mut self,
        isolate: Isolate,
        at_ms: f64,
        read: Option<(Measured, &[u8])>,
        format: Format,
    ) -> Option<(Collection, Origin)> {
        let (measured, reason) = read?;
        let collection = Collection {
            isolate,
            at_ms,
            kind: measured.kind,
            pause_ms: measured.pause_ms,
            steps_ms: measured.steps_ms,
            used_before: Some(measured.used_before),
            used_after: Some(measured.used_after),
            committed_before: measured.committed_before,
            committed_after: measured.committed_after,
            external_after: None,
            reason: self.reasons.intern(reason),
            last_resort: is_last_resort(reason),
            young: Some(measured.young),
            spaces: None,
        };
        Some((collection, self.origin(format, measured.releases)))
    }

    fn origin(&self, format: Format, releases: Releases) -> Origin {
        Origin { format, releases, is_last_words: self.is_last_words }
    }

    /// A line of a recording; `None` if it is some program's JSON.
    fn recording(&mut self, line: &[u8], tell: &mut impl FnMut(Event)) -> Option<Fate> {
        if line.starts_with(b"{\"hasten_gc\":") {
            let Some(header) = Header::parse(line) else { return Some(Fate::Unknown) };
            self.recorder = Some((header.isolate(), 0.0));
            self.profile = profile::Readers::default();
            tell(Event::Process(header.isolate(), header.process()));
            return Some(Fate::Understood);
        }
        let (isolate, mut steps_ms) = self.recorder?;
        if line.starts_with(b"{\"end\":true") {
            self.recorder = None;
            return Some(Fate::Understood);
        }
        if line.starts_with(b"{\"gap\":") {
            let Some(gap) = Gap::parse(line) else { return Some(Fate::Unknown) };
            tell(Event::Gap(isolate, gap.from_ms, gap.at_ms));
            return Some(Fate::Understood);
        }
        if line.starts_with(b"{\"cpu\":") {
            let Some((worker, part)) = self.profile.read(line) else { return Some(Fate::Unknown) };
            tell(Event::Profile(isolate, worker, Box::new(part)));
            return Some(Fate::Understood);
        }
        if !line.starts_with(b"{\"gc\":") {
            return None;
        }
        let read = Entry::parse(line).and_then(|entry| Some((entry.what()?, entry)));
        let Some((what, entry)) = read else { return Some(Fate::Unknown) };
        match what {
            What::Step => steps_ms += entry.pause_ms,
            What::Callbacks => {}
            What::Collection(kind) => {
                let steps_ms = if kind == Kind::MarkCompact { std::mem::take(&mut steps_ms) } else { 0.0 };
                let collection = self.recorded(isolate, kind, &entry, steps_ms);
                tell(Event::Collection(collection, self.origin(Format::Recorder, Releases::ALL)));
            }
        }
        self.recorder = Some((isolate, steps_ms));
        Some(Fate::Understood)
    }

    fn recorded(&mut self, isolate: Isolate, kind: Kind, entry: &Entry, steps_ms: f64) -> Collection {
        Collection {
            isolate,
            at_ms: entry.at_ms,
            kind,
            pause_ms: entry.pause_ms,
            steps_ms,
            used_before: entry.before.map(|heap| heap.used),
            used_after: entry.after.map(|heap| heap.used),
            committed_before: entry.before.map_or(0, |heap| heap.committed),
            committed_after: entry.after.map_or(0, |heap| heap.committed),
            external_after: entry.after.map(|heap| heap.external),
            reason: self.reasons.intern(entry.flags.as_bytes()),
            last_resort: entry.flags.contains("forced"),
            young: entry.young(kind),
            spaces: entry.spaces(),
        }
    }
}

fn table_or_remark(prefix: Prefix, body: &[u8], tell: &mut impl FnMut(Event)) -> Fate {
    let row = if prefix.at_ms.is_none() { table::row(body) } else { None };
    match row {
        Some(row) => {
            tell(Event::Row(prefix.isolate, row));
            Fate::Understood
        }
        None if table::is_remark(body) => {
            if prefix.at_ms.is_some() {
                let recent = Releases::V24 | Releases::V26;
                let releases = if prefix.has_group { recent } else { Releases::ALL };
                tell(Event::Release(prefix.isolate, releases));
            }
            Fate::Understood
        }
        None => Fate::Unknown,
    }
}

/// `[123:0x4f` and nothing after it.
fn is_cut_prefix(line: &[u8]) -> bool {
    let digits = line[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &line[1 + digits..];
    let address = rest.strip_prefix(b":0x").unwrap_or(b"-");
    digits > 0 && address.len() <= 16 && address.iter().all(u8::is_ascii_hexdigit)
}
