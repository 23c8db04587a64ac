//! Reads traces: bytes to lines, lines to events, events to collections.

pub(crate) mod assemble;
mod cursor;
pub(crate) mod event;
mod line;
mod lines;
mod pairs;
mod pipeline;
mod plain;
mod prefix;
pub(crate) mod profile;
mod reasons;
mod recorder;
mod relay;
mod source;
mod table;

use std::io::{self, Read};
use std::thread;

use crate::event::Collection;
use crate::summary::{Lines, Summary};
use assemble::{Assembler, Fact};
use event::Event;
use line::Fate;
use pipeline::Pipeline;
use source::Counted;

/// How many unrecognised lines are shown, and how much of each.
const SAMPLES: usize = 5;
const SAMPLE: usize = 160;

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("cannot read it: {source}")]
    Read { source: io::Error },
    #[error("it is packed by {format}, which hasten does not unpack: `{command} {name} | hasten gc -`")]
    Packed { name: String, format: &'static str, command: &'static str },
}

/// Reads a trace to its end: a file with V8's output and whatever else the program wrote, gzipped or not.
///
/// `progress` receives the number of bytes of `source` read so far, every megabyte and at the end. A trace that breaks
/// off is still summed up, and [`Summary::incomplete`] says why; a source of which nothing can be read is an error.
pub fn read(source: impl Read, name: &str, progress: &mut dyn FnMut(u64)) -> Result<Summary, TraceError> {
    let source = Counted::new(source, progress);
    source::unpacked(source, name, |source| {
        let (lines, end, summarizer) = thread::scope(|scope| {
            let mut pipeline = Pipeline::new(scope);
            let (lines, end) = events(source, &mut |event| pipeline.push(event));
            (lines, end, pipeline.finish())
        });
        match end {
            Err(source) if lines.total == 0 => Err(TraceError::Read { source }),
            end => Ok(summarizer.finish(name, lines, end.err().map(|error| error.to_string()))),
        }
    })?
}

/// Reports everything in `source`, and returns the fate of its lines and how it ended.
pub(crate) fn each(
    source: impl Read,
    name: &str,
    tell: &mut (impl FnMut(Event) + Send),
) -> Result<(Lines, io::Result<()>), TraceError> {
    source::unpacked(source, name, |source| events(source, tell))
}

/// Every collection in `text`.
#[must_use]
pub fn collections(text: &[u8]) -> Vec<Collection> {
    let mut collections = Vec::new();
    let mut keep = |fact: Fact| {
        if let Fact::Collection(collection, _) = fact {
            collections.push(collection.clone());
        }
    };
    let mut assembler = Assembler::default();
    let _ = events(text, &mut |event| assembler.push(event, &mut keep));
    assembler.flush(&mut keep);
    collections
}

/// Reports everything in `source`, and returns the fate of its lines.
fn events(source: impl Read, tell: &mut impl FnMut(Event)) -> (Lines, io::Result<()>) {
    let mut lines = Lines::default();
    let mut parser = line::Lines::new();
    // A line that is too long arrives in pieces.
    let mut fate = Fate::Other;
    let end = lines::for_each(source, |piece| {
        let piece_fate = parser.read(piece.text, tell);
        if piece_fate == Fate::Unknown && fate != Fate::Unknown && lines.samples.len() < SAMPLES {
            lines.samples.push(sample(piece.text));
        }
        fate = fate.max(piece_fate);
        if piece.is_last {
            lines.count(std::mem::replace(&mut fate, Fate::Other));
        }
        lines.bytes += piece.text.len() as u64 + u64::from(piece.has_newline);
    });
    (lines, end)
}

impl Lines {
    fn count(&mut self, fate: Fate) {
        self.total += 1;
        *match fate {
            Fate::Understood => &mut self.understood,
            Fate::Other => &mut self.other,
            Fate::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// The beginning of a line, safe to print.
fn sample(line: &[u8]) -> String {
    let is_long = line.len() > SAMPLE;
    let text = String::from_utf8_lossy(&line[..line.len().min(SAMPLE)]);
    let printable =
        text.trim_end().chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    printable.chain(is_long.then_some('…')).collect()
}
