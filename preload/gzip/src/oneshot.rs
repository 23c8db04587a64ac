//! Whole buffers in one call: `compress` and `uncompress`.

use core::ffi::{c_int, c_uint, c_ulong};

use hasten_deflate::abi::{
    Z_BUF_ERROR, Z_DATA_ERROR, Z_FINISH, Z_NEED_DICT, Z_NO_FLUSH, Z_OK, Z_STREAM_END, ZStream,
};

use crate::hooks::original;
use crate::{deflate, inflate, namesake};

type Compress = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong) -> c_int;
type Compress2 = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong, c_int) -> c_int;
type Uncompress2 = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, *mut c_ulong) -> c_int;

const DEFAULT_LEVEL: c_int = -1;
const STREAM_SIZE: c_int = size_of::<ZStream>() as c_int;

pub(crate) unsafe fn compress(
    original: Compress,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: c_ulong,
) -> c_int {
    if !namesake::are_zlibs() {
        // SAFETY: the program's call.
        return unsafe { original(dest, dest_len, source, source_len) };
    }
    // SAFETY: zlib defines it so.
    unsafe { compress2(original::compress2.get(), dest, dest_len, source, source_len, DEFAULT_LEVEL) }
}

pub(crate) unsafe fn compress2(
    original: Compress2,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: c_ulong,
    level: c_int,
) -> c_int {
    if !namesake::are_zlibs() {
        // SAFETY: the program's call.
        return unsafe { original(dest, dest_len, source, source_len, level) };
    }
    // SAFETY: the program's buffers are as long as it says.
    unsafe {
        let mut room = *dest_len;
        let mut rest = source_len;
        *dest_len = 0;
        let mut strm = ZStream::new();
        let version = c"1.2.13".as_ptr();
        let opened = deflate::init(original::deflateInit_.get(), &mut strm, level, version, STREAM_SIZE);
        if opened != Z_OK {
            return opened;
        }
        (strm.next_out, strm.next_in) = (dest, source);
        let result = loop {
            supply(&mut strm.avail_out, &mut room);
            supply(&mut strm.avail_in, &mut rest);
            let flush = if rest > 0 { Z_NO_FLUSH } else { Z_FINISH };
            let result = deflate::deflate(original::deflate.get(), &mut strm, flush);
            if result != Z_OK {
                break result;
            }
        };
        *dest_len = strm.total_out;
        deflate::end(original::deflateEnd.get(), &mut strm);
        if result == Z_STREAM_END { Z_OK } else { result }
    }
}

pub(crate) unsafe fn uncompress(
    original: Compress,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    mut source_len: c_ulong,
) -> c_int {
    if !namesake::are_zlibs() {
        // SAFETY: the program's call.
        return unsafe { original(dest, dest_len, source, source_len) };
    }
    // SAFETY: zlib defines it so.
    unsafe { uncompress2(original::uncompress2.get(), dest, dest_len, source, &mut source_len) }
}

pub(crate) unsafe fn uncompress2(
    original: Uncompress2,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: *mut c_ulong,
) -> c_int {
    if !namesake::are_zlibs() {
        // SAFETY: the program's call.
        return unsafe { original(dest, dest_len, source, source_len) };
    }
    // SAFETY: the program's buffers are as long as it says.
    unsafe {
        let mut rest = *source_len;
        // Room for a byte, to tell whether the stream is complete, if there is none for any.
        let mut probe = 0u8;
        let has_room = *dest_len != 0;
        let mut room = if has_room { core::mem::take(&mut *dest_len) } else { 1 };
        let mut strm = ZStream::new();
        let version = c"1.2.13".as_ptr();
        let opened = inflate::init(original::inflateInit_.get(), &mut strm, version, STREAM_SIZE);
        if opened != Z_OK {
            return opened;
        }
        strm.next_in = source;
        strm.next_out = if has_room { dest } else { &raw mut probe };
        let result = loop {
            supply(&mut strm.avail_out, &mut room);
            supply(&mut strm.avail_in, &mut rest);
            let result = inflate::inflate(original::inflate.get(), &mut strm, Z_NO_FLUSH);
            if result != Z_OK {
                break result;
            }
        };
        *source_len -= rest + c_ulong::from(strm.avail_in);
        if has_room {
            *dest_len = strm.total_out;
        } else if strm.total_out != 0 && result == Z_BUF_ERROR {
            room = 1;
        }
        inflate::end(original::inflateEnd.get(), &mut strm);
        match result {
            Z_STREAM_END => Z_OK,
            Z_NEED_DICT => Z_DATA_ERROR,
            // Room is left, so it is the input that ended too soon.
            Z_BUF_ERROR if room + c_ulong::from(strm.avail_out) != 0 => Z_DATA_ERROR,
            result => result,
        }
    }
}

/// Hands out as much of a buffer as a stream's field can say.
fn supply(available: &mut c_uint, rest: &mut c_ulong) {
    if *available == 0 {
        *available = c_uint::try_from(*rest).unwrap_or(c_uint::MAX);
        *rest -= c_ulong::from(*available);
    }
}
