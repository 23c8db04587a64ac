//! Whether handshakes of this process may be suspended at all.
//!
//! What a server does with a connection cannot be known beforehand, so it is
//! watched. The first sign that connections are not served by the thread and
//! the event loop that they began with ends suspension for good in the whole
//! process: from then on every operation runs where it is asked for. What is
//! suspended at that moment is called in, so no handshake pays for it.

use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::hooks::original;
use crate::openssl::*;

/// Why handshakes are not suspended any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cause {
    /// Another thread came for a suspended handshake.
    ForeignThread = 1,
    /// A connection went to another event loop in the middle of its handshake.
    Moved = 2,
    /// Too many handshakes were reported and nobody came for them.
    NobodyCame = 3,
}

impl Cause {
    fn why(self) -> &'static str {
        match self {
            Cause::ForeignThread => "handshakes are not suspended: another thread went on with one",
            Cause::Moved => "handshakes are not suspended: a connection changed its event loop during one",
            Cause::NobodyCame => "handshakes are not suspended: the server did not come for those that were ready",
        }
    }
}

/// 0, or the cause.
static OFF: AtomicU8 = AtomicU8::new(0);

/// Handshakes that nobody came for, and all that were reported.
static LEFT_ALONE: AtomicU32 = AtomicU32::new(0);
static REPORTED: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(crate) fn is_on() -> bool {
    OFF.load(Relaxed) == 0
}

/// Ends suspension in this process.
#[cold]
pub(crate) fn end(cause: Cause) {
    if OFF.compare_exchange(0, cause as u8, Relaxed, Relaxed).is_ok() {
        hasten_telemetry::page().set_note(cause.why());
    }
}

/// Handshakes were reported to the server.
#[inline]
pub(crate) fn reported(count: u32) {
    if count > 0 {
        REPORTED.fetch_add(count, Relaxed);
    }
}

/// The thread is about to sleep, and nobody came for a handshake that was reported before.
///
/// One connection may be given up without a word; a server of which that is the habit is another thing.
#[cold]
pub(crate) fn left_alone() {
    const SOME: u32 = 4;
    const ONE_IN: u32 = 64;
    let left = LEFT_ALONE.fetch_add(1, Relaxed) + 1;
    if left > SOME + REPORTED.load(Relaxed) / ONE_IN {
        end(Cause::NobodyCame);
    }
}

/// Some callback that libssl calls behind the point where handshakes are left
/// is not of the program itself: of an interpreter's module perhaps, which
/// expects locks that are not held where a handshake is called in.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);

/// A BIO of such a module reads and writes for SSLs.
static HAS_FOREIGN_BIO: AtomicBool = AtomicBool::new(false);

static PROGRAM_START: AtomicUsize = AtomicUsize::new(0);
static PROGRAM_END: AtomicUsize = AtomicUsize::new(0);

/// Learns where the code of the program itself is.
pub(crate) fn init() {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a valid description; the program comes first.
        unsafe {
            let info = &*info;
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            let code = headers.iter().find(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
            if let Some(code) = code {
                let start = info.dlpi_addr as usize + code.p_vaddr as usize;
                PROGRAM_START.store(start, Relaxed);
                PROGRAM_END.store(start + code.p_memsz as usize, Relaxed);
            }
        }
        1
    }
    // SAFETY: the callback only writes the two statics.
    unsafe { libc::dl_iterate_phdr(Some(first), core::ptr::null_mut()) };
}

fn is_of_program(function: usize) -> bool {
    (PROGRAM_START.load(Relaxed)..PROGRAM_END.load(Relaxed)).contains(&function)
}

/// Whether the SSL's callbacks may run wherever its handshake is called in: in the program's own epoll_wait, say.
pub(crate) unsafe fn allows_callbacks_of(ssl: *mut Ssl) -> bool {
    if HAS_FOREIGN.load(Relaxed) {
        return false;
    }
    // SAFETY: the server's SSL; these functions read fields.
    unsafe {
        let context = SSL_get_SSL_CTX.get()(ssl);
        let callbacks = [
            SSL_get_info_callback.get()(ssl).map(|function| function as usize),
            SSL_CTX_get_info_callback.get()(context).map(|function| function as usize),
            SSL_CTX_get_keylog_callback.get()(context).map(|function| function as usize),
        ];
        callbacks.into_iter().flatten().all(is_of_program)
            && (!HAS_FOREIGN_BIO.load(Relaxed) || SSL_get_rfd.get()(ssl) >= 0)
    }
}

/// Notes a callback that there is no function to ask for.
fn note(flag: &AtomicBool, function: *const c_void) {
    if !function.is_null() && !is_of_program(function as usize) {
        flag.store(true, Relaxed);
    }
}

type SetCallback = unsafe extern "C" fn(*mut c_void, *const c_void);

pub(crate) unsafe fn set_msg_callback(original: SetCallback, to: *mut c_void, callback: *const c_void) {
    note(&HAS_FOREIGN, callback);
    // SAFETY: the program's call.
    unsafe { original(to, callback) }
}

const SSL_CTRL_SET_MSG_CALLBACK: c_int = 15;

type CallbackControl = unsafe extern "C" fn(*mut c_void, c_int, *const c_void) -> core::ffi::c_long;

pub(crate) unsafe fn callback_control(
    original: CallbackControl,
    to: *mut c_void,
    command: c_int,
    callback: *const c_void,
) -> core::ffi::c_long {
    if command == SSL_CTRL_SET_MSG_CALLBACK {
        note(&HAS_FOREIGN, callback);
    }
    // SAFETY: the program's call.
    unsafe { original(to, command, callback) }
}

pub(crate) unsafe fn set_security_callback(original: SetCallback, to: *mut c_void, callback: *const c_void) {
    note(&HAS_FOREIGN, callback);
    // SAFETY: the program's call.
    unsafe { original(to, callback) }
}

type AddExtension = unsafe extern "C" fn(
    *mut SslCtx,
    core::ffi::c_uint,
    core::ffi::c_uint,
    *const c_void,
    *const c_void,
    *mut c_void,
    *const c_void,
    *mut c_void,
) -> c_int;

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn add_extension(
    original: AddExtension,
    context: *mut SslCtx,
    kind: core::ffi::c_uint,
    when: core::ffi::c_uint,
    add: *const c_void,
    free: *const c_void,
    add_data: *mut c_void,
    parse: *const c_void,
    parse_data: *mut c_void,
) -> c_int {
    note(&HAS_FOREIGN, add);
    // SAFETY: the program's call.
    unsafe { original(context, kind, when, add, free, add_data, parse, parse_data) }
}

type AddServerExtension = unsafe extern "C" fn(
    *mut SslCtx,
    core::ffi::c_uint,
    *const c_void,
    *const c_void,
    *mut c_void,
    *const c_void,
    *mut c_void,
) -> c_int;

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn add_server_extension(
    original: AddServerExtension,
    context: *mut SslCtx,
    kind: core::ffi::c_uint,
    add: *const c_void,
    free: *const c_void,
    add_data: *mut c_void,
    parse: *const c_void,
    parse_data: *mut c_void,
) -> c_int {
    note(&HAS_FOREIGN, add);
    // SAFETY: the program's call.
    unsafe { original(context, kind, add, free, add_data, parse, parse_data) }
}

pub(crate) unsafe fn set_bio_method(
    original: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int,
    method: *mut c_void,
    function: *const c_void,
) -> c_int {
    note(&HAS_FOREIGN_BIO, function);
    // SAFETY: the program's call.
    unsafe { original(method, function) }
}

/// What libssl would say of an SSL that it left waiting for the network.
pub(crate) unsafe fn waits_for_reading(ssl: *mut Ssl) -> bool {
    // SAFETY: the server's SSL.
    unsafe { original::SSL_want.get()(ssl) == SSL_READING }
}
