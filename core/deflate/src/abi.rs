//! zlib's C interface, as zlib.h of 1.2.13 has it.

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

pub const Z_NO_FLUSH: c_int = 0;
pub const Z_PARTIAL_FLUSH: c_int = 1;
pub const Z_SYNC_FLUSH: c_int = 2;
pub const Z_FULL_FLUSH: c_int = 3;
pub const Z_FINISH: c_int = 4;
pub const Z_BLOCK: c_int = 5;
pub const Z_TREES: c_int = 6;

pub const Z_OK: c_int = 0;
pub const Z_STREAM_END: c_int = 1;
pub const Z_NEED_DICT: c_int = 2;
pub const Z_ERRNO: c_int = -1;
pub const Z_STREAM_ERROR: c_int = -2;
pub const Z_DATA_ERROR: c_int = -3;
pub const Z_MEM_ERROR: c_int = -4;
pub const Z_BUF_ERROR: c_int = -5;
pub const Z_VERSION_ERROR: c_int = -6;

pub const Z_BINARY: c_int = 0;
pub const Z_TEXT: c_int = 1;
pub const Z_UNKNOWN: c_int = 2;

pub const Z_DEFLATED: c_int = 8;

pub type Alloc = unsafe extern "C" fn(opaque: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void;
pub type Free = unsafe extern "C" fn(opaque: *mut c_void, address: *mut c_void);

/// `z_stream`.
#[derive(Debug)]
#[repr(C)]
pub struct ZStream {
    pub next_in: *const u8,
    pub avail_in: c_uint,
    pub total_in: c_ulong,
    pub next_out: *mut u8,
    pub avail_out: c_uint,
    pub total_out: c_ulong,
    pub msg: *const c_char,
    pub state: *mut c_void,
    pub zalloc: Option<Alloc>,
    pub zfree: Option<Free>,
    pub opaque: *mut c_void,
    pub data_type: c_int,
    pub adler: c_ulong,
    pub reserved: c_ulong,
}

/// `gz_header`.
#[derive(Debug)]
#[repr(C)]
pub struct GzHeader {
    pub text: c_int,
    pub time: c_ulong,
    pub xflags: c_int,
    pub os: c_int,
    pub extra: *mut u8,
    pub extra_len: c_uint,
    pub extra_max: c_uint,
    pub name: *mut u8,
    pub name_max: c_uint,
    pub comment: *mut u8,
    pub comm_max: c_uint,
    pub hcrc: c_int,
    pub done: c_int,
}

const _: () = {
    assert!(size_of::<ZStream>() == 112);
    assert!(size_of::<GzHeader>() == 80);
};

impl ZStream {
    /// A stream before its initialization.
    pub const fn new() -> Self {
        Self {
            next_in: core::ptr::null(),
            avail_in: 0,
            total_in: 0,
            next_out: core::ptr::null_mut(),
            avail_out: 0,
            total_out: 0,
            msg: core::ptr::null(),
            state: core::ptr::null_mut(),
            zalloc: None,
            zfree: None,
            opaque: core::ptr::null_mut(),
            data_type: Z_UNKNOWN,
            adler: 0,
            reserved: 0,
        }
    }
}

impl Default for ZStream {
    fn default() -> Self {
        Self::new()
    }
}
