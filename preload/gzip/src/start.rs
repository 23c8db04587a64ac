//! Start-up: with the process if it links zlib, on loading if zlib is loaded later, and otherwise never.

use core::ffi::CStr;
use std::sync::OnceLock;

use hasten_compress::{config, engines};
use hasten_deflate::engine::zlib::ZlibApi;
use hasten_hook::{Interposer, Library, Notifications, is_disabled};

use crate::hooks::{self, original};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

static INTERPOSER: Interposer = Interposer::new(
    &[hooks::HOOKS],
    &[Library::Z],
    is_fit,
    Notifications { before_load, before_system_call: |_, _| (), before_sandbox },
);

extern "C" fn load() {
    #[cfg(test)]
    assert!(Library::Z.load(), "libz.so.1 is needed to compare with");
    if is_disabled("gzip") || !config::get().engines {
        return;
    }
    hasten_hook::exec::init();
    hasten_telemetry::init("gzip");
    engines::register();
    INTERPOSER.start();
}

/// Missing in zlib 1.2.8, where they cannot be called.
const NEWER: [&CStr; 3] = [c"deflateGetDictionary", c"inflateValidate", c"inflateCodesUsed"];

/// Whether this zlib has everything that the hooks and the engines need.
fn is_fit() -> bool {
    let mut needed = hooks::HOOKS.iter().filter(|hook| hook.required && !NEWER.contains(&hook.name));
    needed.all(|hook| hook.is_found())
}

/// Nothing to do: open streams need no preparation for what is loaded next.
fn before_load() {}

/// The program restricts its own system calls, unaware of ours: streams opened from now on are the original's, and
/// those already open continue without any.
fn before_sandbox() {
    hasten_deflate::pool::seal();
    hasten_telemetry::seal();
}

/// Whether streams opened now are used only through the hooks.
pub(crate) fn is_sound() -> bool {
    cfg!(test) || (!INTERPOSER.is_sandboxed() && INTERPOSER.is_sound())
}

/// Lets the engines fall back on the program's own zlib.
pub(crate) fn make_original_known() {
    static KNOWN: OnceLock<()> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let api = ZlibApi {
            init2: original::deflateInit2_.get(),
            deflate: original::deflate.get(),
            reset: original::deflateReset.get(),
            params: original::deflateParams.get(),
            tune: original::deflateTune.get(),
            prime: original::deflatePrime.get(),
            pending: original::deflatePending.get(),
            set_dictionary: original::deflateSetDictionary.get(),
            end: original::deflateEnd.get(),
        };
        // SAFETY: zlib's own functions under their own names; a library that the program links stays loaded.
        unsafe { api.set_original() };
    });
}
