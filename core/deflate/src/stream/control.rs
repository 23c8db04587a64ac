//! zlib's other functions on a deflate stream, and handing the stream over to the original.

use super::{Deflate, Flush, Io, Outcome, Status, Tally};
use crate::engine::{Bits, Settings, Strategy, Tuning};
use crate::header::{self, Wrapper};
use crate::pool;
use crate::store::Store;
use crate::stored::BitWriter;

/// This many small flushes in a row are taken for a habit.
const HABIT: u8 = 2;

impl Deflate {
    /// zlib's `deflateParams`: earlier input is compressed with the old settings.
    pub fn set_params(&mut self, settings: Settings, io: &mut Io, tally: &mut Tally) -> Outcome {
        if self.must_flush_for(&settings) {
            match self.deflate(io, Flush::Block, tally) {
                Outcome::StreamError => return Outcome::StreamError,
                _ if !io.input.is_empty() || self.gathered > 0 => return Outcome::BufError,
                _ => {}
            }
        }
        self.settings = settings;
        Outcome::Ok
    }

    /// Whether these settings require a new block, so that earlier input must be compressed first.
    pub fn must_flush_for(&self, settings: &Settings) -> bool {
        class(settings) != class(&self.settings) && self.has_seen_data()
    }

    /// Whether `deflate` has been called since the reset.
    fn has_seen_data(&self) -> bool {
        self.status != Status::Init
    }

    /// zlib's `deflateTune`.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.settings.tuning = Some(tuning);
    }

    /// zlib's `deflatePending`: bytes and bits not written for lack of room.
    pub fn pending(&self) -> (usize, u8) {
        let header = match self.status {
            Status::Header { left, .. } => left,
            _ => 0,
        };
        (self.pending.1 + header, self.bits.count())
    }

    /// zlib's `deflatePrime`: inserts bits before the next block.
    pub fn prime(&mut self, value: u32, count: u32) -> Outcome {
        let used = self.history + self.gathered + self.pending.1;
        if count > 16 || used + 16 > self.store.len() {
            return Outcome::BufError;
        }
        let mut bits = BitWriter::after(self.bits);
        bits.push(value & ((1 << count) - 1), count);
        self.bits = bits.rest();
        self.push_pending(bits.bytes());
        Outcome::Ok
    }

    /// zlib's `deflateSetDictionary`.
    pub fn set_dictionary(&mut self, dictionary: &[u8]) -> Outcome {
        // Once its trailer is written, zlib treats a stream as raw.
        let wrapper = if self.has_ended() { Wrapper::Raw } else { self.wrapper };
        let refused = match wrapper {
            Wrapper::Gzip => true,
            Wrapper::Zlib => self.status != Status::Init,
            Wrapper::Raw => false,
        };
        if refused || self.gathered > 0 {
            return Outcome::StreamError;
        }
        if wrapper == Wrapper::Zlib {
            self.check = Wrapper::Zlib.check(self.check, dictionary);
            let is_set = !dictionary.is_empty() || self.has_dictionary();
            self.dictionary = is_set.then_some(self.check);
        }
        // Pending output lies where the window grows.
        let (start, len) = self.pending;
        let Some(mut pending) = pool::scratch(len) else { return Outcome::StreamError };
        self.store.read(start, &mut pending[..len]);
        self.pending = (0, 0);
        self.remember(dictionary);
        self.push_pending(&pending[..len]);
        Outcome::Ok
    }

    pub fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    /// Whether zlib, in place of this stream, would have committed anything to its window: it holds back the last
    /// bytes, as many as its longest match needs, until it is told to flush.
    pub fn has_filled_its_window(&self) -> bool {
        const KEPT_BACK: usize = 258 + 3 + 1;
        self.history > 0 || self.gathered >= KEPT_BACK
    }

    /// zlib's `deflateGetDictionary`: copies the window; `None` only asks how long it is.
    pub fn dictionary(&self, out: Option<&mut [u8]>) -> usize {
        let total = self.history + self.gathered;
        let len = total.min(self.settings.window());
        if let Some(out) = out {
            self.store.read(total - len, &mut out[..len]);
        }
        len
    }

    /// A copy of the stream in `store`, which must be as long as this one's.
    pub fn copy_to(&self, mut store: Store) -> Self {
        let used = (self.history + self.gathered).max(self.pending.0 + self.pending.1);
        store.copy_from(&self.store, used);
        Self { store, ..*self }
    }

    /// Whether the original would handle the stream more cheaply, and the stream can be handed over now.
    pub fn wants_original(&self) -> bool {
        let is_quiet = self.status == Status::Busy && self.gathered == 0 && self.pending.1 == 0;
        (self.small_flushes >= HABIT || self.is_outgrown()) && is_quiet && self.settings.mem_level > 1
    }

    /// Whether the stream has a small window and more data than that. Its memory is small as well, so chunks would be
    /// short, and the engines that are fast at short ones do not support small windows.
    pub(super) fn is_outgrown(&self) -> bool {
        let window = self.settings.window();
        self.settings.window_bits < 15 && self.settings.mem_level > 3 && self.history == window
    }

    /// The memory, which is free for other uses between [`Self::hand_over`] and [`Self::take_back`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Hands the stream over: copies the window out, and returns its length and the unfinished byte.
    pub fn hand_over(&mut self, window: &mut [u8]) -> (usize, Bits) {
        let len = self.history;
        self.store.read(0, &mut window[..len]);
        self.history = 0;
        self.small_flushes = 0;
        (len, core::mem::take(&mut self.bits))
    }

    /// The reverse.
    pub fn take_back(&mut self, window: &[u8], bits: Bits) {
        self.store.write(0, window);
        self.history = window.len();
        self.bits = bits;
    }

    /// Whether a call without input has nothing to do. The flush is remembered even so, as zlib does.
    pub fn repeats(&mut self, flush: Flush) -> bool {
        flush.repeats(self.last_flush.replace(flush))
    }

    /// Accounts for input compressed by the original.
    pub fn account(&mut self, input: &[u8]) {
        self.count_input(input);
    }

    /// Records settings already applied by the original.
    pub fn note_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// What follows the last block.
    pub fn trailer(&self) -> ([u8; 8], usize) {
        header::trailer(self.wrapper, self.check, self.total_in as u32)
    }
}

/// Settings of the same class need no new block between them.
fn class(settings: &Settings) -> (Strategy, u8) {
    let effort = match settings.level {
        0 => 0,
        1..=3 => 1,
        _ => 2,
    };
    (settings.strategy, effort)
}
