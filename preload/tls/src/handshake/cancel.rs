//! Ends a suspended handshake whose SSL is to be freed or to start over.
//!
//! The suspended functions of libssl must release what they hold before their SSL is freed, so the operation they wait
//! for fails. That must go unnoticed: freeing an SSL sends nothing and calls nothing, and the data of the server's
//! callbacks may already be gone. The last thing that libssl's state machine does before it notifies the info callback
//! of its return is to free a buffer; there the function is abandoned.

use core::ffi::c_void;

use hasten_telemetry::{Event, Reason, slot};

use crate::handshake::{Handshake, State};
use crate::openssl::errors::Errors;
use crate::openssl::*;
use crate::runtime::Runtime;

impl Handshake {
    /// Makes the handshake fail, so that its SSL can be freed.
    ///
    /// # Safety
    ///
    /// The handshake is suspended, this is its thread, and its frames can be put back here (not
    /// [`Handshake::is_out_of_reach`]). Its SSL is alive and not used by another thread meanwhile.
    pub(crate) unsafe fn cancel_for_free(&self) {
        // SAFETY: the SSL of this handshake is alive, and this is its thread. An SSL marked as shut down sends no
        // alert, and keeps its session in the cache.
        unsafe {
            SSL_set_shutdown.get()(self.ssl(), SSL_SENT_SHUTDOWN);
            self.cancel();
        }
    }

    /// Makes the handshake fail, so that its SSL can be used again. Its unsent output, and the alert that follows, are
    /// discarded.
    ///
    /// # Safety
    ///
    /// As [`Handshake::cancel_for_free`].
    pub(crate) unsafe fn cancel_for_clear(&self) {
        let ssl = self.ssl();
        // SAFETY: as `cancel_for_free`. Setting a BIO frees the old one, hence the reference.
        unsafe {
            let (wire, nowhere) = (SSL_get_wbio.get()(ssl), BIO_new.get()(BIO_s_null.get()()));
            if wire.is_null() || nowhere.is_null() || BIO_up_ref.get()(wire) != 1 {
                return self.cancel_for_free();
            }
            SSL_set0_wbio.get()(ssl, nowhere);
            self.cancel();
            SSL_set0_wbio.get()(ssl, wire);
        }
    }

    /// # Safety
    ///
    /// As [`Handshake::cancel_for_free`].
    unsafe fn cancel(&self) {
        slot().event(Event::Cancelled);
        slot().bypass(Reason::Cancelled);
        // SAFETY: as `cancel_for_free`. The errors of this failure do not belong to the server.
        unsafe {
            if self.state.get() != State::Returned {
                self.cancelled.set(true);
                self.runtime.withdraw(self);
                let errors = Errors::default();
                errors.take();
                self.runtime.is_cancelling.set(true);
                let state = self.runtime.aside(|| self.runtime.resume(self));
                self.runtime.is_cancelling.set(false);
                debug_assert_eq!(state, State::Returned, "a cancelled handshake never waits");
                ERR_clear_error.get()();
                errors.raise();
            }
            self.take();
            self.runtime.ready.forget(self);
            self.detach();
        }
        self.runtime.release(self);
    }
}

/// Called when libssl frees a buffer, perhaps at the end of its state machine.
///
/// # Safety
///
/// As for `BUF_MEM_free`: `buffer` is null or a BUF_MEM that nothing uses any more. The caller is libssl: if it passes
/// null while a handshake is cancelled, it does so at the end of its state machine.
pub(crate) unsafe fn buffer_free(original: unsafe extern "C" fn(*mut c_void), buffer: *mut c_void) {
    if buffer.is_null()
        && let Some(runtime) = Runtime::existing().filter(|runtime| runtime.is_cancelling.get())
        && let Some(handshake) = runtime.running()
    {
        handshake.result.set(-1);
        handshake.state.set(State::Returned);
        // SAFETY: called by the state machine that the slice runs: it and its caller have nothing left to do but call
        // back into the server.
        unsafe { handshake.slice.abandon() }
    }
    // SAFETY: libssl's buffer.
    unsafe { original(buffer) }
}
