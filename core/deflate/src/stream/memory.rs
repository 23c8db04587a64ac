//! The layout of a stream's memory: `[history][gathered input][pending output]`.

use super::{Deflate, Io, Tally};

impl Deflate {
    /// Sets input aside until there is enough of it.
    pub(super) fn gather(&mut self, io: &mut Io, tally: &mut Tally) {
        let room = self.limit().saturating_sub(self.gathered);
        let (now, _) = io.input.split_at(room.min(io.input.len()));
        self.store.write(self.history + self.gathered, now);
        self.count_input(now);
        self.gathered += now.len();
        tally.buffered += now.len() as u64;
        io.take_input(now.len());
    }

    /// Keeps the end of `input`, which the caller holds, as history.
    pub(super) fn remember(&mut self, input: &[u8]) {
        let window = self.settings.window();
        if input.len() >= window {
            self.store.write(0, &input[input.len() - window..]);
            self.history = window;
            return;
        }
        let kept = self.history.min(window - input.len());
        self.store.move_to_front(self.history - kept, kept);
        self.store.write(kept, input);
        self.history = kept + input.len();
    }

    /// The same for the gathered input.
    pub(super) fn remember_gathered(&mut self) {
        let total = self.history + self.gathered;
        let kept = total.min(self.settings.window());
        self.store.move_to_front(total - kept, kept);
        self.history = kept;
        self.gathered = 0;
    }

    /// The same for the beginning of the gathered input. More may follow it, and nothing is pending.
    pub(super) fn remember_some(&mut self, len: usize) {
        (self.history, self.gathered) = (self.history + len, self.gathered - len);
        let excess = self.history.saturating_sub(self.settings.window());
        self.store.move_to_front(excess, self.history - excess + self.gathered);
        self.history -= excess;
    }

    /// Writes bytes to the output, and the overflow behind everything else in the store.
    pub(super) fn emit(&mut self, bytes: &[u8], io: &mut Io) {
        let now = if self.pending.1 > 0 { 0 } else { bytes.len().min(io.output.len()) };
        io.take_output(now).copy_from_slice(&bytes[..now]);
        self.push_pending(&bytes[now..]);
    }

    pub(super) fn push_pending(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.pending.1 == 0 {
            self.pending.0 = self.history + self.gathered;
        }
        self.store.write(self.pending.0 + self.pending.1, bytes);
        self.pending.1 += bytes.len();
    }

    pub(super) fn drain(&mut self, io: &mut Io) {
        let (start, len) = self.pending;
        let now = len.min(io.output.len());
        self.store.read(start, io.take_output(now));
        self.pending = (start + now, len - now);
    }
}
