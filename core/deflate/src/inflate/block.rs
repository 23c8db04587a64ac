//! The beginning of a block: its kind, and the codes it is written in.

use super::io::{Exit, Step};
use super::table::{self, Alphabet, Entry, Fixed};
use super::{Call, Mode, Tables, Used};
use crate::abi::{Z_BLOCK, Z_OK, Z_TREES};

/// The order in which the lengths of the precode come.
const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const MAX_LITLEN: usize = 286;
const MAX_DIST: usize = 30;
const END_OF_BLOCK: usize = 256;

impl Call<'_> {
    /// Between two blocks.
    pub(super) fn block(&mut self) -> Step {
        if self.flush == Z_BLOCK || self.flush == Z_TREES {
            return Err(Exit::Leave(Z_OK));
        }
        // The mode is unchanged, so that a call that ends here reports it.
        self.block_kind()
    }

    pub(super) fn block_kind(&mut self) -> Step {
        if self.state.last {
            self.input.align();
            self.state.mode = Mode::Check;
            return Ok(());
        }
        self.input.need(3)?;
        self.state.last = self.input.take(1) != 0;
        match self.input.take(2) {
            0 => self.state.mode = Mode::Stored,
            1 => {
                self.state.tables = Tables::FIXED;
                return self.codes_known();
            }
            2 => self.state.mode = Mode::Table,
            _ => return self.bad(c"invalid block type"),
        }
        Ok(())
    }

    fn codes_known(&mut self) -> Step {
        self.state.mode = Mode::LenBegin;
        self.pause_at_trees()
    }

    fn pause_at_trees(&self) -> Step {
        if self.flush == Z_TREES { Err(Exit::Leave(Z_OK)) } else { Ok(()) }
    }

    pub(super) fn stored(&mut self) -> Step {
        self.input.align();
        self.input.need(32)?;
        let hold = self.input.hold;
        if hold & 0xffff != hold >> 16 ^ 0xffff {
            return self.bad(c"invalid stored block lengths");
        }
        self.state.length = (hold & 0xffff) as usize;
        self.input.clear();
        self.state.mode = Mode::CopyBegin;
        self.pause_at_trees()
    }

    pub(super) fn copy(&mut self) -> Step {
        self.state.mode = Mode::Copy;
        while self.state.length > 0 {
            let count = self.state.length.min(self.input.have()).min(self.output.left());
            if count == 0 {
                return Err(Exit::Leave(Z_OK));
            }
            self.output.extend(&self.input.rest()[..count]);
            self.input.advance(count);
            self.state.length -= count;
        }
        self.state.mode = Mode::Type;
        Ok(())
    }

    pub(super) fn table(&mut self) -> Step {
        self.input.need(14)?;
        self.state.litlen_count = self.input.take(5) + 257;
        self.state.dist_count = self.input.take(5) + 1;
        self.state.precode_count = self.input.take(4) + 4;
        if self.state.litlen_count > MAX_LITLEN || self.state.dist_count > MAX_DIST {
            return self.bad(c"too many length or distance symbols");
        }
        self.state.have = 0;
        self.state.mode = Mode::PrecodeLens;
        Ok(())
    }

    pub(super) fn precode_lens(&mut self) -> Step {
        while self.state.have < self.state.precode_count {
            self.input.need(3)?;
            self.state.precode_lens[usize::from(ORDER[self.state.have])] = self.input.take(3) as u8;
            self.state.have += 1;
        }
        for symbol in &ORDER[self.state.have..] {
            self.state.precode_lens[usize::from(*symbol)] = 0;
        }
        self.state.used = Used::Entries(0);
        let built = table::build(Alphabet::Precode, &self.state.precode_lens, &mut self.state.litlen);
        let Some(built) = built else { return self.bad(c"invalid code lengths set") };
        self.state.used = Used::Entries(built.used);
        self.state.tables.litlen_root = built.root;
        self.state.have = 0;
        self.state.mode = Mode::CodeLens;
        Ok(())
    }

    pub(super) fn code_lens(&mut self) -> Step {
        let count = self.state.litlen_count + self.state.dist_count;
        while self.state.have < count {
            let entry = self.precode()?;
            let (code, symbol) = (entry.code(), entry.value());
            let (len, times) = match symbol {
                0..16 => {
                    self.input.drop(code);
                    (symbol as u8, 1)
                }
                16 => {
                    self.input.need(code + 2)?;
                    self.input.drop(code);
                    if self.state.have == 0 {
                        return self.bad(c"invalid bit length repeat");
                    }
                    (self.state.lens[self.state.have - 1], 3 + self.input.take(2))
                }
                17 => {
                    self.input.need(code + 3)?;
                    self.input.drop(code);
                    (0, 3 + self.input.take(3))
                }
                _ => {
                    self.input.need(code + 7)?;
                    self.input.drop(code);
                    (0, 11 + self.input.take(7))
                }
            };
            if self.state.have + times > count {
                return self.bad(c"invalid bit length repeat");
            }
            self.state.lens[self.state.have..][..times].fill(len);
            self.state.have += times;
        }
        self.codes()
    }

    fn precode(&mut self) -> Result<Entry, Exit> {
        loop {
            let entry = self.state.litlen[self.input.peek(self.state.tables.litlen_root)];
            if entry.code() <= self.input.bits {
                return Ok(entry);
            }
            self.input.pull()?;
        }
    }

    /// All lengths are known.
    fn codes(&mut self) -> Step {
        if self.state.lens[END_OF_BLOCK] == 0 {
            return self.bad(c"invalid code -- missing end-of-block");
        }
        let (litlen_lens, rest) = self.state.lens.split_at(self.state.litlen_count);
        let dist_lens = &rest[..self.state.dist_count];
        self.state.used = Used::Entries(0);
        let Some(litlen) = table::build(Alphabet::LitLen, litlen_lens, &mut self.state.litlen) else {
            return self.bad(c"invalid literal/lengths set");
        };
        self.state.used = Used::Codes { litlen: litlen_lens.len(), dist: 0 };
        let Some(dist) = table::build(Alphabet::Dist, dist_lens, &mut self.state.dist) else {
            return self.bad(c"invalid distances set");
        };
        self.state.used = Used::Codes { litlen: litlen_lens.len(), dist: dist_lens.len() };
        self.state.tables = Tables { fixed: false, litlen_root: litlen.root, dist_root: dist.root };
        self.codes_known()
    }
}

impl Tables {
    pub(super) const FIXED: Self =
        Self { fixed: true, litlen_root: Fixed::LITLEN_ROOT, dist_root: Fixed::DIST_ROOT };
}
