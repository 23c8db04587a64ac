//! Every function this library hooks, and why.
//!
//! Each is put into the slots through which the objects of the process call the one libz.so.1 that was found, and calls
//! the named function of this crate with the original as first argument. `hasten check` and docs/hooks.md show this
//! table; functions not listed stay the original's.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong};

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_hook::{exec, slots};

use crate::{checksum, deflate, inflate, oneshot};

slots! {
    table HOOKS;

    /// Opens a stream: with an engine if one suits, with the original if not.
    required Z by Everyone fn deflateInit_(strm: *mut ZStream, level: c_int, version: *const c_char, size: c_int) -> c_int = deflate::init;
    /// The same, with all parameters.
    required Z by Everyone fn deflateInit2_(strm: *mut ZStream, level: c_int, method: c_int, window: c_int, mem_level: c_int, strategy: c_int, version: *const c_char, size: c_int) -> c_int = deflate::init2;
    /// Compresses.
    required Z by Everyone fn deflate(strm: *mut ZStream, flush: c_int) -> c_int = deflate::deflate;
    /// Gives the stream's memory back.
    required Z by Everyone fn deflateEnd(strm: *mut ZStream) -> c_int = deflate::end;
    /// Begins another stream in the same memory.
    required Z by Everyone fn deflateReset(strm: *mut ZStream) -> c_int = deflate::reset;
    /// The same, with the window kept.
    required Z by Everyone fn deflateResetKeep(strm: *mut ZStream) -> c_int = deflate::reset_keep;
    /// Changes level and strategy in mid-stream.
    required Z by Everyone fn deflateParams(strm: *mut ZStream, level: c_int, strategy: c_int) -> c_int = deflate::params;
    /// Sets what zlib's matcher looks for: such a stream is compressed by zlib-rs, which has the same matcher.
    required Z by Everyone fn deflateTune(strm: *mut ZStream, good: c_int, lazy: c_int, nice: c_int, chain: c_int) -> c_int = deflate::tune;
    /// The largest output, which no engine exceeds.
    required Z by Everyone fn deflateBound(strm: *mut ZStream, len: c_ulong) -> c_ulong = deflate::bound;
    /// Output that had no room yet.
    required Z by Everyone fn deflatePending(strm: *mut ZStream, pending: *mut c_uint, bits: *mut c_int) -> c_int = deflate::pending;
    /// Inserts bits into the output.
    required Z by Everyone fn deflatePrime(strm: *mut ZStream, bits: c_int, value: c_int) -> c_int = deflate::prime;
    /// Sets what matches may refer to before the first byte.
    required Z by Everyone fn deflateSetDictionary(strm: *mut ZStream, dictionary: *const u8, len: c_uint) -> c_int = deflate::set_dictionary;
    /// Shows what matches may refer to.
    required Z by Everyone fn deflateGetDictionary(strm: *mut ZStream, dictionary: *mut u8, len: *mut c_uint) -> c_int = deflate::get_dictionary;
    /// Supplies the gzip header.
    required Z by Everyone fn deflateSetHeader(strm: *mut ZStream, header: *mut GzHeader) -> c_int = deflate::set_header;
    /// Duplicates a stream.
    required Z by Everyone fn deflateCopy(dest: *mut ZStream, source: *mut ZStream) -> c_int = deflate::copy;

    /// Opens a stream to decompress.
    required Z by Everyone fn inflateInit_(strm: *mut ZStream, version: *const c_char, size: c_int) -> c_int = inflate::init;
    /// The same, with window and wrapper.
    required Z by Everyone fn inflateInit2_(strm: *mut ZStream, window_bits: c_int, version: *const c_char, size: c_int) -> c_int = inflate::init2;
    /// Decompresses.
    required Z by Everyone fn inflate(strm: *mut ZStream, flush: c_int) -> c_int = inflate::inflate;
    /// Gives the stream's memory back.
    required Z by Everyone fn inflateEnd(strm: *mut ZStream) -> c_int = inflate::end;
    /// Begins another stream in the same memory.
    required Z by Everyone fn inflateReset(strm: *mut ZStream) -> c_int = inflate::reset;
    /// The same, with another window and wrapper.
    required Z by Everyone fn inflateReset2(strm: *mut ZStream, window_bits: c_int) -> c_int = inflate::reset2;
    /// Begins another stream that may refer to the last one.
    required Z by Everyone fn inflateResetKeep(strm: *mut ZStream) -> c_int = inflate::reset_keep;
    /// Sets what matches may refer to before the first byte.
    required Z by Everyone fn inflateSetDictionary(strm: *mut ZStream, dictionary: *const u8, len: c_uint) -> c_int = inflate::set_dictionary;
    /// Shows what matches may refer to.
    required Z by Everyone fn inflateGetDictionary(strm: *mut ZStream, dictionary: *mut u8, len: *mut c_uint) -> c_int = inflate::get_dictionary;
    /// Asks for the gzip header.
    required Z by Everyone fn inflateGetHeader(strm: *mut ZStream, head: *mut GzHeader) -> c_int = inflate::get_header;
    /// Looks for a place to go on behind damage.
    required Z by Everyone fn inflateSync(strm: *mut ZStream) -> c_int = inflate::sync;
    /// Whether the stream stands in an empty stored block.
    required Z by Everyone fn inflateSyncPoint(strm: *mut ZStream) -> c_int = inflate::sync_point;
    /// Duplicates a stream.
    required Z by Everyone fn inflateCopy(dest: *mut ZStream, source: *mut ZStream) -> c_int = inflate::copy;
    /// Inserts bits before the input.
    required Z by Everyone fn inflatePrime(strm: *mut ZStream, bits: c_int, value: c_int) -> c_int = inflate::prime;
    /// Where in the stream random access may begin.
    required Z by Everyone fn inflateMark(strm: *mut ZStream) -> c_long = inflate::mark;
    /// Refuses, as zlib does, to allow distances too far back.
    required Z by Everyone fn inflateUndermine(strm: *mut ZStream, subvert: c_int) -> c_int = inflate::undermine;
    /// Whether checksums are compared.
    required Z by Everyone fn inflateValidate(strm: *mut ZStream, check: c_int) -> c_int = inflate::validate;
    /// How large zlib's tables for the block would be.
    required Z by Everyone fn inflateCodesUsed(strm: *mut ZStream) -> c_ulong = inflate::codes_used;

    /// Compresses a buffer.
    optional Z by Everyone fn compress(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: c_ulong) -> c_int = oneshot::compress;
    /// Compresses a buffer at a level.
    optional Z by Everyone fn compress2(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: c_ulong, level: c_int) -> c_int = oneshot::compress2;
    /// Decompresses a buffer.
    optional Z by Everyone fn uncompress(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: c_ulong) -> c_int = oneshot::uncompress;
    /// Decompresses a buffer and says how much of it there was.
    optional Z by Everyone fn uncompress2(dest: *mut u8, dest_len: *mut c_ulong, source: *const u8, source_len: *mut c_ulong) -> c_int = oneshot::uncompress2;

    /// The checksum of gzip, by wide vectors.
    optional Z by Everyone fn crc32(start: c_ulong, bytes: *const u8, len: c_uint) -> c_ulong = checksum::crc32;
    /// The same, for long buffers.
    optional Z by Everyone fn crc32_z(start: c_ulong, bytes: *const u8, len: usize) -> c_ulong = checksum::crc32_z;
    /// The checksum of zlib, by wide vectors.
    optional Z by Everyone fn adler32(start: c_ulong, bytes: *const u8, len: c_uint) -> c_ulong = checksum::adler32;
    /// The same, for long buffers.
    optional Z by Everyone fn adler32_z(start: c_ulong, bytes: *const u8, len: usize) -> c_ulong = checksum::adler32_z;

    /// Keeps the library loaded in a program that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}
