//! Session tickets in one write.
//!
//! After a TLS 1.3 handshake OpenSSL 3.0 sends two tickets and flushes each:
//! a system call and a TCP segment apiece. All but the last flush are left
//! out, so that the tickets go together.

use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};
use core::ptr::null_mut;

use crate::hooks::original;
use crate::openssl::*;
use crate::runtime::Runtime;
use crate::shortcuts;

/// The tickets that this call of the server is sending.
pub(crate) struct Tickets {
    /// The SSL, if this call began before its first ticket.
    ssl: Cell<*mut Ssl>,
    flushes: Cell<usize>,
    /// The buffer that holds back a ticket.
    held: Cell<*mut Bio>,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { ssl: Cell::new(null_mut()), flushes: Cell::new(0), held: Cell::new(null_mut()) }
    }
}

impl Tickets {
    /// The server calls into a handshake that is in `state`. One that blocked
    /// while it sent a ticket must be flushed now, and one that is over sends
    /// single tickets on the server's demand.
    pub(crate) fn begin(&self, ssl: *mut Ssl, state: c_int) {
        let before_tickets = !matches!(state, TLS_ST_OK | TLS_ST_SW_SESSION_TICKET);
        self.ssl.set(if before_tickets { ssl } else { null_mut() });
        self.flushes.set(0);
        self.held.set(null_mut());
    }

    /// Whether a flush of `bio` may wait for that of the next ticket.
    unsafe fn can_wait(&self, bio: *mut Bio) -> bool {
        let ssl = self.ssl.get();
        // SAFETY: the SSL whose handshake function is running.
        unsafe {
            if ssl.is_null()
                || SSL_get_state.get()(ssl) != TLS_ST_SW_SESSION_TICKET
                || SSL_get_wbio.get()(ssl) != bio
                || SSL_session_reused.get()(ssl) != 0
            {
                return false;
            }
            self.flushes.set(self.flushes.get() + 1);
            self.flushes.get() < SSL_get_num_tickets.get()(ssl)
        }
    }
}

type Control = unsafe extern "C" fn(*mut Bio, c_int, c_long, *mut c_void) -> c_long;

pub(crate) unsafe fn bio_control(
    original: Control,
    bio: *mut Bio,
    command: c_int,
    number: c_long,
    pointer: *mut c_void,
) -> c_long {
    if command == BIO_CTRL_FLUSH
        && shortcuts::are_on()
        && let Some(runtime) = Runtime::in_handshake()
    {
        // SAFETY: libssl's call.
        let waits = unsafe { runtime.tickets.can_wait(bio) };
        runtime.tickets.held.set(if waits { bio } else { null_mut() });
        if waits {
            return 1;
        }
    }
    // SAFETY: the caller's BIO.
    unsafe { original(bio, command, number, pointer) }
}

/// libssl takes its write buffer away: what it holds back must have gone
/// out. It has, with the last ticket; this is for a version that sends fewer.
pub(crate) unsafe fn bio_pop(
    original: unsafe extern "C" fn(*mut Bio) -> *mut Bio,
    bio: *mut Bio,
) -> *mut Bio {
    if let Some(runtime) = Runtime::in_handshake()
        && !bio.is_null()
        && runtime.tickets.held.replace(null_mut()) == bio
    {
        // SAFETY: libssl's BIO.
        unsafe { original::BIO_ctrl.get()(bio, BIO_CTRL_FLUSH, 0, null_mut()) };
    }
    // SAFETY: the caller's BIO.
    unsafe { original(bio) }
}
