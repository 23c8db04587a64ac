//! Whole buffers in one call: `compress` and `uncompress`.

use core::ffi::{c_int, c_uint, c_ulong};

use hasten_deflate::abi::{
    Z_BUF_ERROR, Z_DATA_ERROR, Z_FINISH, Z_NEED_DICT, Z_NO_FLUSH, Z_OK, Z_STREAM_END, ZStream,
};

use crate::hooks::original;
use crate::{deflate, inflate};

type Compress = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong) -> c_int;
type Compress2 = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong, c_int) -> c_int;
type Uncompress2 = unsafe extern "C" fn(*mut u8, *mut c_ulong, *const u8, *mut c_ulong) -> c_int;

const DEFAULT_LEVEL: c_int = -1;
const STREAM_SIZE: c_int = size_of::<ZStream>() as c_int;

/// # Safety
///
/// As for `compress` of zlib, with the conditions of [`compress2`].
pub(crate) unsafe fn compress(
    _: Compress,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: c_ulong,
) -> c_int {
    // SAFETY: zlib defines it so.
    unsafe { compress2(original::compress2.get(), dest, dest_len, source, source_len, DEFAULT_LEVEL) }
}

/// # Safety
///
/// As for `compress2` of zlib: `dest_len` is valid for reads and writes, `dest` for writes of `*dest_len` bytes, and
/// `source` for reads of `source_len` bytes. The buffers do not overlap.
pub(crate) unsafe fn compress2(
    _: Compress2,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: c_ulong,
    level: c_int,
) -> c_int {
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
        let result = deflate_all(&mut strm, &mut room, &mut rest);
        *dest_len = strm.total_out;
        deflate::end(original::deflateEnd.get(), &mut strm);
        if result == Z_STREAM_END { Z_OK } else { result }
    }
}

/// # Safety
///
/// As for `uncompress` of zlib: `dest_len` is valid for reads and writes, `dest` for writes of `*dest_len` bytes, and
/// `source` for reads of `source_len` bytes. The buffers do not overlap.
pub(crate) unsafe fn uncompress(
    _: Compress,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    mut source_len: c_ulong,
) -> c_int {
    // SAFETY: zlib defines it so.
    unsafe { uncompress2(original::uncompress2.get(), dest, dest_len, source, &mut source_len) }
}

/// # Safety
///
/// As for `uncompress2` of zlib, with the conditions of [`uncompress`]; `source_len` is valid for reads and writes, and
/// a different variable from `dest_len`.
pub(crate) unsafe fn uncompress2(
    _: Uncompress2,
    dest: *mut u8,
    dest_len: *mut c_ulong,
    source: *const u8,
    source_len: *mut c_ulong,
) -> c_int {
    // SAFETY: the program's buffers are as long as it says.
    unsafe {
        let mut rest = *source_len;
        // If there is no room at all, room for one byte, to tell whether the stream is complete.
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
        let result = inflate_all(&mut strm, &mut room, &mut rest);
        *source_len -= rest + c_ulong::from(strm.avail_in);
        if has_room {
            *dest_len = strm.total_out;
        } else if strm.total_out != 0 && result == Z_BUF_ERROR {
            room = 1;
        }
        inflate::end(original::inflateEnd.get(), &mut strm);
        verdict(result, room + c_ulong::from(strm.avail_out) != 0)
    }
}

/// Compresses until the stream ends or something is missing; returns the last result.
///
/// # Safety
///
/// The stream was opened for compression. Its buffers are valid for the lengths in it plus `room` and `rest` more
/// bytes, and do not overlap.
unsafe fn deflate_all(strm: &mut ZStream, room: &mut c_ulong, rest: &mut c_ulong) -> c_int {
    loop {
        supply(&mut strm.avail_out, room);
        supply(&mut strm.avail_in, rest);
        let flush = if *rest > 0 { Z_NO_FLUSH } else { Z_FINISH };
        // SAFETY: as the contract says.
        let result = unsafe { deflate::deflate(original::deflate.get(), strm, flush) };
        if result != Z_OK {
            return result;
        }
    }
}

/// Decompresses until the stream ends or something is missing; returns the last result.
///
/// # Safety
///
/// As [`deflate_all`], for a stream that was opened for decompression.
unsafe fn inflate_all(strm: &mut ZStream, room: &mut c_ulong, rest: &mut c_ulong) -> c_int {
    loop {
        supply(&mut strm.avail_out, room);
        supply(&mut strm.avail_in, rest);
        // SAFETY: as the contract says.
        let result = unsafe { inflate::inflate(original::inflate.get(), strm, Z_NO_FLUSH) };
        if result != Z_OK {
            return result;
        }
    }
}

/// The result of `uncompress` for the last result of `inflate`.
fn verdict(result: c_int, has_room: bool) -> c_int {
    match result {
        Z_STREAM_END => Z_OK,
        Z_NEED_DICT => Z_DATA_ERROR,
        // There is room left, so the input ended too soon.
        Z_BUF_ERROR if has_room => Z_DATA_ERROR,
        result => result,
    }
}

/// Passes as much of a buffer to a stream as its field can express.
fn supply(available: &mut c_uint, rest: &mut c_ulong) {
    if *available == 0 {
        *available = c_uint::try_from(*rest).unwrap_or(c_uint::MAX);
        *rest -= c_ulong::from(*available);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hasten_deflate::abi::Z_STREAM_ERROR;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The outcome of a call: result, lengths, output.
    type Done = (c_int, c_ulong, c_ulong, Vec<u8>);

    fn uncompress_with(
        function: impl Fn(*mut u8, *mut c_ulong, *const u8, *mut c_ulong) -> c_int,
        source: &[u8],
        room: usize,
    ) -> Done {
        let mut out = vec![0xa5; room + 64];
        let (mut len, mut source_len) = (room as c_ulong, source.len() as c_ulong);
        let result = function(out.as_mut_ptr(), &mut len, source.as_ptr(), &mut source_len);
        assert!(out[room..].iter().all(|byte| *byte == 0xa5), "written behind the room");
        out.truncate(len as usize);
        (result, len, source_len, out)
    }

    fn compress_with(
        function: impl Fn(*mut u8, *mut c_ulong, *const u8, c_ulong) -> c_int,
        source: &[u8],
        room: usize,
    ) -> (c_int, Vec<u8>) {
        let mut out = vec![0; room];
        let mut len = room as c_ulong;
        let result = function(out.as_mut_ptr(), &mut len, source.as_ptr(), source.len() as c_ulong);
        out.truncate(len as usize);
        (result, out)
    }

    fn ours2(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: *mut c_ulong) -> c_int {
        // SAFETY: buffers of the tests.
        unsafe { uncompress2(original::uncompress2.get(), dest, dest_len, source, source_len) }
    }

    fn theirs2(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: *mut c_ulong) -> c_int {
        // SAFETY: buffers of the tests.
        unsafe { original::uncompress2.get()(dest, dest_len, source, source_len) }
    }

    fn compressed_by_original(source: &[u8], level: c_int) -> Vec<u8> {
        let room = source.len() + source.len() / 8 + 64;
        // SAFETY: buffers of the tests.
        let call = |dest, len, from, from_len| unsafe {
            original::compress2.get()(dest, len, from, from_len, level)
        };
        let (result, out) = compress_with(call, source, room);
        assert_eq!(result, Z_OK);
        out
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        (vec(any::<u8>(), 0..150), 1..20usize).prop_map(|(bytes, times)| bytes.repeat(times))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn uncompress2_does_what_the_originals_does(
            input in text(),
            level in 0..10,
            room in 0..4000usize,
            exact in any::<bool>(),
            cut in prop_oneof![3 => Just(0usize), 1 => 1..200usize],
            flip in proptest::option::weighted(0.3, (any::<prop::sample::Index>(), 0..8u8)),
            tail in vec(any::<u8>(), 0..5),
        ) {
            let mut source = compressed_by_original(&input, level);
            if let Some((at, bit)) = flip {
                let at = at.index(source.len());
                source[at] ^= 1 << bit;
            }
            source.truncate(source.len().saturating_sub(cut));
            source.extend(tail);
            let room = if exact { input.len() } else { room };
            prop_assert_eq!(uncompress_with(ours2, &source, room), uncompress_with(theirs2, &source, room));
        }

        #[test]
        fn what_compress2_makes_is_what_it_was_made_of(input in text(), level in -1..10, short in 0..3000usize) {
            // SAFETY: buffers of the tests.
            let ours = |dest, len, from, from_len| unsafe {
                compress2(original::compress2.get(), dest, len, from, from_len, level)
            };
            // zlib's compressBound.
            let bound = input.len() + (input.len() >> 12) + (input.len() >> 14) + (input.len() >> 25) + 13;
            let (result, out) = compress_with(ours, &input, bound);
            prop_assert_eq!(result, Z_OK);
            let whole = uncompress_with(theirs2, &out, input.len() + 1);
            prop_assert_eq!((whole.0, whole.2 as usize, &whole.3), (Z_OK, out.len(), &input));

            let room = short.min(out.len());
            let (result, part) = compress_with(ours, &input, room);
            let fits = room == out.len();
            prop_assert_eq!(result, if fits { Z_OK } else { Z_BUF_ERROR });
            prop_assert!(part.len() <= room);
        }
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        // SAFETY: buffers of the tests.
        let ours = |dest, len, from, from_len| unsafe {
            compress2(original::compress2.get(), dest, len, from, from_len, 10)
        };
        assert_eq!(compress_with(ours, b"text", 100), (Z_STREAM_ERROR, vec![]));
    }
}
