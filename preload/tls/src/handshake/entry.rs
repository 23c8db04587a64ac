//! The function of libssl that the server called, and what it returns while the handshake waits.

use core::ffi::{c_int, c_void};
use core::ptr::copy_nonoverlapping;

use super::Handshake;
use crate::openssl::*;

pub(crate) type HandshakeFn = unsafe extern "C" fn(*mut Ssl) -> c_int;
pub(crate) type EarlyDataFn = unsafe extern "C" fn(*mut Ssl, *mut c_void, usize, *mut usize) -> c_int;

/// The function that the server called.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Handshake(HandshakeFn),
    EarlyData(EarlyDataFn, EarlyBuffer),
}

/// The caller's side of `SSL_read_early_data`, valid during one call.
#[derive(Clone, Copy)]
pub(crate) struct EarlyBuffer {
    pub(super) data: *mut c_void,
    pub(super) len: usize,
    pub(super) read: *mut usize,
}

impl Call {
    /// # Safety
    ///
    /// As for the function in the call: `ssl` is a live SSL that nothing else uses meanwhile, and the buffer, if any,
    /// is valid until this returns.
    pub(super) unsafe fn invoke(self, ssl: *mut Ssl) -> c_int {
        // SAFETY: the arguments the server gave, or the handshake's own buffer.
        unsafe {
            match self {
                Call::Handshake(original) => original(ssl),
                Call::EarlyData(original, buffer) => original(ssl, buffer.data, buffer.len, buffer.read),
            }
        }
    }

    /// The result of a function that could not finish on a non-blocking socket.
    pub(super) fn would_block(self) -> c_int {
        set_would_block();
        match self {
            Call::Handshake(_) => -1,
            Call::EarlyData(_, buffer) => {
                // SAFETY: the caller's variable, valid during its call.
                unsafe { buffer.read.write(0) };
                SSL_READ_EARLY_DATA_ERROR
            }
        }
    }

    /// Copies early data to the buffer of the current call.
    ///
    /// # Safety
    ///
    /// The buffer, if any, is valid for writes of its length, and its variable for a write. The function of `handshake`
    /// has returned, and nothing else uses its early data.
    pub(super) unsafe fn deliver_early_data(self, handshake: &Handshake) {
        let Call::EarlyData(_, buffer) = self else { return };
        // OpenSSL requires a call to be repeated with the same arguments, so the data fits.
        let len = handshake.early_len.get().min(buffer.len);
        // SAFETY: the caller's buffer has `len` bytes and is valid during its call.
        unsafe {
            if len > 0 {
                copy_nonoverlapping(handshake.early_data.get(), buffer.data.cast(), len);
            }
            buffer.read.write(len);
        }
    }
}

/// Sets errno and the error queue as a libssl function that could not finish leaves them; SSL_get_error looks there.
pub(crate) fn set_would_block() {
    // SAFETY: both are this thread's.
    unsafe {
        *libc::__errno_location() = libc::EAGAIN;
        if ERR_peek_error.get()() != 0 {
            ERR_clear_error.get()();
        }
    }
}

pub(super) extern "C" fn never_called(_: *mut Ssl) -> c_int {
    -1
}
