//! C's buffers as slices.

use core::ffi::{CStr, c_uint};
use core::slice;

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_deflate::header::GzipHeader;

/// Advances the starts of the buffers.
pub(crate) fn advance(strm: &mut ZStream, consumed: c_uint, produced: c_uint) {
    strm.next_in = strm.next_in.wrapping_add(consumed as usize);
    strm.avail_in -= consumed;
    strm.total_in = strm.total_in.wrapping_add(consumed.into());
    strm.next_out = strm.next_out.wrapping_add(produced as usize);
    strm.avail_out -= produced;
    strm.total_out = strm.total_out.wrapping_add(produced.into());
}

pub(super) fn has_buffers(strm: &ZStream) -> bool {
    !strm.next_out.is_null() && (strm.avail_in == 0 || !strm.next_in.is_null())
}

/// # Safety
///
/// `next` is valid for `len` bytes.
pub(crate) unsafe fn input<'a>(next: *const u8, len: c_uint) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if len == 0 { &[] } else { unsafe { slice::from_raw_parts(next, len as usize) } }
}

/// # Safety
///
/// `next` is valid for `len` bytes.
pub(crate) unsafe fn output<'a>(next: *mut u8, len: c_uint) -> &'a mut [u8] {
    // SAFETY: the caller's promise. The bytes may be uninitialised; they are not read before they are written.
    if len == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(next, len as usize) } }
}

/// The header that the caller filled in.
///
/// # Safety
///
/// Its texts are C strings, and `extra` is as long as it says.
pub(super) unsafe fn gzip_header(header: &GzHeader) -> GzipHeader<'_> {
    // SAFETY: the caller's promise.
    let text =
        |address: *mut u8| (!address.is_null()).then(|| unsafe { CStr::from_ptr(address.cast()) }.to_bytes());
    // The format has 16 bits for the length, and zlib uses the low ones.
    let extra_len = header.extra_len & 0xffff;
    GzipHeader {
        text: header.text != 0,
        time: header.time as u32,
        os: header.os as u8,
        // SAFETY: as above.
        extra: (!header.extra.is_null()).then(|| unsafe { input(header.extra, extra_len) }),
        name: text(header.name),
        comment: text(header.comment),
        check: header.hcrc != 0,
    }
}
