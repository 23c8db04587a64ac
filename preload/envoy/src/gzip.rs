//! Bodies: the compressors and the decompressors of Envoy's gzip filters.

mod buffer;
mod compressor;
mod decompressor;
mod memory;
mod output;
mod steady;

use hasten_compress::{config, engines};
use hasten_deflate::engine::zlib::ZlibApi;
use hasten_envoy_builds::{Gzip, compressors, decompressors};

use self::compressor::Create as CreateCompressor;
use self::decompressor::Create as CreateDecompressor;
use crate::lock::{self, Refusal};
use crate::program::Program;

/// Replaces the functions that make them.
///
/// # Safety
///
/// As [`crate::tls::start`].
pub(crate) unsafe fn start(program: &Program, gzip: &'static Gzip) -> Result<(), Refusal> {
    buffer::prepare(&gzip.buffer);
    // SAFETY: as the contract says.
    unsafe {
        start_decompressors(program, gzip)?;
        if config::get().engines {
            start_compressors(program, gzip)?;
        }
    }
    Ok(())
}

/// # Safety
///
/// As [`start`].
unsafe fn start_compressors(program: &Program, gzip: &Gzip) -> Result<(), Refusal> {
    engines::register();
    engines::ENGINES.serve_small_windows();
    // SAFETY: the functions of zlib-rs, which stay. It stands in for the zlib inside Envoy: zlib-ng, of which it is a port.
    unsafe { ZlibApi::ZLIB_RS.set_original() };
    let entry = lock::entry(program, &gzip.compressors, compressors::CREATE);
    let create = compressor::create as CreateCompressor as usize;
    // SAFETY: as the contract says; the prototype is that of the function.
    unsafe {
        compressor::prepare(program.word(entry).unwrap_or_default(), program.at(gzip.compressor));
        lock::replace(program, entry, create)?;
    }
    Ok(())
}

/// # Safety
///
/// As [`start`].
unsafe fn start_decompressors(program: &Program, gzip: &Gzip) -> Result<(), Refusal> {
    let entry = lock::entry(program, &gzip.decompressors, decompressors::CREATE);
    let create = decompressor::create as CreateDecompressor as usize;
    // SAFETY: as the contract says; the prototype is that of the function.
    unsafe {
        decompressor::prepare(program, gzip, program.word(entry).unwrap_or_default());
        lock::replace(program, entry, create)?;
    }
    Ok(())
}
