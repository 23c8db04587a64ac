//! The interface of `part.c`.

use std::ffi::c_int;

/// Opaque: tables for one level.
#[repr(C)]
pub(super) struct Compressor {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn hasten_libdeflate_new(level: c_int) -> *mut Compressor;
    pub(super) fn hasten_libdeflate_free(compressor: *mut Compressor);
    pub(super) fn hasten_libdeflate_compress(
        compressor: *mut Compressor,
        input: *const u8,
        history: usize,
        length: usize,
        last: bool,
        out: *mut u8,
        room: usize,
        value: *mut u8,
        count: *mut u8,
    ) -> usize;
}
