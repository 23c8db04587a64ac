//! `crc32` and `adler32`, using the CPU's widest vectors.

use core::ffi::{c_uint, c_ulong};

use hasten_deflate::checksum;

type Short = unsafe extern "C" fn(c_ulong, *const u8, c_uint) -> c_ulong;
type Long = unsafe extern "C" fn(c_ulong, *const u8, usize) -> c_ulong;

/// The sums of an Adler-32 are below this.
const ADLER_BASE: u32 = 65521;

/// # Safety
///
/// As for `crc32` of zlib: `bytes` is null or valid for reads of `len` bytes.
pub(crate) unsafe fn crc32(_: Short, start: c_ulong, bytes: *const u8, len: c_uint) -> c_ulong {
    // SAFETY: the program's call.
    unsafe { crc32_of(start, bytes, len as usize) }
}

/// # Safety
///
/// As for `crc32_z` of zlib: `bytes` is null or valid for reads of `len` bytes.
pub(crate) unsafe fn crc32_z(_: Long, start: c_ulong, bytes: *const u8, len: usize) -> c_ulong {
    // SAFETY: the program's call.
    unsafe { crc32_of(start, bytes, len) }
}

/// # Safety
///
/// As for `adler32` of zlib: `bytes` is null or valid for reads of `len` bytes.
pub(crate) unsafe fn adler32(original: Short, start: c_ulong, bytes: *const u8, len: c_uint) -> c_ulong {
    // SAFETY: the program's call.
    unsafe { adler32_of(start, bytes, len as usize).unwrap_or_else(|| original(start, bytes, len)) }
}

/// # Safety
///
/// As for `adler32_z` of zlib: `bytes` is null or valid for reads of `len` bytes.
pub(crate) unsafe fn adler32_z(original: Long, start: c_ulong, bytes: *const u8, len: usize) -> c_ulong {
    // SAFETY: the program's call.
    unsafe { adler32_of(start, bytes, len).unwrap_or_else(|| original(start, bytes, len)) }
}

/// Without bytes, the result is the initial value.
///
/// # Safety
///
/// `bytes` is null or valid for reads of `len` bytes.
unsafe fn crc32_of(start: c_ulong, bytes: *const u8, len: usize) -> c_ulong {
    if bytes.is_null() {
        return 0;
    }
    // SAFETY: the caller's bytes, as the contract says.
    checksum::crc32(start as u32, unsafe { core::slice::from_raw_parts(bytes, len) }).into()
}

/// Without bytes, the result is the initial value. `None` if `start` is not a valid Adler-32, which is left to the
/// original.
///
/// # Safety
///
/// `bytes` is null or valid for reads of `len` bytes.
unsafe fn adler32_of(start: c_ulong, bytes: *const u8, len: usize) -> Option<c_ulong> {
    if bytes.is_null() {
        return Some(1);
    }
    let start = start as u32;
    if start & 0xffff >= ADLER_BASE || start >> 16 >= ADLER_BASE {
        return None;
    }
    // SAFETY: the caller's bytes, as the contract says.
    Some(checksum::adler32(start, unsafe { core::slice::from_raw_parts(bytes, len) }).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::original;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// All four functions, on a buffer that may be null.
    fn sums(start: c_ulong, bytes: *const u8, len: usize) -> [(c_ulong, c_ulong); 4] {
        let (crc, crc_long) = (original::crc32.get(), original::crc32_z.get());
        let (adler, adler_long) = (original::adler32.get(), original::adler32_z.get());
        let short = len as c_uint;
        // SAFETY: a buffer of the tests, of `len` bytes or null.
        unsafe {
            [
                (crc32(crc, start, bytes, short), crc(start, bytes, short)),
                (crc32_z(crc_long, start, bytes, len), crc_long(start, bytes, len)),
                (adler32(adler, start, bytes, short), adler(start, bytes, short)),
                (adler32_z(adler_long, start, bytes, len), adler_long(start, bytes, len)),
            ]
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn checksums_are_the_originals(
            start in prop_oneof![Just(0), Just(1), any::<u32>().prop_map(c_ulong::from), any::<c_ulong>()],
            bytes in vec(any::<u8>(), 0..6000),
        ) {
            for (ours, theirs) in sums(start, bytes.as_ptr(), bytes.len()) {
                prop_assert_eq!(ours, theirs);
            }
            for (ours, theirs) in sums(start, core::ptr::null(), bytes.len()) {
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
