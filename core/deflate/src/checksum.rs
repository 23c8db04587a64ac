//! The checksums of gzip and zlib, at the speed of the CPU's widest vectors.

use libdeflate_sys as ffi;

/// Continues a CRC-32 from `start`; the CRC of nothing is 0.
pub fn crc32(start: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the buffer is a slice.
    unsafe { ffi::libdeflate_crc32(start, address(bytes), bytes.len()) }
}

/// Continues an Adler-32 from `start`; that of nothing is 1.
pub fn adler32(start: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the buffer is a slice.
    unsafe { ffi::libdeflate_adler32(start, address(bytes), bytes.len()) }
}

fn address(bytes: &[u8]) -> *const core::ffi::c_void {
    bytes.as_ptr().cast()
}
