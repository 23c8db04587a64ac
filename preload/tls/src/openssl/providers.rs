//! Whether OpenSSL would do the cryptography of a handshake with its own default provider.
//!
//! A FIPS module, a provider for a hardware token or an accelerator may have taken over any algorithm, by configuration
//! or by a property. Its operations are meant to run there, so none of them is replaced.

use core::ffi::{CStr, c_char, c_void};

use super::abi::*;

type Fetch = unsafe extern "C" fn(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
type Provided = unsafe extern "C" fn(*const c_void) -> *const Provider;
type Free = unsafe extern "C" fn(*mut c_void);

/// Checks each algorithm that is replaced, with the default properties.
pub(crate) fn are_default() -> bool {
    let (keys, exchanges, signatures) = (
        (EVP_KEYMGMT_fetch.find(), EVP_KEYMGMT_get0_provider.find(), EVP_KEYMGMT_free.find()),
        (EVP_KEYEXCH_fetch.find(), EVP_KEYEXCH_get0_provider.find(), EVP_KEYEXCH_free.find()),
        (EVP_SIGNATURE_fetch.find(), EVP_SIGNATURE_get0_provider.find(), EVP_SIGNATURE_free.find()),
    );
    let (mac, kdf) = (
        (EVP_MAC_fetch.find(), EVP_MAC_get0_provider.find(), EVP_MAC_free.find()),
        (EVP_KDF_fetch.find(), EVP_KDF_get0_provider.find(), EVP_KDF_free.find()),
    );
    [c"X25519", c"EC", c"RSA"].iter().all(|name| is_default(keys, name))
        && [c"X25519", c"ECDH"].iter().all(|name| is_default(exchanges, name))
        && [c"RSA", c"ECDSA"].iter().all(|name| is_default(signatures, name))
        && is_default(mac, c"HMAC")
        && [c"TLS13-KDF", c"TLS1-PRF"].iter().all(|name| is_default(kdf, name))
}

/// Checks the hybrid exchange of this name, which is none of OpenSSL's own in a release that lacks it.
pub(super) fn has_default_hybrid(name: &CStr) -> bool {
    let keys = (EVP_KEYMGMT_fetch.find(), EVP_KEYMGMT_get0_provider.find(), EVP_KEYMGMT_free.find());
    let encapsulations = (EVP_KEM_fetch.find(), EVP_KEM_get0_provider.find(), EVP_KEM_free.find());
    // SAFETY: no argument; a name that the library does not know is not an error of the server's.
    unsafe {
        ERR_set_mark.get()();
        let has = is_default(keys, name) && is_default(encapsulations, name);
        ERR_pop_to_mark.get()();
        has
    }
}

fn is_default(kind: (Option<Fetch>, Option<Provided>, Option<Free>), name: &CStr) -> bool {
    let (Some(fetch), Some(provided), Some(free)) = kind else { return false };
    // SAFETY: libcrypto's own functions on its default context; what was fetched is freed, its provider stays.
    unsafe {
        let method = fetch(core::ptr::null_mut(), name.as_ptr(), core::ptr::null());
        if method.is_null() {
            return false;
        }
        let provider = provided(method);
        let is_default =
            !provider.is_null() && CStr::from_ptr(OSSL_PROVIDER_get0_name.get()(provider)) == c"default";
        free(method);
        is_default
    }
}
