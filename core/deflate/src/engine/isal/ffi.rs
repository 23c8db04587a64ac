//! ISA-L's compressor as `igzip_lib.h` of the pinned version declares it; `layout.c` checks the layout when the library
//! is built.

use std::ffi::c_int;
use std::ptr;

const HISTORY: usize = 32 * 1024;
const LOOK_AHEAD: usize = 288;
const LEVEL_0_HASHES: usize = 8 * 1024;

pub(super) const COMP_OK: c_int = 0;

pub(super) const NO_FLUSH: u16 = 0;
pub(super) const SYNC_FLUSH: u16 = 1;

/// `ZSTATE_NEW_HDR`: between two blocks.
pub(super) const STATE_NEW_BLOCK: u32 = 0;
/// `ZSTATE_END`: everything is written, padding included.
pub(super) const STATE_END: u32 = 11;

/// `struct isal_zstream`.
#[repr(C)]
pub(super) struct Stream {
    pub(super) next_in: *const u8,
    pub(super) avail_in: u32,
    pub(super) total_in: u32,
    pub(super) next_out: *mut u8,
    pub(super) avail_out: u32,
    pub(super) total_out: u32,
    hufftables: *const u8,
    pub(super) level: u32,
    pub(super) level_buf_size: u32,
    pub(super) level_buf: *mut u8,
    pub(super) end_of_stream: u16,
    pub(super) flush: u16,
    gzip_flag: u16,
    pub(super) hist_bits: u16,
    pub(super) state: State,
}

/// `struct isal_zstate`.
#[repr(C)]
pub(super) struct State {
    total_in_start: u32,
    block_next: u32,
    block_end: u32,
    dist_mask: u32,
    hash_mask: u32,
    pub(super) state: u32,
    pub(super) bits: BitBuffer,
    crc: u32,
    has_wrap_hdr: u8,
    has_eob_hdr: u8,
    has_eob: u8,
    has_hist: u8,
    has_level_buf_init: u16,
    count: u32,
    tmp_out_buff: [u8; 16],
    tmp_out_start: u32,
    tmp_out_end: u32,
    b_bytes_valid: u32,
    b_bytes_processed: u32,
    buffer: [u8; 2 * HISTORY + LOOK_AHEAD],
    head: [u16; LEVEL_0_HASHES],
}

/// `struct BitBuf2`.
#[repr(C)]
pub(super) struct BitBuffer {
    pub(super) bits: u64,
    pub(super) count: u32,
    out: *mut u8,
    end: *mut u8,
    start: *mut u8,
}

impl Stream {
    /// Clears the buffer pointers that a call was given.
    pub(super) fn forget_buffers(&mut self) {
        self.next_in = ptr::null();
        self.avail_in = 0;
        self.next_out = ptr::null_mut();
        self.avail_out = 0;
    }
}

unsafe extern "C" {
    pub(super) fn isal_deflate_init(stream: *mut Stream);
    pub(super) fn isal_deflate_set_dict(stream: *mut Stream, dictionary: *const u8, length: u32) -> c_int;
    pub(super) fn isal_deflate(stream: *mut Stream) -> c_int;
}
