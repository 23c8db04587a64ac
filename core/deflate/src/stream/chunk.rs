//! Compressing: what makes up a chunk, and what follows it.

use super::{Deflate, Ending, Flush, Io, Status, Tally};
use crate::engine::{Chunk, EngineKind, Written};
use crate::engines::Job;
use crate::pool::Scratch;
use crate::store::Bytes;
use crate::stored::{self, BitWriter};

/// Longer inputs are compressed in pieces of this size: the largest whose output, or whose copy behind a window, fits
/// into the buffers that the process keeps.
const LARGEST: usize = 1 << 20;

/// Fits into the buffers made before a stream is opened.
const SMALLER: usize = 192 << 10;

/// Flushes of fewer bytes than this are cheaper with the original, which need not learn the window anew each time.
/// Measured with text and a full window.
const fn small_flush(level: u8) -> usize {
    match level {
        0..=1 => 7 << 10,
        3 => 20 << 10,
        2 | 4..=8 => 12 << 10,
        _ => 16 << 10,
    }
}

/// The same for a stream whose chunks go to our own engine, which learns the window faster.
const fn small_flush_by_bucket(level: u8) -> usize {
    match level {
        2..=5 => 7 << 10,
        _ => small_flush(level),
    }
}

impl Deflate {
    /// Takes input and writes blocks until there is no input left, or no room for output.
    pub(super) fn run(&mut self, io: &mut Io, flush: Flush, tally: &mut Tally) {
        loop {
            let ending = if let Some(whole) = self.direct(io, flush) {
                let ending = if whole == io.input.len() { Ending::after(flush) } else { Ending::More };
                self.compress(Some(whole), ending, io, tally)
            } else {
                self.gather(io, tally);
                if io.input.is_empty() && flush == Flush::No && (self.gathered == 0 || !self.is_outgrown()) {
                    return;
                }
                let ending = if io.input.is_empty() { Ending::after(flush) } else { Ending::More };
                self.compress(None, ending, io, tally)
            };
            if ending != Ending::More
                || self.pending.1 > 0
                || io.is_full()
                || io.input.is_empty() && flush == Flush::No
            {
                return;
            }
        }
    }

    /// How much of the caller's input is compressed in place, without being gathered first.
    pub(super) fn direct(&self, io: &Io, flush: Flush) -> Option<usize> {
        if self.gathered > 0 || io.input.is_empty() {
            return None;
        }
        let len = io.input.len();
        if flush == Flush::Finish && self.fits_whole(len.min(LARGEST), io) {
            return Some(len.min(LARGEST));
        }
        match self.limit() {
            limit if len >= limit => Some(limit),
            _ if flush != Flush::No => Some(len),
            _ => None,
        }
    }

    /// Whether the output for `len` bytes certainly fits.
    pub(super) fn fits_whole(&self, len: usize, io: &Io) -> bool {
        io.output.len() >= stored::bound(len)
    }

    /// The largest chunk whose output, however bad, fits behind the window.
    pub(super) fn limit(&self) -> usize {
        let len = self.store.len();
        len - self.settings.window() - len / 8192 - 64
    }

    /// Compresses the gathered input, or as much of the caller's, and adds what the ending requires. Returns what was
    /// added: if memory runs out, part of the input may be left for another call.
    pub(super) fn compress(
        &mut self,
        direct: Option<usize>,
        ending: Ending,
        io: &mut Io,
        tally: &mut Tally,
    ) -> Ending {
        let len = direct.unwrap_or(self.gathered);
        self.note_flush(len, ending);
        let mut written = Written { bytes: 0, after: self.bits, synced: false };
        let mut out = None;
        if len > 0 {
            let Some((made, buffer)) = self.call_engine(direct, ending, io, tally) else {
                // A smaller piece may still fit.
                return match direct {
                    Some(len) if len > SMALLER => self.compress(Some(SMALLER), Ending::More, io, tally),
                    _ => self.store_plainly(direct, ending, io, tally),
                };
            };
            (written, out) = (made, Some(buffer));
        }
        if let Some(len) = direct {
            let input = io.input;
            self.count_input(&input[..len]);
            self.remember(&input[..len]);
            io.take_input(len);
        } else {
            self.remember_gathered();
        }
        if ending == Ending::Flush(Flush::Full) {
            self.history = 0;
        }
        if let Some(out) = out {
            self.emit(&out[..written.bytes], io);
        }
        self.finish_chunk(&written, len, ending, io);
        ending
    }

    /// Compresses into a buffer of the process; `None` if there is no memory for one. Not into the caller's: engines
    /// write whole words, hence some bytes behind the output, and the caller may have put the output in the place of
    /// the input.
    pub(super) fn call_engine(
        &mut self,
        direct: Option<usize>,
        ending: Ending,
        io: &Io,
        tally: &mut Tally,
    ) -> Option<(Written, Scratch)> {
        let history = self.store.get(0, self.history)?;
        let input = match direct {
            Some(len) => Bytes::Here(&io.input[..len]),
            None => self.store.get(self.history, self.gathered)?,
        };
        let mut out = self.engines.output(input.len())?;
        if self.is_text.is_none() && self.settings.level > 0 {
            self.is_text = Some(is_text(&input, self.settings.mem_level));
        }
        let chunk =
            Chunk { before: self.bits, history: &history, input: &input, last: ending == Ending::Last };
        let mut serving = self.serving;
        let before = tally.engines[EngineKind::Bucket as usize].chunks;
        let job = Job {
            engines: self.engines,
            settings: &self.settings,
            chunk: &chunk,
            verifies: self.verifies,
            tally: &mut *tally,
            serving: &mut serving,
        };
        let written = job.run(&mut out);
        let is_by_bucket = tally.engines[EngineKind::Bucket as usize].chunks > before;
        drop((history, input));
        self.is_by_bucket = is_by_bucket;
        self.serving = serving;
        Some((written, out))
    }

    /// The fallback if the kernel gives no memory: stored blocks, for as much as the output has room.
    fn store_plainly(
        &mut self,
        direct: Option<usize>,
        ending: Ending,
        io: &mut Io,
        tally: &mut Tally,
    ) -> Ending {
        const STEP: usize = 256;
        /// What a store always has room for behind everything else (see `limit`).
        const LITTLE: usize = 40;
        let (mut bytes, mut out) = ([0; STEP], [0; STEP + 16]);
        let len = direct.unwrap_or(self.gathered);
        let mut left = len;
        while left > 0 && self.pending.1 == 0 && !io.is_full() {
            let step = left.min(if io.output.len() >= out.len() { STEP } else { LITTLE });
            let last = ending == Ending::Last && step == left;
            let input = &mut bytes[..step];
            match direct {
                Some(_) => {
                    input.copy_from_slice(&io.input[..step]);
                    io.take_input(step);
                    self.count_input(input);
                    self.remember(input);
                }
                None => {
                    self.store.read(self.history, input);
                    self.remember_some(step);
                }
            }
            let chunk = Chunk { before: self.bits, history: &[], input, last };
            let written = stored::write_plain(&chunk, &mut out);
            self.bits = written.after;
            self.emit(&out[..written.bytes], io);
            tally.plain += step as u64;
            left -= step;
        }
        if left > 0 {
            return Ending::More;
        }
        if ending == Ending::Flush(Flush::Full) {
            self.history = 0;
        }
        self.finish_chunk(&Written { bytes: 0, after: self.bits, synced: false }, len, ending, io);
        ending
    }

    /// Writes flush markers, and an empty last block if nothing else could be the last.
    pub(super) fn finish_chunk(&mut self, written: &Written, len: usize, ending: Ending, io: &mut Io) {
        let mut tail = BitWriter::after(written.after);
        match ending {
            Ending::Last if len == 0 => {
                tail.push_empty(true);
                tail.align();
                // At level 0, zlib considers nothing binary.
                self.is_text = self.is_text.or((self.settings.level > 0).then_some(false));
            }
            Ending::Last | Ending::More => {}
            Ending::Flush(_) if written.synced => {}
            Ending::Flush(Flush::Sync | Flush::Full) => tail.push_sync(),
            Ending::Flush(Flush::Partial) => tail.push_empty(false),
            Ending::Flush(_) => {}
        }
        self.bits = tail.rest();
        self.emit(tail.bytes(), io);
        self.marked = match ending {
            Ending::Flush(flush) => Some(flush),
            Ending::More | Ending::Last => None,
        };
        if ending == Ending::Last {
            self.status = Status::Finish;
        }
    }

    pub(super) fn note_flush(&mut self, len: usize, ending: Ending) {
        self.small_flushes = match ending {
            Ending::Flush(_) if len < self.small_flush() => self.small_flushes.saturating_add(1),
            _ => 0,
        };
    }

    fn small_flush(&self) -> usize {
        let small = if self.is_by_bucket { small_flush_by_bucket } else { small_flush };
        small(self.settings.level)
    }
}

/// zlib's guess, which it makes from the literals of the first block: text has no control characters except those found
/// in text files, and at least one printable one.
///
/// How far a block reaches depends on its matches; this looks only at what is certainly in the first.
fn is_text(input: &[u8], mem_level: u8) -> bool {
    let first = &input[..input.len().min((64 << mem_level) - 1)];
    // Fixed-size pieces and no early exit suit vector units.
    let is_binary = |byte: &u8| matches!(byte, 0..=6 | 14..=25 | 28..=31);
    let has_binary = |piece: &[u8]| piece.iter().fold(false, |any, byte| any | is_binary(byte));
    !first.chunks(1024).any(has_binary)
        && first.iter().any(|&byte| matches!(byte, b'\t' | b'\n' | b'\r') || byte >= 32)
}
