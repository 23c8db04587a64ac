//! zlib's inflate streams, call by call as zlib 1.2.13 has them.
//!
//! A caller can tell the difference only by the clock: every result, every field of the stream,
//! every bit taken from the input or left there is zlib's, on damaged input too (`tests/inflate.rs`
//! compares). Other fast inflates are strict where zlib is lenient, lenient where it is strict, and
//! stop at other bits, hence this one.
//!
//! The stream's state is a machine with one mode for each item that the end of the input or of the
//! room may cut off: `header.rs` around the blocks, `block.rs` at their beginning, `codes.rs`
//! inside. Where both are plentiful, `fast.rs` does nearly all of the work.
//!
//! Its memory comes from the stream's allocator, as zlib's does: the state at the beginning, the
//! window once output must be remembered beyond a call.

mod block;
mod calls;
mod codes;
mod fast;
mod header;
mod io;
mod lifetime;
mod table;
mod window;

use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::addr_of;

use self::io::{Exit, Input, Output, Step};
use self::table::{DIST_SIZE, Entry, FIXED, LITLEN_SIZE};
use self::window::Window;
use crate::abi::{
    GzHeader, Z_BUF_ERROR, Z_DATA_ERROR, Z_FINISH, Z_MEM_ERROR, Z_OK, Z_STREAM_END, Z_STREAM_ERROR, ZStream,
};

pub use self::calls::{
    codes_used, get_dictionary, get_header, mark, prime, set_dictionary, sync, sync_point, undermine,
    validate,
};
#[doc(hidden)]
pub use self::fast::refuse_masks;
pub use self::lifetime::{STATE_SIZE, copy, end, init, reset, reset_keep, reset_to};

/// Bits of `State::wrap`.
const ZLIB: u32 = 1;
const GZIP: u32 = 2;
/// Checksums are computed and compared.
const CHECKED: u32 = 4;

/// Our states begin with the address of this, zlib's with that of their stream.
static MARK: u64 = u64::from_ne_bytes(*b"hasten i");

/// What comes next in the stream, in zlib's order, which is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Head,
    Flags,
    Time,
    Os,
    ExLen,
    Extra,
    Name,
    Comment,
    HCrc,
    DictId,
    Dict,
    /// Between two blocks: a call may be asked to stop here.
    Type,
    TypeDo,
    Stored,
    /// At the first byte of a stored block.
    CopyBegin,
    Copy,
    Table,
    PrecodeLens,
    CodeLens,
    /// At the first code of a block.
    LenBegin,
    Len,
    LenExtra,
    Dist,
    DistExtra,
    Match,
    Lit,
    Check,
    Length,
    Done,
    Bad,
    /// The window could not be allocated.
    Mem,
    /// Looking for a place to resume after damage.
    Sync,
}

/// Where the block's tables are.
#[derive(Clone, Copy, Debug)]
struct Tables {
    fixed: bool,
    litlen_root: u32,
    dist_root: u32,
}

/// What `inflateCodesUsed` reports: a number, or the sizes of zlib's tables for the codes whose
/// lengths are in `lens`.
#[derive(Clone, Copy, Debug)]
enum Used {
    Entries(usize),
    Codes { litlen: usize, dist: usize },
}

#[repr(C)]
struct State {
    mark: *const u64,
    /// The stream that owns this state. A bytewise copy of a stream does not match.
    strm: *mut ZStream,
    /// The size of the allocation that holds this.
    allocated: usize,
    mode: Mode,
    last: bool,
    have_dictionary: bool,
    wrap: u32,
    /// The flags of a gzip header, 0 with zlib's, -1 before any.
    flags: c_int,
    check: u32,
    total: u64,
    head: *mut GzHeader,
    window_bits: u32,
    window: Window,
    hold: u64,
    bits: u32,
    /// The rest of a stored block, a match, or a header field. Or a literal.
    length: usize,
    offset: usize,
    extra: u32,
    precode_count: usize,
    litlen_count: usize,
    dist_count: usize,
    /// How many lengths have been read, or how many bytes of a sync marker.
    have: usize,
    /// How many bits the last symbol has, or -1 outside of a block.
    back: c_int,
    /// The length of a match before any of it was copied.
    was: usize,
    used: Used,
    tables: Tables,
    precode_lens: [u8; 19],
    lens: [u8; 286 + 30],
    litlen: [Entry; LITLEN_SIZE],
    dist: [Entry; DIST_SIZE],
}

impl State {
    fn tables(&self) -> (&[Entry], &[Entry]) {
        if self.tables.fixed { (&FIXED.litlen, &FIXED.dist) } else { (&self.litlen, &self.dist) }
    }
}

/// Whether the state of this stream was made here.
///
/// # Safety
///
/// `strm` must be null or point to a stream whose state is null, or points to at least a word.
pub unsafe fn is_ours(strm: *const ZStream) -> bool {
    if strm.is_null() {
        return false;
    }
    // SAFETY: guaranteed by the caller.
    let state = unsafe { (*strm).state };
    // SAFETY: every state begins with a pointer: ours with `mark`, zlib's with `strm`.
    !state.is_null() && unsafe { *state.cast::<*const u64>() } == addr_of!(MARK)
}

/// A stream and its state, if they belong together and are ours.
///
/// # Safety
///
/// As [`is_ours`]; if it is ours, nobody else may use the stream during `'a`.
unsafe fn parts<'a>(strm: *mut ZStream) -> Option<(&'a mut ZStream, &'a mut State)> {
    // SAFETY: guaranteed by the caller.
    if !unsafe { is_ours(strm) } {
        return None;
    }
    // SAFETY: a state of ours is valid from `init` to `end`, and apart from the stream.
    let (strm, state) = unsafe { (&mut *strm, &mut *(*strm).state.cast::<State>()) };
    let whole = strm.zalloc.is_some() && strm.zfree.is_some() && core::ptr::eq(state.strm, strm);
    whole.then_some((strm, state))
}

/// One call of `inflate`.
struct Call<'a> {
    strm: &'a mut ZStream,
    state: &'a mut State,
    input: Input,
    output: Output,
    flush: c_int,
    /// Whether zlib would not count the bits of the current symbol.
    quiet: bool,
}

/// `inflate`.
///
/// # Safety
///
/// As zlib's: the stream is initialized, and its buffers are what it says.
pub unsafe fn inflate(strm: *mut ZStream, flush: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    let Some((strm, state)) = (unsafe { parts(strm) }) else { return Z_STREAM_ERROR };
    if strm.next_out.is_null() || (strm.next_in.is_null() && strm.avail_in != 0) {
        return Z_STREAM_ERROR;
    }
    if state.mode == Mode::Type {
        state.mode = Mode::TypeDo;
    }
    // SAFETY: the caller vouches for the stream's buffers.
    let (input, output) = unsafe {
        (
            Input::new(strm.next_in, strm.avail_in as usize, state.hold, state.bits),
            Output::new(strm.next_out, strm.avail_out as usize),
        )
    };
    Call { strm, state, input, output, flush, quiet: false }.run()
}

impl Call<'_> {
    fn run(mut self) -> c_int {
        let (have, left) = (self.input.have(), self.output.left());
        match self.steps() {
            Exit::Leave(result) => self.leave(result, have),
            Exit::Return(result) => {
                // A dictionary is needed: the bytes read stay read, but nothing is counted.
                if self.state.mode == Mode::Dict {
                    self.restore();
                }
                debug_assert_eq!(left, self.output.left());
                result
            }
        }
    }

    fn steps(&mut self) -> Exit {
        loop {
            if let Err(exit) = self.step() {
                return exit;
            }
        }
    }

    #[inline]
    fn step(&mut self) -> Step {
        match self.state.mode {
            Mode::Head => self.head(),
            Mode::Flags => self.flags(),
            Mode::Time => self.time(),
            Mode::Os => self.os(),
            Mode::ExLen => self.extra_len(),
            Mode::Extra => self.extra(),
            Mode::Name => self.name(),
            Mode::Comment => self.comment(),
            Mode::HCrc => self.header_crc(),
            Mode::DictId => self.dictionary_id(),
            Mode::Dict => self.dictionary(),
            Mode::Type => self.block(),
            Mode::TypeDo => self.block_kind(),
            Mode::Stored => self.stored(),
            Mode::CopyBegin | Mode::Copy => self.copy(),
            Mode::Table => self.table(),
            Mode::PrecodeLens => self.precode_lens(),
            Mode::CodeLens => self.code_lens(),
            Mode::LenBegin | Mode::Len => self.len(),
            Mode::LenExtra => self.len_extra(),
            Mode::Dist => self.dist(),
            Mode::DistExtra => self.dist_extra(),
            Mode::Match => self.copy_match(),
            Mode::Lit => self.literal(),
            Mode::Check => self.check(),
            Mode::Length => self.length(),
            Mode::Done => Err(Exit::Leave(Z_STREAM_END)),
            Mode::Bad => Err(Exit::Leave(Z_DATA_ERROR)),
            Mode::Mem => Err(Exit::Return(Z_MEM_ERROR)),
            Mode::Sync => Err(Exit::Return(Z_STREAM_ERROR)),
        }
    }

    /// Brings the stream's fields up to date, except the totals.
    fn restore(&mut self) {
        self.strm.next_out = self.output.next();
        self.strm.avail_out = self.output.left() as c_uint;
        self.strm.next_in = self.input.next();
        self.strm.avail_in = self.input.have() as c_uint;
        self.state.hold = self.input.hold;
        self.state.bits = self.input.bits;
    }

    fn leave(&mut self, result: c_int, had: usize) -> c_int {
        self.restore();
        if self.must_keep() && !keep(self.strm, self.state, self.output.fresh()) {
            self.state.mode = Mode::Mem;
            return Z_MEM_ERROR;
        }
        let (read, written) = (had - self.input.have(), self.output.written());
        self.strm.total_in = self.strm.total_in.wrapping_add(read as c_ulong);
        self.account();
        self.strm.data_type = self.data_type();
        let idle = (read == 0 && written == 0) || self.flush == Z_FINISH;
        if idle && result == Z_OK { Z_BUF_ERROR } else { result }
    }

    /// Whether a later call may need this call's output: not if the stream is at its end, and the
    /// caller intends to provide no more. Once there is a window, it is kept up to date.
    fn must_keep(&self) -> bool {
        let mode = self.state.mode;
        self.state.window.size != 0
            || (self.output.written() != 0
                && mode < Mode::Bad
                && (mode < Mode::Check || self.flush != Z_FINISH))
    }

    /// The unused bits, and the position in the stream.
    fn data_type(&self) -> c_int {
        let last = if self.state.last { 64 } else { 0 };
        let place = match self.state.mode {
            Mode::Type => 128,
            Mode::LenBegin | Mode::CopyBegin => 256,
            _ => 0,
        };
        self.state.bits as c_int + last + place
    }
}

/// Keeps output in the window. `false` if the window cannot be allocated.
fn keep(strm: &ZStream, state: &mut State, bytes: &[u8]) -> bool {
    let size = 1usize << state.window_bits;
    if state.window.base.is_null() {
        state.window.base = allocate(strm, size, 1).cast();
        if state.window.base.is_null() {
            return false;
        }
    }
    if state.window.size == 0 {
        state.window.clear();
        state.window.size = size;
    }
    state.window.keep(bytes);
    true
}

/// Memory from the stream's allocator, or null.
fn allocate(strm: &ZStream, items: usize, size: usize) -> *mut c_void {
    let Some(zalloc) = strm.zalloc else { return core::ptr::null_mut() };
    // SAFETY: the program's own function, called as zlib calls it.
    unsafe { zalloc(strm.opaque, items as c_uint, size as c_uint) }
}

fn free(strm: &ZStream, address: *mut c_void) {
    if let Some(zfree) = strm.zfree {
        // SAFETY: the program's own function, with memory that its `zalloc` gave.
        unsafe { zfree(strm.opaque, address) };
    }
}
