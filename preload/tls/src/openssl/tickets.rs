//! Session tickets, in one write and encoded once each.
//!
//! After a TLS 1.3 handshake OpenSSL sends two tickets and flushes each: a system call and a TCP segment apiece.
//! All flushes but the last are left out, so that the tickets are sent together.
//!
//! For each ticket OpenSSL encodes the session, decodes that into a copy, and encodes the copy over the original's
//! bytes, which are identical. Here libssl gets another reference to the session instead of a copy.

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::null_mut;

use super::abi::*;
use super::release;
use super::shortcuts::{self, Shortcut};
use crate::hooks::original;
use crate::runtime::Runtime;

/// The tickets being sent in this call of the server.
pub(crate) struct Tickets {
    /// The SSL, if this call began before its first ticket.
    ssl: Cell<*mut Ssl>,
    flushes: Cell<usize>,
    /// The buffer that holds back a ticket.
    held: Cell<*mut Bio>,
    encoded: Cell<Option<Encoded>>,
}

/// A session that libssl has just encoded.
#[derive(Clone, Copy)]
struct Encoded {
    session: *mut Session,
    bytes: *mut u8,
    len: c_int,
    /// Whether libssl has asked for a copy, and got another reference.
    copied: bool,
}

impl Default for Tickets {
    fn default() -> Self {
        Self {
            ssl: Cell::new(null_mut()),
            flushes: Cell::new(0),
            held: Cell::new(null_mut()),
            encoded: Cell::new(None),
        }
    }
}

impl Tickets {
    /// No call sends tickets now, as far as is known.
    pub(crate) fn forget(&self) {
        self.ssl.set(null_mut());
    }

    /// Starts a call of the server into a handshake that is in `state`. A handshake that blocked while sending a ticket
    /// must be flushed now, and one that is over sends single tickets on the server's request.
    pub(crate) fn begin(&self, ssl: *mut Ssl, state: c_int) {
        let before_tickets = release::is_before_tickets(state);
        self.ssl.set(if before_tickets { ssl } else { null_mut() });
        self.flushes.set(0);
        self.held.set(null_mut());
        self.encoded.set(None);
    }

    /// The encoding of a session that libssl has a copy of.
    fn copied(&self, session: *mut Session) -> Option<Encoded> {
        // In two steps, because otherwise the compiler compares what `None` leaves uninitialised: harmless, but memory
        // checkers complain.
        let copied = self.encoded.get().filter(|encoded| encoded.copied);
        if let Some(encoded) = copied
            && encoded.session == session
        {
            copied
        } else {
            None
        }
    }

    /// Whether a flush of `bio` can wait for that of the next ticket. During a handshake libssl writes to a buffer in
    /// front of the server's BIO.
    ///
    /// # Safety
    ///
    /// `bio` is null or a live BIO. The SSL of the last [`Tickets::begin`] is alive if it was noted.
    unsafe fn can_wait(&self, bio: *mut Bio) -> bool {
        let ssl = self.ssl.get();
        // SAFETY: the SSL whose handshake function is running.
        unsafe {
            if ssl.is_null()
                || !release::sends_ticket(SSL_get_state.get()(ssl))
                || BIO_next.get()(bio) != SSL_get_wbio.get()(ssl)
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

/// # Safety
///
/// As for `BIO_ctrl`: `bio` is null or a live BIO, and `number` and `pointer` are what the command takes. For a flush,
/// the SSL of this thread's last [`Tickets::begin`] is alive as well.
pub(crate) unsafe fn bio_control(
    original: Control,
    bio: *mut Bio,
    command: c_int,
    number: c_long,
    pointer: *mut c_void,
) -> c_long {
    if command == BIO_CTRL_FLUSH
        && let Some(runtime) = shortcuts::using(Shortcut::Tickets)
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

/// Flushes what libssl's write buffer holds back before libssl removes it. The last ticket has normally done that; this
/// is for a version that sends fewer.
///
/// # Safety
///
/// As for `BIO_pop`: `bio` is null or a live BIO.
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

/// The tickets of the running handshake, while libssl is creating one.
fn in_the_making() -> Option<&'static Tickets> {
    Some(&shortcuts::using(Shortcut::Tickets)?.tickets)
}

type Encode = unsafe extern "C" fn(*mut Session, *mut *mut u8) -> c_int;

/// # Safety
///
/// As for `i2d_SSL_SESSION`: `session` is null or alive, and `out` is null or points to null or to room for the
/// encoding. The caller is libssl: if it encodes a session a second time, the first encoding is still where it was
/// written.
pub(crate) unsafe fn encode_session(original: Encode, session: *mut Session, out: *mut *mut u8) -> c_int {
    let Some(tickets) = in_the_making() else {
        // SAFETY: libssl's arguments.
        return unsafe { original(session, out) };
    };
    // SAFETY: libssl's arguments: `out` is null, or points to a pointer to enough room.
    unsafe {
        match tickets.copied(session) {
            Some(encoded) if out.is_null() => encoded.len,
            Some(encoded) if *out == encoded.bytes => {
                *out = encoded.bytes.add(encoded.len as usize);
                tickets.encoded.set(None);
                encoded.len
            }
            _ => {
                let bytes = if out.is_null() { null_mut() } else { *out };
                let len = original(session, out);
                let encoded = Encoded { session, bytes, len, copied: false };
                tickets.encoded.set((len > 0 && !bytes.is_null()).then_some(encoded));
                len
            }
        }
    }
}

type Decode = unsafe extern "C" fn(*mut *mut Session, *mut *const u8, c_long) -> *mut Session;

/// # Safety
///
/// As for `d2i_SSL_SESSION`: `bytes` points to a pointer to `len` bytes, and `into` is null or points to null or to a
/// live session. The caller is libssl, which keeps a session alive that it has just encoded.
pub(crate) unsafe fn decode_session(
    original: Decode,
    into: *mut *mut Session,
    bytes: *mut *const u8,
    len: c_long,
) -> *mut Session {
    // SAFETY: libssl's arguments.
    unsafe { reference(into, bytes, len).unwrap_or_else(|| original(into, bytes, len)) }
}

type DecodeIn = unsafe extern "C" fn(
    *mut *mut Session,
    *mut *const u8,
    c_long,
    *mut LibCtx,
    *const c_char,
) -> *mut Session;

/// # Safety
///
/// As for `d2i_SSL_SESSION_ex`, with the conditions of [`decode_session`]: `libctx` is null or a live library context, and
/// `properties` is null or a C string.
pub(crate) unsafe fn decode_session_in(
    original: DecodeIn,
    into: *mut *mut Session,
    bytes: *mut *const u8,
    len: c_long,
    libctx: *mut LibCtx,
    properties: *const c_char,
) -> *mut Session {
    // SAFETY: libssl's arguments.
    unsafe { reference(into, bytes, len).unwrap_or_else(|| original(into, bytes, len, libctx, properties)) }
}

/// Another reference to the session that libssl has just encoded, if these are its bytes.
///
/// # Safety
///
/// As for [`decode_session`].
unsafe fn reference(into: *mut *mut Session, bytes: *mut *const u8, len: c_long) -> Option<*mut Session> {
    // SAFETY: libssl's arguments; a session that was just encoded is alive.
    unsafe {
        if let Some(tickets) = in_the_making()
            && into.is_null()
            && !bytes.is_null()
            && let Some(encoded) = tickets.encoded.take()
            && core::ptr::eq(*bytes, encoded.bytes)
            && c_long::from(encoded.len) == len
            && SSL_SESSION_up_ref.get()(encoded.session) == 1
        {
            *bytes = (*bytes).add(encoded.len as usize);
            tickets.encoded.set(Some(Encoded { copied: true, ..encoded }));
            return Some(encoded.session);
        }
        None
    }
}
