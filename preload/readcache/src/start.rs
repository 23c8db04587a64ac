//! Start-up: with the process, if it has a cache at all.

use hasten_hook::{Interposer, Library, Notifications, is_disabled};

use crate::{config, hooks};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

static INTERPOSER: Interposer = Interposer::new(
    &[hooks::HOOKS],
    &[Library::C],
    is_fit,
    Notifications {
        before_load: || (),
        before_system_call: |_, _| (),
        before_sandbox: hasten_telemetry::seal,
    },
);

extern "C" fn load() {
    if cfg!(test) || is_disabled("readcache") || config::get().is_none() {
        return;
    }
    hasten_hook::exec::init();
    hasten_telemetry::init("readcache");
    INTERPOSER.start();
}

fn is_fit() -> bool {
    hooks::HOOKS.iter().filter(|hook| hook.required).all(|hook| hook.is_found())
}

/// Whether the program has restricted its own system calls, unaware of ours: every read is the original's from then on.
pub(crate) fn is_sandboxed() -> bool {
    INTERPOSER.is_sandboxed()
}
