//! Start-up: in a known build of Envoy, before its first instruction, and nowhere else.

use hasten_hook::is_disabled;

use crate::lock::{self, Refusal};
use crate::program::{self, Program};
use crate::{gzip, tls};

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
        if !is_disabled("gzip") {
            gzip::start(program, &build.gzip)?;
        }
        if tls::is_wanted() {
            tls::start(program, build)?;
        }
    }
    Ok(())
}
