//! Whether handshakes of this process may be suspended at all.
//!
//! How a server treats a connection cannot be known in advance, so it is watched. The first sign that connections are
//! not served by the thread and the event loop they began with ends suspension permanently, in the whole process: from
//! then on every operation runs where it is requested. Handshakes suspended at that moment are called in, so none of
//! them suffers.

use core::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use hasten_telemetry::{Doubt, Event, Suspension, slot};

use crate::config;
use crate::hooks::original;
use crate::openssl::*;

/// 0, or the number of the [`Doubt`] that ended suspension.
static OFF: AtomicU8 = AtomicU8::new(0);

/// The number of handshakes the server did not come back for, and of all that were reported.
static LEFT_ALONE: AtomicU32 = AtomicU32::new(0);
static REPORTED: AtomicU32 = AtomicU32::new(0);

/// See [`is_proven`].
static PROVEN: AtomicBool = AtomicBool::new(false);

#[inline]
pub(crate) fn is_on() -> bool {
    OFF.load(Relaxed) == 0
}

/// Whether the program's treatment of its connections is still being watched.
pub(crate) fn is_watching() -> bool {
    is_on() && !PROVEN.load(Relaxed)
}

/// Whether hasten's tests and a public suite run this very program.
pub(crate) fn is_proven() -> bool {
    PROVEN.load(Relaxed)
}

/// Ends suspension in this process.
#[cold]
pub(crate) fn end(doubt: Doubt) {
    if OFF.compare_exchange(0, doubt.number(), Relaxed, Relaxed).is_ok() {
        slot().suspension(Suspension::Off, Some(doubt));
    }
}

/// How many handshakes of a thread must return to its event loop before one is suspended.
pub(crate) fn sightings() -> u32 {
    const SHADOWED: u32 = 8;
    if PROVEN.load(Relaxed) || config::get().eager { 1 } else { SHADOWED }
}

/// Publishes what happens to handshakes of this thread.
#[inline]
pub(crate) fn tell(is_shadowing: bool) {
    let state = match is_shadowing {
        true => Suspension::Shadowing,
        false if PROVEN.load(Relaxed) => Suspension::Proven,
        false => Suspension::Expected,
    };
    slot().suspension(state, None);
}

/// Counts handshakes reported to the server.
#[inline]
pub(crate) fn reported(count: u32) {
    if count > 0 {
        REPORTED.fetch_add(count, Relaxed);
    }
}

/// The thread is about to sleep without having come back for a handshake reported before.
///
/// A single connection may be abandoned silently; a server that does so habitually is not to be trusted.
#[cold]
pub(crate) fn left_alone() {
    const SOME: u32 = 4;
    const ONE_IN: u32 = 64;
    slot().event(Event::Overdue);
    let left = LEFT_ALONE.fetch_add(1, Relaxed) + 1;
    if left > SOME + REPORTED.load(Relaxed) / ONE_IN {
        end(Doubt::NobodyCame);
    }
}

/// Whether a callback that libssl calls after the point of suspension is not the program's own: it may belong to an
/// interpreter's module, which expects locks that are not held where a handshake is called in.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);

/// Whether one of those callbacks is the program's own.
static HAS_OWN: AtomicBool = AtomicBool::new(false);

/// Whether a BIO of such a module reads and writes for SSLs.
static HAS_FOREIGN_BIO: AtomicBool = AtomicBool::new(false);

static PROGRAM_START: AtomicUsize = AtomicUsize::new(0);
static PROGRAM_END: AtomicUsize = AtomicUsize::new(0);

/// Determines which program this is, and where its code is.
pub(crate) fn init() {
    /// # Safety
    ///
    /// As for a callback of dl_iterate_phdr(3): `info` describes a loaded object that stays loaded during the call.
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a valid description; the program comes first.
        unsafe {
            let info = &*info;
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            let code = headers
                .iter()
                .find(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
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
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let name = program.file_name().unwrap_or_default().as_encoded_bytes();
    PROVEN.store(hasten_openssl::PROVEN.iter().any(|proven| name == proven.as_bytes()), Relaxed);
}

fn is_of_program(function: usize) -> bool {
    (PROGRAM_START.load(Relaxed)..PROGRAM_END.load(Relaxed)).contains(&function)
}

/// Whether the SSL's callbacks may run wherever its handshake is called in, such as in the program's own epoll_wait.
///
/// A callback may rely on state that its program sets around its calls of libssl. So if there is a callback, handshakes
/// are suspended only in programs whose callbacks are known not to.
///
/// # Safety
///
/// `ssl` is a live SSL that no other thread uses meanwhile.
pub(crate) unsafe fn allows_callbacks_of(ssl: *mut Ssl) -> bool {
    if HAS_FOREIGN.load(Relaxed) {
        return false;
    }
    // SAFETY: the server's SSL; these functions read fields.
    unsafe {
        let is_proven = PROVEN.load(Relaxed);
        if !is_proven && !has_plain_bios(ssl) || HAS_FOREIGN_BIO.load(Relaxed) && SSL_get_rfd.get()(ssl) < 0 {
            return false;
        }
        let mut callbacks = callbacks_of(ssl).into_iter().flatten();
        if is_proven {
            callbacks.all(is_of_program)
        } else {
            !HAS_OWN.load(Relaxed) && callbacks.next().is_none()
        }
    }
}

/// Whether libcrypto itself reads and writes the socket. A BIO of the program may rely on state that the program sets
/// around its calls, and may itself need to see "would block" before it waits.
///
/// # Safety
///
/// As [`allows_callbacks_of`].
unsafe fn has_plain_bios(ssl: *mut Ssl) -> bool {
    if HAS_SOCKET_LIKE.load(Relaxed) {
        return false;
    }
    // SAFETY: as `allows_callbacks_of`.
    unsafe {
        [SSL_get_rbio.get()(ssl), SSL_get_wbio.get()(ssl)]
            .into_iter()
            .all(|bio| !bio.is_null() && BIO_method_type.get()(bio) == BIO_TYPE_SOCKET)
    }
}

/// The callbacks that libssl can be asked for.
///
/// # Safety
///
/// As [`allows_callbacks_of`].
unsafe fn callbacks_of(ssl: *mut Ssl) -> [Option<usize>; 4] {
    // SAFETY: as `allows_callbacks_of`.
    unsafe {
        let context = SSL_get_SSL_CTX.get()(ssl);
        let verifies = SSL_get_verify_mode.get()(ssl) & SSL_VERIFY_PEER != 0;
        [
            SSL_get_info_callback.get()(ssl).map(|function| function as usize),
            SSL_CTX_get_info_callback.get()(context).map(|function| function as usize),
            SSL_CTX_get_keylog_callback.get()(context).map(|function| function as usize),
            SSL_get_verify_callback.get()(ssl).filter(|_| verifies).map(|function| function as usize),
        ]
    }
}

/// Records a callback that libssl cannot be asked for.
fn note(function: *const c_void) {
    if !function.is_null() {
        let flag = if is_of_program(function as usize) { &HAS_OWN } else { &HAS_FOREIGN };
        flag.store(true, Relaxed);
    }
}

type SetCallback = unsafe extern "C" fn(*mut c_void, *const c_void);

/// For any function that sets a callback of an object and returns nothing.
///
/// # Safety
///
/// As for `original`, which is `SSL_set_msg_callback` or a similar function: `to` is a live object of its kind, and
/// `callback` is null or a function of the type that it takes.
pub(crate) unsafe fn set_callback(original: SetCallback, to: *mut c_void, callback: *const c_void) {
    note(callback);
    // SAFETY: the program's call.
    unsafe { original(to, callback) }
}

/// The same, with an argument for the callback.
///
/// # Safety
///
/// As for `SSL_CTX_set_cert_verify_callback`: `to` is a live SSL_CTX, `callback` is null or a function of the type that
/// it takes, and `argument` is what the callback takes.
pub(crate) unsafe fn set_callback_with(
    original: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void),
    to: *mut c_void,
    callback: *const c_void,
    argument: *mut c_void,
) {
    note(callback);
    // SAFETY: the program's call.
    unsafe { original(to, callback, argument) }
}

/// The same, for a function that reports success.
///
/// # Safety
///
/// As for `original`, which is `SSL_set_record_padding_callback` or `SSL_CTX_set_tlsext_ticket_key_evp_cb`, with the
/// conditions of [`set_callback`].
pub(crate) unsafe fn try_set_callback(
    original: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int,
    to: *mut c_void,
    callback: *const c_void,
) -> c_int {
    note(callback);
    // SAFETY: the program's call.
    unsafe { original(to, callback) }
}

/// The same, for the two callbacks of session tickets.
///
/// # Safety
///
/// As for `SSL_CTX_set_session_ticket_cb`: `context` is a live SSL_CTX, `generate` and `decrypt` are null or functions
/// of the types that it takes, and `argument` is what these functions take.
pub(crate) unsafe fn set_ticket_callbacks(
    original: unsafe extern "C" fn(*mut SslCtx, *const c_void, *const c_void, *mut c_void) -> c_int,
    context: *mut SslCtx,
    generate: *const c_void,
    decrypt: *const c_void,
    argument: *mut c_void,
) -> c_int {
    note(generate);
    note(decrypt);
    // SAFETY: the program's call.
    unsafe { original(context, generate, decrypt, argument) }
}

const SSL_CTRL_SET_MSG_CALLBACK: c_int = 15;
const SSL_CTRL_SET_TLSEXT_TICKET_KEY_CB: c_int = 72;

type CallbackControl = unsafe extern "C" fn(*mut c_void, c_int, *const c_void) -> core::ffi::c_long;

/// # Safety
///
/// As for `SSL_callback_ctrl` or `SSL_CTX_callback_ctrl`, whichever `original` is: `to` is a live object of its kind,
/// and `callback` is null or a function of the type that the command takes.
pub(crate) unsafe fn callback_control(
    original: CallbackControl,
    to: *mut c_void,
    command: c_int,
    callback: *const c_void,
) -> core::ffi::c_long {
    if matches!(command, SSL_CTRL_SET_MSG_CALLBACK | SSL_CTRL_SET_TLSEXT_TICKET_KEY_CB) {
        note(callback);
    }
    // SAFETY: the program's call.
    unsafe { original(to, command, callback) }
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

/// # Safety
///
/// As for `SSL_CTX_add_custom_ext`: `context` is a live SSL_CTX, the functions are null or of the types that it takes,
/// and the arguments passed with them are what these functions take.
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
    note(add);
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

/// # Safety
///
/// As for `SSL_CTX_add_server_custom_ext`, with the conditions of [`add_extension`].
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
    note(add);
    // SAFETY: the program's call.
    unsafe { original(context, kind, add, free, add_data, parse, parse_data) }
}

/// # Safety
///
/// As for `BIO_meth_set_read` or `BIO_meth_set_read_ex`, whichever `original` is: `method` is a live BIO_METHOD, and
/// `function` is null or a function of the type that it takes.
pub(crate) unsafe fn set_bio_method(
    original: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int,
    method: *mut c_void,
    function: *const c_void,
) -> c_int {
    if !function.is_null() && !is_of_program(function as usize) {
        HAS_FOREIGN_BIO.store(true, Relaxed);
    }
    // SAFETY: the program's call.
    unsafe { original(method, function) }
}

/// Whether the program has created a BIO type that claims to be a socket.
static HAS_SOCKET_LIKE: AtomicBool = AtomicBool::new(false);

/// # Safety
///
/// As for `BIO_meth_new`: `name` is null or a C string.
pub(crate) unsafe fn new_bio_method(
    original: unsafe extern "C" fn(c_int, *const c_char) -> *mut c_void,
    kind: c_int,
    name: *const c_char,
) -> *mut c_void {
    if kind == BIO_TYPE_SOCKET {
        HAS_SOCKET_LIKE.store(true, Relaxed);
    }
    // SAFETY: the program's call.
    unsafe { original(kind, name) }
}

/// Whether the program has created BIOs that hold an SSL, through which libssl reaches it without a hook.
static HAS_SSL_BIO: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_in_bio() -> bool {
    HAS_SSL_BIO.load(Relaxed)
}

/// # Safety
///
/// `original` is `BIO_f_ssl`, which asks nothing of its caller.
pub(crate) unsafe fn ssl_bio_method(
    original: unsafe extern "C" fn() -> *const BioMethod,
) -> *const BioMethod {
    HAS_SSL_BIO.store(true, Relaxed);
    // SAFETY: the program's call.
    unsafe { original() }
}

/// # Safety
///
/// As for `BIO_new_ssl`: `context` is null or a live SSL_CTX.
pub(crate) unsafe fn new_ssl_bio(
    original: unsafe extern "C" fn(*mut SslCtx, c_int) -> *mut Bio,
    context: *mut SslCtx,
    client: c_int,
) -> *mut Bio {
    HAS_SSL_BIO.store(true, Relaxed);
    // SAFETY: the program's call.
    unsafe { original(context, client) }
}

/// Whether libssl would say that it left the SSL waiting to read from the network.
///
/// # Safety
///
/// `ssl` is a live SSL that no other thread uses meanwhile.
pub(crate) unsafe fn waits_for_reading(ssl: *mut Ssl) -> bool {
    // SAFETY: the server's SSL.
    unsafe { original::SSL_want.get()(ssl) == SSL_READING }
}
