//! Around the blocks: the headers of zlib and gzip streams, and the check values at the end.

use core::ffi::{c_int, c_ulong};
use core::ptr::null_mut;

use super::io::{Exit, Step};
use super::{CHECKED, Call, GZIP, Mode, ZLIB};
use crate::abi::{GzHeader, Z_DATA_ERROR, Z_DEFLATED, Z_NEED_DICT, Z_STREAM_END};
use crate::checksum::{adler32, crc32};

/// Flags of a gzip header, as in `State::flags`: in the second byte.
const HEADER_CRC: c_int = 0x0200;
const EXTRA: c_int = 0x0400;
const NAME: c_int = 0x0800;
const COMMENT: c_int = 0x1000;
const RESERVED: c_int = 0xe000;

const GZIP_MAGIC: u64 = 0x8b1f;
const PRESET_DICTIONARY: u64 = 0x0200;

impl Call<'_> {
    /// The first two bytes tell zlib from gzip.
    pub(super) fn head(&mut self) -> Step {
        if self.state.wrap == 0 {
            self.state.mode = Mode::TypeDo;
            return Ok(());
        }
        self.input.need(16)?;
        if self.state.wrap & GZIP != 0 && self.input.hold == GZIP_MAGIC {
            if self.state.window_bits == 0 {
                self.state.window_bits = 15;
            }
            self.state.check = 0;
            self.check_header(2);
            self.input.clear();
            self.state.mode = Mode::Flags;
            return Ok(());
        }
        if let Some(head) = self.header() {
            head.done = -1;
        }
        let sum = ((self.input.peek(8) as u64) << 8) + (self.input.hold >> 8);
        if self.state.wrap & ZLIB == 0 || !sum.is_multiple_of(31) {
            return self.bad(c"incorrect header check");
        }
        if self.input.peek(4) != Z_DEFLATED as usize {
            return self.bad(c"unknown compression method");
        }
        self.input.drop(4);
        let window_bits = self.input.peek(4) as u32 + 8;
        if self.state.window_bits == 0 {
            self.state.window_bits = window_bits;
        }
        if window_bits > 15 || window_bits > self.state.window_bits {
            return self.bad(c"invalid window size");
        }
        self.state.flags = 0;
        self.start_check(1);
        let dictionary = self.input.hold & PRESET_DICTIONARY != 0;
        self.state.mode = if dictionary { Mode::DictId } else { Mode::Type };
        self.input.clear();
        Ok(())
    }

    pub(super) fn flags(&mut self) -> Step {
        self.input.need(16)?;
        self.state.flags = self.input.hold as c_int;
        if self.state.flags & 0xff != Z_DEFLATED {
            return self.bad(c"unknown compression method");
        }
        if self.state.flags & RESERVED != 0 {
            return self.bad(c"unknown header flags set");
        }
        let text = (self.input.hold >> 8 & 1) as c_int;
        if let Some(head) = self.header() {
            head.text = text;
        }
        self.end_field(2);
        self.state.mode = Mode::Time;
        Ok(())
    }

    pub(super) fn time(&mut self) -> Step {
        self.input.need(32)?;
        let time = self.input.hold as c_ulong;
        if let Some(head) = self.header() {
            head.time = time;
        }
        self.end_field(4);
        self.state.mode = Mode::Os;
        Ok(())
    }

    pub(super) fn os(&mut self) -> Step {
        self.input.need(16)?;
        let (xflags, os) = ((self.input.hold & 0xff) as c_int, (self.input.hold >> 8) as c_int);
        if let Some(head) = self.header() {
            head.xflags = xflags;
            head.os = os;
        }
        self.end_field(2);
        self.state.mode = Mode::ExLen;
        Ok(())
    }

    pub(super) fn extra_len(&mut self) -> Step {
        if self.state.flags & EXTRA != 0 {
            self.input.need(16)?;
            let len = self.input.hold as u32;
            self.state.length = len as usize;
            if let Some(head) = self.header() {
                head.extra_len = len;
            }
            self.end_field(2);
        } else if let Some(head) = self.header() {
            head.extra = null_mut();
        }
        self.state.mode = Mode::Extra;
        Ok(())
    }

    pub(super) fn extra(&mut self) -> Step {
        if self.state.flags & EXTRA != 0 {
            let count = self.state.length.min(self.input.have());
            self.store_extra(count);
            self.pass_header(count);
            self.state.length -= count;
            if self.state.length != 0 {
                return Err(Exit::Leave(0));
            }
        }
        self.state.length = 0;
        self.state.mode = Mode::Name;
        Ok(())
    }

    /// As much of the extra field as the program has room for.
    fn store_extra(&mut self, count: usize) {
        let remaining = self.state.length;
        let from = self.input.next();
        let Some(head) = self.header() else { return };
        // The program may have changed the length meanwhile.
        let Some(at) = (head.extra_len as usize).checked_sub(remaining) else { return };
        let room = (head.extra_max as usize).saturating_sub(at);
        if !head.extra.is_null() && room > 0 {
            // SAFETY: the input has `count` bytes; the program vouches for `extra_max` bytes at `extra`.
            unsafe { core::ptr::copy_nonoverlapping(from, head.extra.add(at), count.min(room)) };
        }
    }

    pub(super) fn name(&mut self) -> Step {
        if self.state.flags & NAME != 0 {
            self.text(|head| (head.name, head.name_max))?;
        } else if let Some(head) = self.header() {
            head.name = null_mut();
        }
        self.state.length = 0;
        self.state.mode = Mode::Comment;
        Ok(())
    }

    pub(super) fn comment(&mut self) -> Step {
        if self.state.flags & COMMENT != 0 {
            self.text(|head| (head.comment, head.comm_max))?;
        } else if let Some(head) = self.header() {
            head.comment = null_mut();
        }
        self.state.mode = Mode::HCrc;
        Ok(())
    }

    /// A text in the header, up to and including its zero; as much of it is stored as there is room for.
    fn text(&mut self, field: impl Fn(&GzHeader) -> (*mut u8, u32)) -> Step {
        let rest = self.input.rest();
        if rest.is_empty() {
            return Err(Exit::Leave(0));
        }
        let end = rest.iter().position(|byte| *byte == 0);
        let count = end.map_or(rest.len(), |end| end + 1);
        let (from, at) = (rest.as_ptr(), self.state.length);
        if let Some(head) = self.header() {
            let (to, max) = field(head);
            let stored = count.min((max as usize).saturating_sub(at));
            if !to.is_null() && stored > 0 {
                // SAFETY: the input has `count` bytes; the program vouches for `max` bytes at `to`.
                unsafe { core::ptr::copy_nonoverlapping(from, to.add(at), stored) };
                self.state.length += stored;
            }
        }
        self.pass_header(count);
        if end.is_none() { Err(Exit::Leave(0)) } else { Ok(()) }
    }

    pub(super) fn header_crc(&mut self) -> Step {
        if self.state.flags & HEADER_CRC != 0 {
            self.input.need(16)?;
            let given = self.input.hold;
            if self.state.wrap & CHECKED != 0 && given != u64::from(self.state.check & 0xffff) {
                return self.bad(c"header crc mismatch");
            }
            self.input.clear();
        }
        let present = self.state.flags >> 9 & 1;
        if let Some(head) = self.header() {
            head.hcrc = present;
            head.done = 1;
        }
        self.start_check(0);
        self.state.mode = Mode::Type;
        Ok(())
    }

    pub(super) fn dictionary_id(&mut self) -> Step {
        self.input.need(32)?;
        let id = (self.input.hold as u32).swap_bytes();
        self.start_check(id);
        self.input.clear();
        self.state.mode = Mode::Dict;
        Ok(())
    }

    pub(super) fn dictionary(&mut self) -> Step {
        if !self.state.have_dictionary {
            // Without counting what this call has read, as zlib does.
            return Err(Exit::Return(Z_NEED_DICT));
        }
        self.start_check(1);
        self.state.mode = Mode::Type;
        Ok(())
    }

    /// Compares the checksum that follows the last block.
    pub(super) fn check(&mut self) -> Step {
        if self.state.wrap != 0 {
            self.input.need(32)?;
            self.account();
            let given = self.input.hold as u32;
            let given = if self.state.flags != 0 { given } else { given.swap_bytes() };
            if self.state.wrap & CHECKED != 0 && given != self.state.check {
                return self.bad(c"incorrect data check");
            }
            self.input.clear();
        }
        self.state.mode = Mode::Length;
        Ok(())
    }

    /// Compares the length that follows gzip's checksum.
    pub(super) fn length(&mut self) -> Step {
        if self.state.wrap != 0 && self.state.flags != 0 {
            self.input.need(32)?;
            if self.state.wrap & CHECKED != 0 && self.input.hold as u32 != self.state.total as u32 {
                return self.bad(c"incorrect length check");
            }
            self.input.clear();
        }
        self.state.mode = Mode::Done;
        Err(Exit::Leave(Z_STREAM_END))
    }

    /// Adds the new output to the totals and the checksum.
    pub(super) fn account(&mut self) {
        let fresh = self.output.fresh();
        self.strm.total_out = self.strm.total_out.wrapping_add(fresh.len() as c_ulong);
        self.state.total = self.state.total.wrapping_add(fresh.len() as u64);
        if self.state.wrap & CHECKED != 0 && !fresh.is_empty() {
            let update = if self.state.flags != 0 { crc32 } else { adler32 };
            self.state.check = update(self.state.check, fresh);
            self.strm.adler = self.state.check.into();
        }
        self.output.settle();
    }

    fn start_check(&mut self, value: u32) {
        self.state.check = value;
        self.strm.adler = value.into();
    }

    /// The program's description of the gzip header, if it wants one.
    fn header(&mut self) -> Option<&mut GzHeader> {
        // SAFETY: the caller of inflateGetHeader keeps it valid until the header is complete.
        unsafe { self.state.head.as_mut() }
    }

    /// The bits of a header's field are complete.
    fn end_field(&mut self, bytes: usize) {
        if self.state.flags & HEADER_CRC != 0 && self.state.wrap & CHECKED != 0 {
            self.check_header(bytes);
        }
        self.input.clear();
    }

    fn check_header(&mut self, bytes: usize) {
        self.state.check = crc32(self.state.check, &self.input.hold.to_le_bytes()[..bytes]);
    }

    /// Skips header bytes that are not read as bits.
    fn pass_header(&mut self, count: usize) {
        if self.state.flags & HEADER_CRC != 0 && self.state.wrap & CHECKED != 0 {
            self.state.check = crc32(self.state.check, &self.input.rest()[..count]);
        }
        self.input.advance(count);
    }

    /// The stream is no deflate stream from here on.
    pub(super) fn bad(&mut self, why: &'static core::ffi::CStr) -> Step {
        self.strm.msg = why.as_ptr();
        self.state.mode = Mode::Bad;
        Err(Exit::Leave(Z_DATA_ERROR))
    }
}
