//! The server's other calls for an SSL whose handshake is suspended.
//!
//! At that time libssl is in the middle of a step and must not be entered. Functions that would have continued the
//! handshake do so if it can go on, and answer "want read" if it cannot; those that end it make it return first.

use core::ffi::{c_int, c_void};

use std::sync::atomic::Ordering::{Relaxed, Release};

use hasten_telemetry::Doubt;

use super::suspension;
use crate::handshake::{Call, HandshakeFn, drive, set_would_block, share, suspended};
use crate::openssl::*;
use crate::runtime::Runtime;

/// # Safety
///
/// As for `SSL_free`: `ssl` is null or a live SSL whose reference the caller gives up. No other thread of the server
/// sets its ex_data meanwhile, or uses it at all if its handshake is suspended; `SSL_free` itself does not require that
/// while there are other references.
pub(crate) unsafe fn free(original: unsafe extern "C" fn(*mut Ssl), ssl: *mut Ssl) {
    // SAFETY: the server's call. A handshake of another thread cannot be ended from here, so that thread calls it in;
    // if it cannot do so in time, it frees the SSL when it does.
    unsafe {
        match suspended(ssl) {
            Some(handshake) if handshake.references.load(Relaxed) > 0 => {
                handshake.references.fetch_sub(1, Relaxed);
            }
            Some(handshake) if !core::ptr::eq(Runtime::get(), handshake.runtime) => {
                if !handshake.is_called_in(ssl) {
                    return handshake.is_orphan.store(true, Release);
                }
                if handshake.take() {
                    handshake.let_go(ssl);
                }
            }
            // It is freed once its frames can be put back.
            Some(handshake) if handshake.is_out_of_reach() => {
                suspension::end(Doubt::DeepStack);
                return handshake.is_orphan.store(true, Release);
            }
            Some(handshake) => handshake.cancel_for_free(),
            None => {}
        }
        forget(ssl);
        original(ssl);
    }
}

/// # Safety
///
/// As for `SSL_clear`: `ssl` is a live SSL that no other thread of the server uses meanwhile.
pub(crate) unsafe fn clear(original: HandshakeFn, ssl: *mut Ssl) -> c_int {
    // SAFETY: as `free`; the SSL then starts over.
    unsafe {
        match suspended(ssl) {
            Some(handshake) if !core::ptr::eq(Runtime::get(), handshake.runtime) => {
                if !handshake.is_called_in(ssl) {
                    return 0;
                }
                if handshake.take() {
                    handshake.let_go(ssl);
                }
            }
            Some(handshake) if handshake.is_out_of_reach() => {
                suspension::end(Doubt::DeepStack);
                return 0;
            }
            Some(handshake) => handshake.cancel_for_clear(),
            None => {}
        }
        forget(ssl);
        original(ssl)
    }
}

fn forget(ssl: *const Ssl) {
    if let Some(runtime) = Runtime::existing() {
        runtime.turn.ended(ssl);
    }
}

/// # Safety
///
/// As for `SSL_up_ref`: `ssl` is a live SSL. No other thread gets or sets its ex_data meanwhile, which `SSL_up_ref`
/// itself does not require.
pub(crate) unsafe fn up_ref(original: HandshakeFn, ssl: *mut Ssl) -> c_int {
    // SAFETY: the server's call.
    unsafe {
        share(ssl);
        original(ssl)
    }
}

/// # Safety
///
/// As for `SSL_dup`: `ssl` is a live SSL that no other thread of the server uses meanwhile.
pub(crate) unsafe fn duplicate(
    original: unsafe extern "C" fn(*mut Ssl) -> *mut Ssl,
    ssl: *mut Ssl,
) -> *mut Ssl {
    // SAFETY: the server's call. During a handshake the copy is another reference.
    unsafe {
        let copy = original(ssl);
        if copy == ssl && !ssl.is_null() {
            share(ssl);
        }
        copy
    }
}

/// # Safety
///
/// As for `SSL_get_error`: `ssl` is a live SSL that no other thread of the server uses meanwhile.
pub(crate) unsafe fn get_error(
    original: unsafe extern "C" fn(*const Ssl, c_int) -> c_int,
    ssl: *const Ssl,
    result: c_int,
) -> c_int {
    // SAFETY: the server's call. If there is an error in the queue, something else has failed, such as SSL_shutdown.
    unsafe {
        let waits = result <= 0 && suspended(ssl).is_some() && ERR_peek_error.get()() == 0;
        if waits { SSL_ERROR_WANT_READ } else { original(ssl, result) }
    }
}

/// # Safety
///
/// As for `SSL_want`: `ssl` is a live SSL that no other thread of the server uses meanwhile.
pub(crate) unsafe fn want(original: unsafe extern "C" fn(*const Ssl) -> c_int, ssl: *const Ssl) -> c_int {
    // SAFETY: the server's call.
    unsafe { if suspended(ssl).is_some() { SSL_READING } else { original(ssl) } }
}

/// Lets a suspended handshake go on, as it would inside the called function; if it is not done then, returns the result
/// for that function.
///
/// # Safety
///
/// `ssl` is null, or as for [`drive`].
unsafe fn finish_handshake(ssl: *mut Ssl) -> Result<(), c_int> {
    // SAFETY: the server's SSL, on the server's thread.
    let Some(handshake) = (unsafe { suspended(ssl) }) else { return Ok(()) };
    let call = match handshake.call.get() {
        call @ Call::Handshake(_) => call,
        // Only the same function provides a buffer for its data.
        Call::EarlyData(..) => {
            set_would_block();
            return Err(-1);
        }
    };
    // SAFETY: as above.
    match unsafe { drive(ssl, call) } {
        done if done > 0 => Ok(()),
        waits_or_failed => Err(waits_or_failed),
    }
}

type Read = unsafe extern "C" fn(*mut Ssl, *mut c_void, c_int) -> c_int;
type Write = unsafe extern "C" fn(*mut Ssl, *const c_void, c_int) -> c_int;
type TransferEx = unsafe extern "C" fn(*mut Ssl, *mut c_void, usize, *mut usize) -> c_int;

/// # Safety
///
/// As for `SSL_read` or `SSL_peek`, whichever `original` is: `ssl` is a live SSL that no other thread of the server
/// uses meanwhile, and `data` is valid for writes of `len` bytes.
pub(crate) unsafe fn read(original: Read, ssl: *mut Ssl, data: *mut c_void, len: c_int) -> c_int {
    // SAFETY: the server's call.
    unsafe { finish_handshake(ssl).map_or_else(|result| result, |()| original(ssl, data, len)) }
}

/// # Safety
///
/// As for `SSL_write`: `ssl` is a live SSL that no other thread of the server uses meanwhile, and `data` is valid for
/// reads of `len` bytes.
pub(crate) unsafe fn write(original: Write, ssl: *mut Ssl, data: *const c_void, len: c_int) -> c_int {
    // SAFETY: the server's call.
    unsafe { finish_handshake(ssl).map_or_else(|result| result, |()| original(ssl, data, len)) }
}

/// For the functions that return a count in a variable; their result only says whether they succeeded.
///
/// # Safety
///
/// As for `original`, which is `SSL_read_ex` or a similar function: `ssl` is a live SSL that no other thread of the
/// server uses meanwhile, `data` is valid for `len` bytes of what the function does with it, and `done` is valid for a
/// write.
pub(crate) unsafe fn transfer_ex(
    original: TransferEx,
    ssl: *mut Ssl,
    data: *mut c_void,
    len: usize,
    done: *mut usize,
) -> c_int {
    // SAFETY: the server's call.
    unsafe { finish_handshake(ssl).map_or(0, |()| original(ssl, data, len, done)) }
}
