//! Start-up: with the process if it links OpenSSL, on loading if OpenSSL is loaded later, and otherwise never.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use hasten_batch::device;
use hasten_hook::{Interposer, Library, Notifications, exec};
use hasten_telemetry::{Doubt, EngineClass, Reason, slot};

use crate::event_loop::{blocking, fds, locks};
use crate::handshake::{slice, suspension};
use crate::openssl::{exchange, keys, providers, random, shortcuts};
use crate::runtime::Runtime;
use crate::{config, forks, handshake, hooks, openssl};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

static INTERPOSER: Interposer = Interposer::new(
    &[hooks::HOOKS, blocking::BLOCKING, blocking::LOOKING, blocking::ONCE, blocking::TOUCHING],
    &[Library::Ssl, Library::Crypto],
    is_fit,
    Notifications { before_load, before_system_call: blocking::before_system_call, before_sandbox },
);

static GENERATION: AtomicU32 = AtomicU32::new(1);

extern "C" fn load() {
    if !config::init() {
        return;
    }
    fds::note_process();
    exec::init();
    // Now, because nginx's environment is empty once it has read its configuration.
    device::init();
    hasten_telemetry::init("tls");
    INTERPOSER.start();
}

/// Identifies this process among those that forked from each other.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// A library that is loaded next may reach suspended handshakes in ways that are not known yet.
fn before_load() {
    blocking::before_blocking();
}

/// The program restricts its own system calls, unaware of ours: from now on none are made, and handshakes are left to
/// OpenSSL.
fn before_sandbox() {
    blocking::before_blocking();
    suspension::end(Doubt::Sandbox);
    STATE.store(UNFIT, Relaxed);
    fds::be_silent();
    hasten_telemetry::seal();
}

extern "C" fn before_fork() {
    blocking::before_blocking();
    forks::hold();
}

extern "C" fn in_parent() {
    forks::release();
}

/// The pools wipe themselves in a child (MADV_WIPEONFORK). Handshakes of other threads do not concern it.
extern "C" fn in_child() {
    forks::release();
    fds::note_process();
    fds::forget_other_threads();
    GENERATION.fetch_add(1, Relaxed);
    if let Some(runtime) = Runtime::existing() {
        runtime.forget_all();
    }
}

/// Whether handshakes of this OpenSSL can be driven. Checking does not initialise any part of it.
fn is_fit() -> bool {
    let found = hooks::HOOKS.iter().filter(|hook| hook.required).all(|hook| hook.is_found());
    if !(found && openssl::all_found() && openssl::release::detect()) {
        return false;
    }
    locks::init();
    slice::init();
    suspension::init();
    // SAFETY: the handlers only touch this thread's handshakes, locks, atomics and counter slot.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    true
}

/// Whether a handshake suspended now is reached only through the hooks, and its thread blocks only in functions that
/// are seen.
pub(crate) fn is_sound() -> bool {
    INTERPOSER.is_sound() && INTERPOSER.sees_waits()
}

const UNKNOWN: u8 = 0;
const READY: u8 = 1;
const UNFIT: u8 = 2;

/// Whether handshakes can be driven in this process.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The handshake of a process that the trial of the shortcuts comes before, unless it is a server that is known to make many. A
/// trial costs as much as some fifteen handshakes; programs that end before, as the children of a server that forks for each
/// connection, are spared it.
const FIRST_TRIAL: u32 = 16;

/// Whether the first handshake was prepared for.
#[inline]
pub(crate) fn was_prepared() -> bool {
    STATE.load(Relaxed) != UNKNOWN
}

/// The number of the handshake that the trial comes before.
pub(crate) fn first_trial() -> u32 {
    let is_server = config::get().eager || suspension::is_proven();
    config::get().trial.unwrap_or(if is_server { 1 } else { FIRST_TRIAL })
}

/// Prepares for the first handshake, after the program has initialised OpenSSL to its liking.
#[inline]
pub(crate) fn is_ready() -> bool {
    match STATE.load(Relaxed) {
        UNKNOWN => prepare(),
        state => state == READY,
    }
}

#[cold]
fn prepare() -> bool {
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        hasten_telemetry::start();
        let engine = &config::get().engine;
        let page = hasten_telemetry::page();
        if engine.lane_engine.is_some() {
            page.register(hasten_batch::ENGINE, EngineClass::Software, "", 0);
        } else if cfg!(target_arch = "x86_64") {
            page.set_note("no AVX-512 IFMA: operations are done one at a time");
        } else {
            page.set_note(
                "this CPU is not x86-64: operations are done one at a time, and no gain has been measured",
            );
        }
        if engine.single.is_some() {
            page.register(hasten_batch::SINGLE, EngineClass::Software, "", 0);
        }
        let stranger = stranger();
        let ready = stranger.is_none() && handshake::reserve_ex_data() && keys::init() && exchange::init();
        if ready {
            shortcuts::init(first_trial());
        } else {
            slot().bypass(Reason::UnknownLibrary);
            hasten_telemetry::page()
                .set_note(stranger.unwrap_or("OpenSSL has no room for the library's data"));
        }
        // Unless the program has meanwhile restricted itself.
        let _ = STATE.compare_exchange(UNKNOWN, if ready { READY } else { UNFIT }, Relaxed, Relaxed);
    });
    STATE.load(Relaxed) == READY
}

/// The program gave OpenSSL another provider or other properties at run time. If that concerns handshakes, they are
/// left to OpenSSL from now on.
pub(crate) fn reconfigured() {
    if STATE.load(Relaxed) == READY && stranger().is_some() {
        STATE.store(UNFIT, Relaxed);
        suspension::end(Doubt::ReconfiguredOpenssl);
        blocking::before_blocking();
    }
}

/// What does the work of a handshake without us, if not all of it is OpenSSL's own.
fn stranger() -> Option<&'static str> {
    if !providers::are_default() {
        return Some("a provider other than OpenSSL's default does handshakes here: they are left to it");
    }
    let is_own = random::is_openssls();
    (!is_own).then_some(
        "the program has its own random number generator (RAND_METHOD): handshakes are left to OpenSSL",
    )
}
