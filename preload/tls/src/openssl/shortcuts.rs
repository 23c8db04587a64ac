//! Stand-ins for OpenSSL's key and signature contexts.
//!
//! Setting up an EVP_PKEY_CTX costs OpenSSL 3.0 more than the batched operation itself. Where libssl asks for one whose
//! operation the engine will do, it gets a stand-in: a real, inert EVP_PKEY_CTX, recognised by its address in the few
//! functions that libssl then calls. For libssl 3.0 those functions are known from its source. With a release newer
//! than those tested, another library context, property queries, or providers loaded at run time, there are no
//! stand-ins, and OpenSSL does its work itself.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use super::abi::*;
use super::{digest, release};
use crate::config;
use crate::hooks::original;

static ON: AtomicBool = AtomicBool::new(false);
static STAND_INS: [AtomicPtr<EvpPkeyCtx>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

/// The operation a stand-in stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// A signature with the server's key.
    Sign,
    /// Parameters or a key pair for a group.
    Generate,
    /// A shared secret with an ephemeral key of ours.
    Derive,
}

/// Whether stand-ins are in use.
#[inline]
pub(crate) fn are_on() -> bool {
    ON.load(Relaxed)
}

/// Turns stand-ins off: OpenSSL was reconfigured at run time, so their assumptions may no longer hold.
pub(crate) fn stop() {
    ON.store(false, Relaxed);
}

/// Checks the assumptions behind stand-ins, and creates them.
pub(crate) fn init() -> bool {
    // SAFETY: OpenSSL's own functions on its default context; stand-ins are never freed.
    unsafe {
        let ready = config::get().shortcuts
            && release::is_tested()
            && digest::is_available()
            && EVP_default_properties_is_fips_enabled
                .find()
                .is_some_and(|is_enabled| is_enabled(null_mut()) == 0);
        if !ready {
            return false;
        }
        for stand_in in &STAND_INS {
            let inert = original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), c"X25519".as_ptr(), null());
            if inert.is_null() {
                return false;
            }
            stand_in.store(inert, Relaxed);
        }
    }
    ON.store(true, Relaxed);
    true
}

pub(crate) fn stand_in(stand: Stand) -> *mut EvpPkeyCtx {
    STAND_INS[stand as usize].load(Relaxed)
}

#[inline]
pub(crate) fn is_stand_in(context: *const EvpPkeyCtx, stand: Stand) -> bool {
    !context.is_null() && core::ptr::eq(context, stand_in(stand))
}

/// Does not free stand-ins; frees everything else.
///
/// # Safety
///
/// As for `EVP_PKEY_CTX_free`: `context` is null, a stand-in, or an EVP_PKEY_CTX that the caller owns and gives up.
pub(crate) unsafe fn context_free(original: unsafe extern "C" fn(*mut EvpPkeyCtx), context: *mut EvpPkeyCtx) {
    let ours =
        [Stand::Sign, Stand::Generate, Stand::Derive].into_iter().any(|stand| is_stand_in(context, stand));
    if ours {
        super::exchange::context_freed(context);
    } else {
        // SAFETY: the caller's own context.
        unsafe { original(context) }
    }
}

macro_rules! reconfigures {
    ($($(#[$contract:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $(
        /// # Safety
        ///
        $(#[$contract])*
        pub(crate) unsafe fn $name(original: unsafe extern "C" fn($($ty),*) -> $ret, $($arg: $ty),*) -> $ret {
            stop();
            // SAFETY: the program's call.
            let result = unsafe { original($($arg),*) };
            crate::start::reconfigured();
            result
        })*
    };
}

reconfigures! {
    /// As for `OSSL_PROVIDER_load`: `libctx` is null or a live library context, and `name` is a C string.
    provider_load(libctx: *mut LibCtx, name: *const c_char) -> *mut Provider;
    /// As for `OSSL_PROVIDER_try_load`: `libctx` is null or a live library context, and `name` is a C string.
    provider_try_load(libctx: *mut LibCtx, name: *const c_char, retain_fallbacks: c_int) -> *mut Provider;
    /// As for `OSSL_PROVIDER_unload`: `provider` is null or a provider that the caller has loaded and gives up.
    provider_unload(provider: *mut Provider) -> c_int;
    /// As for `EVP_set_default_properties`: `libctx` is null or a live library context, and `properties` is null or a C string.
    set_default_properties(libctx: *mut LibCtx, properties: *const c_char) -> c_int;
    /// As for `RAND_set_rand_method`: `method` is null or a RAND_METHOD that is never freed.
    set_random(method: *const c_void) -> c_int;
    /// As for `EVP_default_properties_enable_fips`: `libctx` is null or a live library context.
    enable_fips(libctx: *mut LibCtx, enable: c_int) -> c_int;
}
