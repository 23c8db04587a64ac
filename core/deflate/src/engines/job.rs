//! One chunk on its way through the engines: first a device, then the software engines in turn, then stored blocks.

use hasten_guard::breaker::Permit;

use super::Engines;
use crate::engine::{Chunk, EngineKind, Settings, Written};
use crate::select::{self, Choice, wide};
use crate::stream::Tally;
use crate::watch::Watch;
use crate::{savings, stored, verify};

/// What is known of ISA-L, and of the engine that is asked after it.
pub(crate) type Serving = [Option<bool>; 2];

/// A chunk to compress: how, by which engines, and where the work is counted.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) engines: &'a Engines,
    pub(crate) settings: &'a Settings,
    pub(crate) chunk: &'a Chunk<'a>,
    /// Whether every result is checked before it is used.
    pub(crate) verifies: bool,
    pub(crate) tally: &'a mut Tally,
    /// Which engines serve a stream with a larger window than was asked for, as far as a chunk of it has shown that.
    pub(crate) serving: &'a mut Serving,
}

/// An engine's result for the chunk.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    choice: Choice,
    permit: Permit,
    /// The thread's CPU time beforehand, if devices are in use too.
    started: Option<u64>,
    written: Written,
}

impl Job<'_> {
    /// The shortest output to be had quickly. `out` has room for any engine's ([`Engines::output`]).
    pub(crate) fn run(mut self, out: &mut [u8]) -> Written {
        self.by_device(out).or_else(|| self.by_software(out)).unwrap_or_else(|| self.plainly(out))
    }

    fn by_device(&mut self, out: &mut [u8]) -> Option<Written> {
        self.engines.devices.compress(self.settings, self.chunk, out, self.tally)
    }

    /// `None` if stored blocks are smaller, or no engine accepts the chunk.
    fn by_software(&mut self, out: &mut [u8]) -> Option<Written> {
        let first = self.first_right(out)?;
        let best = self.challenged(first, out);
        if best.written.bytes > stored::plain_len(self.chunk) {
            return None;
        }
        self.engines.devices.software_took(self.settings, self.chunk, best.started);
        self.count(&best);
        Some(best.written)
    }

    fn plainly(&mut self, out: &mut [u8]) -> Written {
        self.tally.plain += self.chunk.input.len() as u64;
        stored::write_plain(self.chunk, out)
    }

    /// Asks one candidate after another until a result is not wrong.
    fn first_right(&mut self, out: &mut [u8]) -> Option<Attempt> {
        let mut choices = self.engines.choose(self.settings, self.chunk).peekable();
        let mut was_wrong = false;
        while let Some(choice) = choices.next() {
            // A wrong result is repaired by the original, not by another engine.
            if was_wrong && choice.kind != EngineKind::Original {
                continue;
            }
            if choice.on_trial && !choices.peek().is_some_and(|next| self.is_better(&choice, next)) {
                continue;
            }
            if let Some(rival) = &choice.against
                && !self.is_short_enough(&choice, rival)
            {
                continue;
            }
            let Some(attempt) = self.attempt(choice, out) else { continue };
            if self.is_right(&attempt, out) {
                return Some(attempt);
            }
            was_wrong = true;
        }
        None
    }

    /// Whether `choice` makes a piece of the chunk shorter than `next` does. The output is discarded.
    fn is_better(&mut self, choice: &Choice, next: &Choice) -> bool {
        let is_closed = self.engines.breakers.is_closed(choice.kind);
        let lengths = if is_closed { self.on_a_piece(choice, next) } else { None };
        lengths.is_some_and(|(bytes, of_next)| Choice::is_better(bytes, next.kind, of_next))
    }

    /// The length of a piece of the chunk as compressed by each.
    fn on_a_piece(&mut self, choice: &Choice, next: &Choice) -> Option<(usize, usize)> {
        let piece = Choice::piece(self.settings, self.chunk.input);
        let mut out = self.engines.output(piece.input.len())?;
        let bytes = self.timed(choice, &piece, &mut out)?.bytes;
        Some((bytes, self.timed(next, &piece, &mut out)?.bytes))
    }

    /// Whether `choice` makes the stream as short as zlib-rs does with the rival's settings, as far as one of its chunks has
    /// shown.
    fn is_short_enough(&mut self, choice: &Choice, rival: &Settings) -> bool {
        let at = usize::from(choice.kind != EngineKind::Isal);
        if self.serving[at].is_none() {
            self.serving[at] = self.judge(choice, rival);
        }
        self.serving[at] == Some(true)
    }

    /// `None` if this chunk does not show it.
    fn judge(&mut self, choice: &Choice, rival: &Settings) -> Option<bool> {
        let sample = wide::sample(self.chunk, choice.settings.window())?;
        let mut out = self.engines.output(sample.input.len())?;
        let bytes = self.timed(choice, &sample, &mut out)?.bytes;
        let settings = *rival;
        let near = sample.history.len().saturating_sub(settings.window());
        let sample = Chunk { history: &sample.history[near..], ..sample };
        let rival = Choice { kind: EngineKind::ZlibRs, settings, against: None, ..*choice };
        Some(wide::is_short_enough(bytes, self.timed(&rival, &sample, &mut out)?.bytes))
    }

    /// Asks an engine, unless its breaker is open. Also `None` if the result suggests that another engine is the
    /// better one.
    fn attempt(&mut self, choice: Choice, out: &mut [u8]) -> Option<Attempt> {
        let permit = self.engines.breakers.admit(choice.kind)?;
        let started = self.engines.devices.now();
        let written = self.timed(&choice, self.chunk, out)?;
        (written.bytes >= choice.least).then_some(Attempt { choice, permit, started, written })
    }

    /// Has an engine compress. Its time counts whether or not it succeeds.
    fn timed(&mut self, choice: &Choice, chunk: &Chunk, out: &mut [u8]) -> Option<Written> {
        let watch = Watch::start(chunk.input.len());
        let written = (self.engines.backend.compress)(choice.kind, &choice.settings, chunk, out);
        self.tally.engines[choice.kind as usize].busy_ns += watch.ns();
        written
    }

    /// Whether the output decodes to the input, where that is checked.
    fn is_right(&mut self, attempt: &Attempt, out: &[u8]) -> bool {
        let Attempt { choice: Choice { kind, .. }, permit, written, .. } = *attempt;
        if kind == EngineKind::Original || !(self.verifies || permit.is_probe()) {
            return true;
        }
        let is_right = verify::check(self.settings, self.chunk, out, &written);
        match is_right {
            Some(true) => {
                self.tally.verified += self.chunk.input.len() as u64;
                self.engines.breakers.succeeded(kind, permit);
            }
            Some(false) => self.caught(kind, permit),
            None => {}
        }
        is_right == Some(true)
    }

    /// The engine's output is wrong.
    fn caught(&mut self, kind: EngineKind, permit: Permit) {
        let work = &mut self.tally.engines[kind as usize];
        work.wrong += 1;
        work.opened += self.engines.breakers.failed(kind, permit);
        self.tally.mismatches += 1;
    }

    /// The attempt, or a rival's shorter one if the output is so dense that the rival may do better.
    fn challenged(&mut self, first: Attempt, out: &mut [u8]) -> Attempt {
        let is_dense = first.written.bytes < first.choice.dense;
        let rival = if is_dense { self.rival(first.written.bytes, out) } else { None };
        // Software's time for the chunk is that of both attempts.
        rival.map_or(first, |rival| Attempt { started: first.started, ..rival })
    }

    /// A rival's attempt at a dense chunk, which replaces the contents of `out` if it is shorter.
    fn rival(&mut self, than: usize, out: &mut [u8]) -> Option<Attempt> {
        let mut other = self.engines.output(self.chunk.input.len())?;
        let choice = select::rival(self.settings, self.chunk.input.len(), than);
        let attempt = self.attempt(choice, &mut other)?;
        let bytes = attempt.written.bytes;
        if bytes >= than || !self.is_right(&attempt, &other) {
            return None;
        }
        out[..bytes].copy_from_slice(&other[..bytes]);
        Some(attempt)
    }

    fn count(&mut self, used: &Attempt) {
        let (kind, length) = (used.choice.kind, self.chunk.input.len());
        self.tally.engines[kind as usize].used(length, used.written.bytes);
        self.tally.saved_ns += savings::deflate_ns(kind, self.settings.level, length);
    }
}
