//! A client's handshake: that of a proxy with its upstream, for instance.
//!
//! It is never suspended: a client waits for its server, and often blocks meanwhile. Its key exchange and key schedule take the
//! same shortcuts as a server's, once they have passed a trial of their own; operations are done at once, keys come from the
//! pool.

use core::ffi::c_int;

use hasten_telemetry::{Event, slot};

use super::{Call, is_hybrid};
use crate::openssl::shortcuts::{self, Role};
use crate::openssl::*;
use crate::runtime::Runtime;

/// A call for an SSL whose handshake is a client's and has not ended.
///
/// # Safety
///
/// As [`super::drive`], and `runtime` is this thread's.
pub(super) unsafe fn drive(runtime: &Runtime, ssl: *mut Ssl, call: Call) -> c_int {
    // SAFETY: as the contract says.
    unsafe {
        if SSL_in_before.get()(ssl) == 1 {
            shortcuts::before_handshake(runtime, Role::Client);
        }
        let result = runtime.as_client(|| call.invoke(ssl));
        if result > 0 && SSL_is_init_finished.get()(ssl) == 1 {
            slot().event(Event::ClientHandshake);
            slot().event_n(Event::ClientHybridHandshake, u64::from(is_hybrid(ssl)));
        }
        result
    }
}
