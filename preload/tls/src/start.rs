//! Starting: with the process if it links OpenSSL, when OpenSSL comes if it is loaded later, and never if it does not come.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use hasten_batch::device;
use hasten_hook::{Interposer, Library, Told, exec};
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
    Told { before_load, before_system_call: blocking::before_system_call, before_sandbox },
);

static GENERATION: AtomicU32 = AtomicU32::new(1);

extern "C" fn load() {
    if !config::init() {
        return;
    }
    fds::note_process();
    exec::init();
    // Now: nginx's own environment, when it has read its configuration, is empty.
    device::init();
    hasten_telemetry::init("tls");
    INTERPOSER.start();
}

/// Which process this is, of those that forked from each other.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// What is loaded next may come for handshakes that are suspended now, by ways that are not known yet.
fn before_load() {
    blocking::before_blocking();
}

/// The program restricts its own system calls, and knows nothing of ours: from now on there are none, and handshakes are OpenSSL's.
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

/// The pools wipe themselves in a child (MADV_WIPEONFORK). Handshakes of other threads are not its business.
extern "C" fn in_child() {
    forks::release();
    fds::note_process();
    fds::forget_other_threads();
    GENERATION.fetch_add(1, Relaxed);
    if let Some(runtime) = Runtime::existing() {
        runtime.forget_all();
    }
}

/// Whether this OpenSSL is one whose handshakes can be driven. Nothing of it is initialised by looking.
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

/// Whether a handshake that is suspended now is met through the hooks only, and its thread blocks in sight.
pub(crate) fn is_sound() -> bool {
    INTERPOSER.is_sound() && INTERPOSER.sees_waits()
}

const UNKNOWN: u8 = 0;
const READY: u8 = 1;
const UNFIT: u8 = 2;

/// Whether handshakes can be driven in this process.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Prepares for the first handshake, when the program has initialised OpenSSL as it wants it.
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
        if config::get().engine.ifma.is_some() {
            hasten_telemetry::page().register(hasten_batch::ENGINE, EngineClass::Software, "", 0);
        } else {
            hasten_telemetry::page().set_note("no AVX-512 IFMA: nothing is batched");
        }
        let ready = is_openssls_own() && handshake::reserve_ex_data() && keys::init() && exchange::init();
        if ready {
            shortcuts::init();
        } else {
            slot().bypass(Reason::UnknownLibrary);
            hasten_telemetry::page()
                .set_note("OpenSSL's own provider does not do the handshakes: they are left to it");
        }
        // Unless the program has restricted itself meanwhile.
        let _ = STATE.compare_exchange(UNKNOWN, if ready { READY } else { UNFIT }, Relaxed, Relaxed);
    });
    STATE.load(Relaxed) == READY
}

/// OpenSSL was given another provider or other properties while the program runs. If that concerns handshakes, they are
/// OpenSSL's from now on.
pub(crate) fn reconfigured() {
    if STATE.load(Relaxed) == READY && !is_openssls_own() {
        STATE.store(UNFIT, Relaxed);
        suspension::end(Doubt::ReconfiguredOpenssl);
        blocking::before_blocking();
    }
}

/// Whether handshakes without us would be OpenSSL's own providers', with its own random numbers.
fn is_openssls_own() -> bool {
    providers::are_default() && random::is_openssls()
}
