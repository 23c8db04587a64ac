//! Start-up: in a known build of Envoy, before its first instruction, and nowhere else.

use hasten_compress::{config, engines};
use hasten_deflate::engine::zlib::ZlibApi;
use hasten_envoy_builds::{Build, gzip};
use hasten_hook::is_disabled;

use crate::lock::{self, Refusal};
use crate::program::{self, Program};
use crate::{buffer, compressor, tls};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

extern "C" fn load() {
    // The name only saves other programs a look at their notes; what is replaced depends on proof.
    if cfg!(test) || is_disabled("envoy") || !program::name().starts_with(b"envoy") {
        return;
    }
    let Some(program) = Program::find() else { return };
    hasten_telemetry::init("envoy");
    if let Err(refusal) = start(&program) {
        hasten_telemetry::start();
        hasten_telemetry::page().set_note(&refusal.to_string());
    }
}

fn start(program: &Program) -> Result<(), Refusal> {
    let build = lock::open(program)?;
    // SAFETY: `open` has verified the build; constructors run before any other thread.
    unsafe {
        if !is_disabled("gzip") && config::get().engines {
            start_gzip(program, build)?;
        }
        if tls::is_wanted() {
            tls::start(program, build)?;
        }
    }
    Ok(())
}

/// # Safety
///
/// As [`tls::start`].
unsafe fn start_gzip(program: &Program, build: &'static Build) -> Result<(), Refusal> {
    engines::register();
    engines::ENGINES.serve_small_windows();
    // SAFETY: the functions of zlib-rs, which stay. It stands in for the zlib inside Envoy: zlib-ng, of which it is a port.
    unsafe { ZlibApi::ZLIB_RS.set_original() };
    buffer::prepare(&build.buffer);
    let entry = lock::entry(program, &build.gzip, gzip::CREATE);
    let create = compressor::create as compressor::Create as usize;
    // SAFETY: as the contract says; the prototype is that of the function.
    unsafe {
        compressor::prepare(program.word(entry).unwrap_or_default(), program.at(build.compressor));
        lock::replace(program, entry, create)?;
    }
    Ok(())
}
