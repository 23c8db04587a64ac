//! Start-up of the handshakes' part.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::env;
use std::sync::OnceLock;

use hasten_batch::Settings;
use hasten_crypto::Ifma;
use hasten_envoy_builds::{Build, Class, ec, handshaker, hybrid, socket, x25519};
use hasten_hook::is_disabled;
use hasten_telemetry::EngineClass;

use super::{boring, event_loop, exchange, handshake};
use crate::lock::{self, Refusal};
use crate::program::Program;

/// `1`: a handshake waits even if no other is in sight, so that tests reach the machinery with a single connection.
const EAGER: &str = "HASTEN_TLS_EAGER";

pub(super) struct Config {
    pub(super) engine: Settings<Ifma>,
    pub(super) eager: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

pub(super) fn config() -> &'static Config {
    CONFIG.get_or_init(|| {
        let eager = env::var_os(EAGER).is_some_and(|value| value == "1");
        // BoringSSL's own functions for one operation are as fast.
        Config { engine: Settings { single: None, ..Settings::from_environment(eager) }, eager }
    })
}

/// Whether there is anything to do.
pub(crate) fn is_wanted() -> bool {
    let engine = &config().engine;
    !is_disabled("tls") && (engine.lane_engine.is_some() || engine.bypass)
}

/// Replaces the entries of the tables.
///
/// # Safety
///
/// `program` is `build`, which is verified; no other thread of the process is running yet.
pub(crate) unsafe fn start(program: &Program, build: &Build) -> Result<(), Refusal> {
    let tls = &build.tls;
    let entries: [(&Class, usize, &AtomicUsize, *const c_void); 9] = [
        (&tls.socket, socket::DESTROY, &handshake::DESTROY, handshake::destroy as *const c_void),
        (&tls.socket, socket::DELETE, &handshake::DELETE, handshake::delete as *const c_void),
        (&tls.socket, socket::CLOSE, &handshake::CLOSE_SOCKET, handshake::close_socket as *const c_void),
        (&tls.x25519, x25519::GENERATE, &exchange::GENERATE, exchange::generate as *const c_void),
        (&tls.x25519, x25519::DECAP, &exchange::DECAP, exchange::decap as *const c_void),
        (&tls.ec, ec::GENERATE, &exchange::EC_GENERATE, exchange::ec_generate as *const c_void),
        (&tls.hybrid, hybrid::ENCAP, &exchange::HYBRID_ENCAP, exchange::hybrid_encap as *const c_void),
        // Last: the others do nothing until a handshake comes by here.
        (
            &tls.handshaker,
            handshaker::DO_HANDSHAKE,
            &handshake::DO_HANDSHAKE,
            handshake::do_handshake as *const c_void,
        ),
        (
            &tls.handshaker_base,
            handshaker::DO_HANDSHAKE,
            &handshake::DO_HANDSHAKE_OF_BASE,
            handshake::do_handshake_of_base as *const c_void,
        ),
    ];
    // SAFETY: the tables are verified, the functions have the prototypes of those that they stand in for, and each
    // original is stored before its stand-in can be called.
    unsafe {
        boring::prepare(program, tls);
        handshake::prepare(tls.handshaker_base.base);
        let wait = libc::epoll_wait as *const c_void as usize;
        event_loop::prepare(wait);
        for slot in tls.epoll_wait {
            let slot = program.at(*slot);
            if ptr::with_exposed_provenance::<usize>(slot).read() == wait {
                lock::replace(program, slot, event_loop::wait as *const c_void as usize)?;
            }
        }
        for (class, index, original, function) in entries {
            let entry = lock::entry(program, class, index);
            original.store(program.word(entry).unwrap_or_default(), Relaxed);
            lock::replace(program, entry, function as usize)?;
        }
    }
    Ok(())
}

/// Registers the engine on the counter page, with the first handshake.
pub(super) fn register() {
    hasten_telemetry::start();
    hasten_telemetry::page().register(hasten_batch::ENGINE, EngineClass::Software, "", 0);
}
