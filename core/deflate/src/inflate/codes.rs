//! Inside a block: literals and matches, one step at a time.
//!
//! Each step continues with the next, and any may be the last of a call, for lack of input or room;
//! the next call resumes there. `fast.rs` does the same for as long as both are plentiful, and
//! leaves to these steps what it cannot finish.

use super::fast;
use super::io::{Exit, Step};
use super::table::Entry;
use super::{Call, Mode};
use crate::abi::Z_OK;

/// With this much input and room zlib decodes without keeping count for `inflateMark`.
pub(super) const ZLIB_FAST_INPUT: usize = 6;
pub(super) const ZLIB_FAST_ROOM: usize = 258;

#[derive(Clone, Copy)]
enum Code {
    LitLen,
    Dist,
}

impl Call<'_> {
    pub(super) fn len(&mut self) -> Step {
        self.state.mode = Mode::Len;
        fast::run(self);
        if self.state.mode != Mode::Len {
            return Ok(());
        }
        self.quiet = self.is_quiet(self.input.have(), self.output.left());
        if !self.quiet {
            self.state.back = 0;
        }
        let entry = self.decode(Code::LitLen)?;
        self.state.length = entry.value();
        if entry.is_literal() {
            self.state.mode = Mode::Lit;
            return self.literal();
        }
        if entry.is_special() {
            if !entry.is_end() {
                return self.bad(c"invalid literal/length code");
            }
            self.state.back = -1;
            self.state.mode = Mode::Type;
            return Ok(());
        }
        self.state.extra = entry.total() - entry.code();
        self.state.mode = Mode::LenExtra;
        self.len_extra()
    }

    /// Whether zlib would not count the bits of a symbol that begins here.
    pub(super) fn is_quiet(&self, have: usize, left: usize) -> bool {
        have >= ZLIB_FAST_INPUT && left >= ZLIB_FAST_ROOM
    }

    pub(super) fn len_extra(&mut self) -> Step {
        let extra = self.extra_bits()?;
        self.state.length += extra;
        self.state.was = self.state.length;
        self.state.mode = Mode::Dist;
        self.dist()
    }

    pub(super) fn dist(&mut self) -> Step {
        let entry = self.decode(Code::Dist)?;
        if entry.is_special() {
            return self.bad(c"invalid distance code");
        }
        self.state.offset = entry.value();
        self.state.extra = entry.total() - entry.code();
        self.state.mode = Mode::DistExtra;
        self.dist_extra()
    }

    pub(super) fn dist_extra(&mut self) -> Step {
        let extra = self.extra_bits()?;
        self.state.offset += extra;
        self.state.mode = Mode::Match;
        self.copy_match()
    }

    pub(super) fn copy_match(&mut self) -> Step {
        while self.state.length > 0 {
            let len = self.state.length.min(self.output.left());
            if len == 0 {
                return Err(Exit::Leave(Z_OK));
            }
            let written = self.output.written();
            let done = if self.state.offset <= written {
                self.output.repeat(self.state.offset, len);
                len
            } else {
                let back = self.state.offset - written;
                if back > self.state.window.have {
                    return self.bad(c"invalid distance too far back");
                }
                let window = self.state.window;
                let piece = window.piece(back, len);
                self.output.extend(piece);
                piece.len()
            };
            self.state.length -= done;
        }
        self.state.mode = Mode::Len;
        Ok(())
    }

    pub(super) fn literal(&mut self) -> Step {
        if self.output.left() == 0 {
            return Err(Exit::Leave(Z_OK));
        }
        self.output.push(self.state.length as u8);
        self.state.mode = Mode::Len;
        Ok(())
    }

    /// The next code, without its extra bits.
    #[inline(always)]
    fn decode(&mut self, code: Code) -> Result<Entry, Exit> {
        loop {
            let (entry, bits) = self.look(code);
            if bits <= self.input.bits {
                self.input.drop(bits);
                self.count(bits);
                return Ok(entry);
            }
            self.input.pull()?;
        }
    }

    /// What the available bits, padded with zeros, decode to, and how many bits it takes to be sure of that.
    fn look(&self, code: Code) -> (Entry, u32) {
        let (litlen, dist) = self.state.tables();
        let (table, root) = match code {
            Code::LitLen => (litlen, self.state.tables.litlen_root),
            Code::Dist => (dist, self.state.tables.dist_root),
        };
        let entry = table[self.input.peek(root)];
        if !entry.is_link() {
            return (entry, entry.code());
        }
        let index = self.input.peek(root + entry.code()) >> root;
        let second = table[entry.value() + index];
        (second, root + second.code())
    }

    fn extra_bits(&mut self) -> Result<usize, Exit> {
        let bits = self.state.extra;
        self.input.need(bits)?;
        self.count(bits);
        Ok(self.input.take(bits))
    }

    fn count(&mut self, bits: u32) {
        if !self.quiet {
            self.state.back += bits as i32;
        }
    }
}
