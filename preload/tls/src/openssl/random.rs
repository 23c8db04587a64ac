//! Random numbers, always from the host library's own generator.

use core::ffi::{c_int, c_uint, c_void};

use hasten_hook::{Library, Original};
use hasten_telemetry::{Event, slot};

use super::abi::{LibCtx, RAND_priv_bytes};
use super::shortcuts::{self, Shortcut};
use crate::hooks;

type Method = unsafe extern "C" fn() -> *const c_void;

/// Both are deprecated, so an OpenSSL may lack them, but then it has no other generators either.
#[allow(non_upper_case_globals)]
static RAND_get_rand_method: Original<Method> =
    // SAFETY: the documented prototype.
    unsafe { Original::new(Library::Crypto, c"RAND_get_rand_method") };
#[allow(non_upper_case_globals)]
static RAND_OpenSSL: Original<Method> =
    // SAFETY: the documented prototype.
    unsafe { Original::new(Library::Crypto, c"RAND_OpenSSL") };

/// The most that is served from a pool: a handshake asks for 32 bytes or less.
const SMALL: usize = 64;

/// Whether random numbers are OpenSSL's own. A generator of the program's, or of an engine, may keep count of what is
/// drawn, and in which order.
pub(crate) fn is_openssls() -> bool {
    let (Some(current), Some(own)) = (RAND_get_rand_method.find(), RAND_OpenSSL.find()) else { return true };
    // SAFETY: no argument; both return a table.
    unsafe { core::ptr::eq(current(), own()) }
}

/// For private keys, and for the random part of nonces.
pub(crate) fn private(bytes: &mut [u8]) -> bool {
    // SAFETY: the buffer is valid for its length, which fits an int.
    unsafe { RAND_priv_bytes.get()(bytes.as_mut_ptr(), bytes.len() as c_int) == 1 }
}

/// For bytes the peer will see, without a pool in between.
pub(crate) fn public(bytes: &mut [u8]) -> bool {
    // SAFETY: as above.
    unsafe { hooks::original::RAND_bytes.get()(bytes.as_mut_ptr(), bytes.len() as c_int) == 1 }
}

/// Draws bytes from the pool. libssl draws hello randoms, session identifiers and ticket nonces one by one; OpenSSL
/// takes locks and asks for the process id each time.
fn from_pool(bytes: *mut u8, len: usize) -> bool {
    if len > SMALL || bytes.is_null() {
        return false;
    }
    let Some(runtime) = shortcuts::using(Shortcut::Random) else { return false };
    // SAFETY: the caller's buffer.
    let bytes = unsafe { core::slice::from_raw_parts_mut(bytes, len) };
    let done = runtime.batch.engine.random(bytes);
    slot().event_n(Event::FetchCached, u64::from(done));
    done
}

/// # Safety
///
/// As for `RAND_bytes`: `bytes` is valid for writes of `len` bytes.
pub(crate) unsafe fn rand_bytes(
    original: unsafe extern "C" fn(*mut u8, c_int) -> c_int,
    bytes: *mut u8,
    len: c_int,
) -> c_int {
    match usize::try_from(len) {
        Ok(len) if from_pool(bytes, len) => 1,
        // SAFETY: the caller's buffer.
        _ => unsafe { original(bytes, len) },
    }
}

/// # Safety
///
/// As for `RAND_bytes_ex`: `libctx` is null or a live library context, and `bytes` is valid for writes of `len` bytes.
pub(crate) unsafe fn rand_bytes_ex(
    original: unsafe extern "C" fn(*mut LibCtx, *mut u8, usize, c_uint) -> c_int,
    libctx: *mut LibCtx,
    bytes: *mut u8,
    len: usize,
    strength: c_uint,
) -> c_int {
    if libctx.is_null() && strength == 0 && from_pool(bytes, len) {
        return 1;
    }
    // SAFETY: the caller's buffer.
    unsafe { original(libctx, bytes, len, strength) }
}
