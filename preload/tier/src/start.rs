//! Start-up: with the process, if its allocator is jemalloc and two kinds of memory are asked for.

use hasten_hook::{Interposer, Library, Notifications, is_disabled};

use crate::{config, far, hooks, jemalloc, limits, share, thread};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

static INTERPOSER: Interposer = Interposer::new(
    &[hooks::HOOKS, hooks::OPERATORS],
    &[Library::Jemalloc, Library::C],
    is_fit,
    Notifications {
        before_load: || (),
        before_system_call: limits::before_system_call,
        before_sandbox: hasten_telemetry::seal,
    },
);

extern "C" fn load() {
    if cfg!(test) || is_disabled("tier") || config::read().is_none() {
        return;
    }
    hasten_hook::exec::init();
    hasten_telemetry::init("tier");
    INTERPOSER.start();
}

/// Whether the process' allocator is this jemalloc, and can have far memory.
fn is_fit() -> bool {
    let Some(config) = config::read() else { return false };
    limits::start();
    let has_all = hooks::HOOKS.iter().filter(|hook| hook.required).all(|hook| hook.is_found());
    has_all
        && jemalloc::all_found()
        && is_everyones()
        && thread::start()
        && far::open(config.far)
        && share::start(config.target)
}

/// Whether who asks the process for memory gets it from there. If its allocator is another one, a jemalloc that is
/// loaded, too, is a part of the program with reasons of its own.
fn is_everyones() -> bool {
    hooks::HOOKS.iter().filter(|hook| hook.required && hook.library == Library::Jemalloc).all(|hook| {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, hook.name.as_ptr()) };
        core::ptr::eq(found, hook.original.load(core::sync::atomic::Ordering::Relaxed))
    })
}

/// Whether the program has restricted its own system calls, unaware of ours: nothing more becomes far from then on.
pub(crate) fn is_sandboxed() -> bool {
    INTERPOSER.is_sandboxed()
}
