//! Every function this library stands in for, and why.
//!
//! Each becomes an exported symbol that calls the named function of this
//! crate with the original as first argument. `hasten check` and
//! docs/hooks.md show this table; what it misses stays the original's.

use core::ffi::{c_char, c_int, c_uint, c_ulong};

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_hook::{exec, hooks};

use crate::config;
use crate::deflate;

hooks! {
    gate config::is_enabled;

    /// Opens a stream: with an engine if one suits, with the original if not.
    required Z fn deflateInit_(strm: *mut ZStream, level: c_int, version: *const c_char, size: c_int) -> c_int = deflate::init;
    /// The same, with all parameters.
    required Z fn deflateInit2_(strm: *mut ZStream, level: c_int, method: c_int, window: c_int, mem_level: c_int, strategy: c_int, version: *const c_char, size: c_int) -> c_int = deflate::init2;
    /// Compresses.
    required Z fn deflate(strm: *mut ZStream, flush: c_int) -> c_int = deflate::deflate;
    /// Gives the stream's memory back.
    required Z fn deflateEnd(strm: *mut ZStream) -> c_int = deflate::end;
    /// Begins another stream in the same memory.
    required Z fn deflateReset(strm: *mut ZStream) -> c_int = deflate::reset;
    /// The same, with the window kept.
    required Z fn deflateResetKeep(strm: *mut ZStream) -> c_int = deflate::reset_keep;
    /// Changes level and strategy in mid-stream.
    required Z fn deflateParams(strm: *mut ZStream, level: c_int, strategy: c_int) -> c_int = deflate::params;
    /// Sets what zlib's matcher looks for: such a stream is compressed by zlib-rs, which has the same matcher.
    required Z fn deflateTune(strm: *mut ZStream, good: c_int, lazy: c_int, nice: c_int, chain: c_int) -> c_int = deflate::tune;
    /// The largest output, which no engine exceeds.
    required Z fn deflateBound(strm: *mut ZStream, len: c_ulong) -> c_ulong = deflate::bound;
    /// Output that had no room yet.
    required Z fn deflatePending(strm: *mut ZStream, pending: *mut c_uint, bits: *mut c_int) -> c_int = deflate::pending;
    /// Inserts bits into the output.
    required Z fn deflatePrime(strm: *mut ZStream, bits: c_int, value: c_int) -> c_int = deflate::prime;
    /// Sets what matches may refer to before the first byte.
    required Z fn deflateSetDictionary(strm: *mut ZStream, dictionary: *const u8, len: c_uint) -> c_int = deflate::set_dictionary;
    /// Shows what matches may refer to.
    required Z fn deflateGetDictionary(strm: *mut ZStream, dictionary: *mut u8, len: *mut c_uint) -> c_int = deflate::get_dictionary;
    /// Supplies the gzip header.
    required Z fn deflateSetHeader(strm: *mut ZStream, header: *mut GzHeader) -> c_int = deflate::set_header;
    /// Duplicates a stream.
    required Z fn deflateCopy(dest: *mut ZStream, source: *mut ZStream) -> c_int = deflate::copy;

    /// Keeps the library loaded in a program that replaces its own executable.
    optional C fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}
