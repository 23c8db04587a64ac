//! zlib's deflate stream: input goes in and comes out compressed, in any portions, with any flushes.
//!
//! The stream gathers its input and has it compressed a chunk at a time. Its memory is what zlib itself would have
//! asked for, used as `[history][gathered input][pending output]`. A stream owns nothing else: an owner that
//! forgets it, as servers do that drop an arena, leaks nothing.

mod chunk;
mod control;
mod memory;
mod tally;
#[cfg(test)]
mod tests;

pub use self::tally::{Tally, Work};
use crate::engine::{Bits, Settings};
use crate::engines::{Engines, Serving};
use crate::header::{self, GzipHeader, GzipHeaderBytes, Wrapper};
use crate::store::Store;

/// zlib's flush modes, with zlib's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Flush {
    No = 0,
    Partial = 1,
    Sync = 2,
    Full = 3,
    Finish = 4,
    Block = 5,
}

impl Flush {
    pub const fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::No,
            1 => Self::Partial,
            2 => Self::Sync,
            3 => Self::Full,
            4 => Self::Finish,
            5 => Self::Block,
            _ => return None,
        })
    }

    /// Whether, without input, it has nothing to do after `last`.
    fn repeats(self, last: Option<Self>) -> bool {
        self != Self::Finish && last.is_some_and(|last| self.rank() <= last.rank())
    }

    /// How much is flushed: `Block` is less than `Partial`.
    const fn rank(self) -> i32 {
        self as i32 * 2 - if self as i32 > 4 { 9 } else { 0 }
    }
}

/// The outcome of a call; the values are zlib's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    StreamEnd,
    StreamError,
    BufError,
}

/// The caller's buffers; they advance.
#[derive(Debug)]
pub struct Io<'a> {
    pub input: &'a [u8],
    pub output: &'a mut [u8],
    /// The header given to `deflateSetHeader`.
    pub header: Option<GzipHeader<'a>>,
    /// Why `deflate` refused to continue, even if the caller is told something else.
    pub complaint: Option<Outcome>,
}

impl Io<'_> {
    fn take_input(&mut self, len: usize) {
        self.input = &self.input[len..];
    }

    /// The next `len` bytes of the output, which count as written.
    fn take_output(&mut self, len: usize) -> &mut [u8] {
        let (now, later) = core::mem::take(&mut self.output).split_at_mut(len);
        self.output = later;
        now
    }

    fn is_full(&self) -> bool {
        self.output.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Nothing has been written, not even a header.
    Init,
    /// Within the header, which a caller may have made long.
    Header {
        done: usize,
        left: usize,
    },
    Busy,
    /// The last block has been written, or is at least pending.
    Finish,
    /// The trailer likewise.
    End,
}

/// What follows a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    More,
    Flush(Flush),
    Last,
}

/// A deflate stream.
#[derive(Debug)]
pub struct Deflate {
    settings: Settings,
    wrapper: Wrapper,
    status: Status,
    store: Store,
    /// The length of the history at the beginning of the store.
    history: usize,
    /// The length of the gathered input behind it.
    gathered: usize,
    /// Output that did not fit, as offset and length.
    pending: (usize, usize),
    bits: Bits,
    last_flush: Option<Flush>,
    /// The flush whose marker was written last.
    marked: Option<Flush>,
    /// How many flushes in a row had little to flush.
    small_flushes: u8,
    /// Whether our own engine compressed the last chunk.
    is_by_bucket: bool,
    /// Which engines' output is short enough, once that is known; only with a larger window than was asked for.
    serving: Serving,
    check: u32,
    dictionary: Option<u32>,
    total_in: u64,
    is_text: Option<bool>,
    verifies: bool,
    /// The engines that compress.
    engines: &'static Engines,
}

impl Deflate {
    /// How much memory a stream needs to be of use.
    pub fn least_memory(settings: &Settings) -> usize {
        settings.window() * 2 + 1024
    }

    /// `store` must have at least [`Self::least_memory`].
    pub fn new(
        settings: Settings,
        wrapper: Wrapper,
        store: Store,
        verifies: bool,
        engines: &'static Engines,
    ) -> Self {
        debug_assert!(store.len() >= Self::least_memory(&settings));
        Self {
            settings,
            wrapper,
            status: Status::Init,
            store,
            history: 0,
            gathered: 0,
            pending: (0, 0),
            bits: Bits::NONE,
            last_flush: None,
            marked: None,
            small_flushes: 0,
            is_by_bucket: false,
            serving: [None; 2],
            check: wrapper.initial_check(),
            dictionary: None,
            total_in: 0,
            is_text: None,
            verifies,
            engines,
        }
    }

    /// Restores the state after [`Deflate::new`].
    pub fn reset(&mut self) {
        self.history = 0;
        self.gathered = 0;
        self.reset_keep();
    }

    /// The same, but matches may still refer to the earlier data.
    pub fn reset_keep(&mut self) {
        self.remember_gathered();
        self.status = Status::Init;
        self.pending = (0, 0);
        self.bits = Bits::NONE;
        self.last_flush = None;
        self.marked = None;
        self.small_flushes = 0;
        self.is_by_bucket = false;
        self.serving = [None; 2];
        self.check = self.wrapper.initial_check();
        self.dictionary = None;
        self.total_in = 0;
        self.is_text = None;
    }

    /// The checksum so far, as `z_stream.adler` shows it.
    pub fn check(&self) -> u32 {
        self.check
    }

    /// How many bytes of input are compressed.
    pub fn total_in(&self) -> u64 {
        self.total_in
    }

    /// Whether the first bytes look like text; known once something has been compressed.
    pub fn is_text(&self) -> Option<bool> {
        self.is_text
    }

    pub fn wrapper(&self) -> Wrapper {
        self.wrapper
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether ending the stream now would lose something.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.status, Status::Header { .. } | Status::Busy)
    }

    /// Whether the trailer has been written.
    pub fn has_ended(&self) -> bool {
        self.status == Status::End
    }

    /// zlib's `deflate`.
    pub fn deflate(&mut self, io: &mut Io, flush: Flush, tally: &mut Tally) -> Outcome {
        let outcome = self.progress(io, flush, tally);
        io.complaint = matches!(outcome, Outcome::StreamError | Outcome::BufError).then_some(outcome);
        outcome
    }

    fn progress(&mut self, io: &mut Io, flush: Flush, tally: &mut Tally) -> Outcome {
        if self.is_finished() && flush != Flush::Finish {
            return Outcome::StreamError;
        }
        if io.is_full() {
            return Outcome::BufError;
        }
        let last_flush = self.last_flush.replace(flush);
        if self.pending.1 > 0 {
            self.drain(io);
            if io.is_full() {
                return self.out_of_room();
            }
        } else if io.input.is_empty() && flush.repeats(last_flush) {
            return Outcome::BufError;
        }
        if self.is_finished() && !io.input.is_empty() {
            return Outcome::BufError;
        }
        if !self.begin(io) {
            return self.out_of_room();
        }
        // A marker that is already out, and only had to wait for room, is not repeated.
        let is_done = last_flush.is_none() && io.input.is_empty() && self.marked == Some(flush);
        let has_work = !io.input.is_empty() || self.gathered > 0 || flush != Flush::No;
        if !self.is_finished() && has_work && !is_done {
            self.run(io, flush, tally);
            if io.is_full() {
                return self.out_of_room();
            }
        }
        if flush == Flush::Finish { self.end(io) } else { Outcome::Ok }
    }

    fn is_finished(&self) -> bool {
        matches!(self.status, Status::Finish | Status::End)
    }

    /// The caller repeats the call with the same flush: that is progress, not an error.
    fn out_of_room(&mut self) -> Outcome {
        self.last_flush = None;
        Outcome::Ok
    }

    /// Writes the header; whether it is complete.
    fn begin(&mut self, io: &mut Io) -> bool {
        if self.status == Status::Init {
            self.status = Status::Busy;
            match self.wrapper {
                Wrapper::Raw => {}
                Wrapper::Zlib => {
                    let (bytes, len) = header::zlib(&self.settings, self.dictionary);
                    self.emit(&bytes[..len], io);
                    self.check = self.wrapper.initial_check();
                }
                Wrapper::Gzip if io.header.is_none() => {
                    self.emit(&header::plain_gzip(&self.settings), io);
                }
                Wrapper::Gzip => self.status = Status::Header { done: 0, left: 0 },
            }
        }
        if let Status::Header { done, .. } = self.status {
            let header = GzipHeaderBytes::new(&self.settings, io.header.unwrap_or_default());
            let now = header.copy(done, io.output);
            io.take_output(now);
            let left = header.len() - done - now;
            if left > 0 {
                self.status = Status::Header { done: done + now, left };
                return false;
            }
            self.status = Status::Busy;
        }
        self.pending.1 == 0
    }

    fn count_input(&mut self, input: &[u8]) {
        self.check = self.wrapper.check(self.check, input);
        self.total_in += input.len() as u64;
        if !input.is_empty() {
            self.marked = None;
        }
    }

    /// Writes the trailer and ends the stream.
    fn end(&mut self, io: &mut Io) -> Outcome {
        if self.status == Status::Finish {
            let (bytes, len) = self.trailer();
            self.emit(&bytes[..len], io);
            self.status = Status::End;
        }
        if self.pending.1 > 0 { Outcome::Ok } else { Outcome::StreamEnd }
    }
}

impl Ending {
    fn after(flush: Flush) -> Self {
        match flush {
            Flush::No => Self::More,
            Flush::Finish => Self::Last,
            other => Self::Flush(other),
        }
    }
}
