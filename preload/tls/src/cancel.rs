//! Ending a handshake that is suspended: its SSL is to be freed or to start over.
//!
//! The functions of libssl that are on its stack must return before their
//! SSL goes, so the operation they wait for fails. They must do so unnoticed:
//! freeing an SSL sends nothing and calls nobody, and what the server's
//! callbacks refer to may be gone already.

use core::ffi::c_int;

use hasten_telemetry::{Event, Reason, slot};

use crate::handshake::{Handshake, State};
use crate::openssl::*;
use crate::runtime::Runtime;

impl Handshake {
    /// Lets the handshake fail, so that its SSL can be freed.
    pub(crate) unsafe fn cancel_for_free(&self) {
        // SAFETY: the SSL of this handshake is alive, and this is its thread. An SSL that
        // has sent its last word sends no alert, and keeps its session in the cache.
        unsafe {
            SSL_set_shutdown.get()(self.ssl.get(), SSL_SENT_SHUTDOWN);
            self.cancel();
        }
    }

    /// Lets the handshake fail, so that its SSL can be used again. What it
    /// has written already, and the alert after that, go nowhere.
    pub(crate) unsafe fn cancel_for_clear(&self) {
        let ssl = self.ssl.get();
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

    unsafe fn cancel(&self) {
        self.cancelled.set(true);
        self.runtime.withdraw(self);
        slot().event(Event::Cancelled);
        slot().bypass(Reason::Cancelled);
        // SAFETY: as `cancel_for_free`. The errors of this failure are not the server's.
        unsafe {
            ERR_set_mark.get()();
            let state = self.runtime.run(self);
            debug_assert_eq!(state, State::Returned, "a cancelled handshake never waits");
            ERR_pop_to_mark.get()();
            self.stop_intercepting();
            self.detach();
        }
        self.runtime.release(self);
    }

    /// libssl remembers the info callback when a handshake function begins,
    /// and calls it when that ends: ours is in front of the server's, to be
    /// silent then.
    pub(crate) unsafe fn intercept(&self) {
        let ssl = self.ssl.get();
        // SAFETY: the SSL is alive; these functions only read and set a field.
        unsafe {
            self.own_informs.set(SSL_get_info_callback.get()(ssl));
            let inherited = || SSL_CTX_get_info_callback.get()(SSL_get_SSL_CTX.get()(ssl));
            self.informs.set(self.own_informs.get().or_else(inherited));
            if self.informs.get().is_some() {
                SSL_set_info_callback.get()(ssl, Some(inform));
            }
        }
    }

    /// Gives the server its callback back, unless it has set another meanwhile.
    pub(crate) unsafe fn stop_intercepting(&self) {
        let ssl = self.ssl.get();
        if self.informs.take().is_none() {
            return;
        }
        // SAFETY: as `intercept`.
        unsafe {
            if SSL_get_info_callback.get()(ssl)
                .is_some_and(|callback| core::ptr::fn_addr_eq(callback, inform as InfoFn))
            {
                SSL_set_info_callback.get()(ssl, self.own_informs.get());
            }
        }
    }
}

unsafe extern "C" fn inform(ssl: *const Ssl, kind: c_int, value: c_int) {
    let running = Runtime::existing().and_then(Runtime::running);
    let Some(handshake) = running.filter(|handshake| handshake.ssl.get().cast_const() == ssl) else { return };
    if !handshake.cancelled.get()
        && let Some(informs) = handshake.informs.get()
    {
        // SAFETY: libssl's call, for the callback that the server set.
        unsafe { informs(ssl, kind, value) }
    }
}
