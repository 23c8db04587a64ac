//! Starting: at load time what needs no OpenSSL, at the first handshake the rest.

use std::sync::OnceLock;

use hasten_hook::exec;
use hasten_telemetry::{EngineClass, slot};

use crate::{batch, config, device, exchange, fds, handshake, keys, openssl, shortcuts};

/// Run by the dynamic linker, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = load;

extern "C" fn load() {
    if !config::init() {
        return;
    }
    fds::init();
    exec::init();
    device::init();
    hasten_telemetry::init("tls");
    if config::get().ifma.is_some() {
        hasten_telemetry::page().register(batch::ENGINE, EngineClass::Software, "", 0);
    } else {
        hasten_telemetry::page().set_note("no AVX-512 IFMA: nothing is batched");
    }
    // SAFETY: the handler only touches atomics and this thread's counter slot.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// The pools wipe themselves in a child (MADV_WIPEONFORK); the counters need a slot of its own.
extern "C" fn in_child() {
    hasten_telemetry::after_fork_child();
}

/// Whether this process's OpenSSL is one whose handshakes can be driven.
pub(crate) fn is_ready() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        hasten_telemetry::start();
        let known = openssl::all_found() && is_known_version();
        let ready = known && handshake::reserve_ex_data() && keys::init() && exchange::init();
        if ready {
            shortcuts::init();
        } else {
            slot().bypass(hasten_telemetry::Reason::UnknownLibrary);
            hasten_telemetry::page().set_note("the OpenSSL of this process is not 3.0: nothing is done");
        }
        ready
    })
}

/// OpenSSL 3.0: the version whose libssl was read and is tested.
fn is_known_version() -> bool {
    // SAFETY: no argument, no precondition.
    let version = unsafe { openssl::OpenSSL_version_num.get()() };
    hasten_openssl::is_known_number(version)
}
