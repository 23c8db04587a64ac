//! The key schedule: answers EVP_KDF and EVP_Q_mac with the same hash functions, but without their frameworks.
//!
//! A TLS 1.3 handshake derives some twenty secrets. For each, OpenSSL fetches an algorithm by name, creates a
//! context and parses parameters: together a fifth of the instructions of a handshake.

use core::ffi::{CStr, c_char, c_int, c_void};

use hasten_crypto::kdf;
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::digest::{Digest, with_hash};
use super::shortcuts::{self, Shortcut};
use super::{fetch, key_schedule};

type DeriveFn = unsafe extern "C" fn(*mut EvpKdfCtx, *mut u8, usize, *const Param) -> c_int;

/// Relies on libssl passing everything as parameters and using a context only once.
///
/// # Safety
///
/// As for `EVP_KDF_derive`: `out` is null or valid for writes of `len` bytes, and `params` is null or an array as
/// [`key_schedule::tls13`] takes it. `context` is a live EVP_KDF_CTX, and `out` overlaps none of the parameters' data.
pub(crate) unsafe fn derive(
    original: DeriveFn,
    context: *mut EvpKdfCtx,
    out: *mut u8,
    len: usize,
    params: *const Param,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        if shortcuts::using(Shortcut::KeySchedule).is_some() && !out.is_null() && !params.is_null() {
            let kdf = EVP_KDF_CTX_kdf.get()(context).cast_mut();
            let out = core::slice::from_raw_parts_mut(out, len);
            let done = if kdf.is_null() {
                None
            } else if kdf == fetch::TLS13_KDF.cached() {
                key_schedule::tls13(params, out)
            } else if kdf == fetch::TLS1_PRF.cached() {
                key_schedule::tls1_prf(params, out)
            } else {
                None
            };
            if done.is_some() {
                slot().event(Event::HkdfDirect);
                return 1;
            }
        }
        original(context, out, len, params)
    }
}

type QuickMac = unsafe extern "C" fn(
    *mut LibCtx,
    *const c_char,
    *const c_char,
    *const c_char,
    *const Param,
    *const c_void,
    usize,
    *const u8,
    usize,
    *mut u8,
    usize,
    *mut usize,
) -> *mut u8;

/// # Safety
///
/// As for `EVP_Q_mac`: `libctx` is null or a live library context; `name`, `properties` and `digest` are null or C
/// strings; `params` is null or an array with an end marker; `key` and `data` are null or valid for reads of `key_len`
/// and `len` bytes; `out` is null or valid for writes of `size` bytes, and `out_len` is null or valid for a write.
/// `out` overlaps neither `key` nor `data`.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn quick_mac(
    original: QuickMac,
    libctx: *mut LibCtx,
    name: *const c_char,
    properties: *const c_char,
    digest: *const c_char,
    params: *const Param,
    key: *const c_void,
    key_len: usize,
    data: *const u8,
    len: usize,
    out: *mut u8,
    size: usize,
    out_len: *mut usize,
) -> *mut u8 {
    // SAFETY: the caller's arguments, each as long as it says.
    unsafe {
        let plain = libctx.is_null() && properties.is_null() && !name.is_null() && !out.is_null();
        if plain
            && shortcuts::using(Shortcut::Finished).is_some()
            && (params.is_null() || (*params).key.is_null())
            && CStr::from_ptr(name) == c"HMAC"
            && let Some(digest) = Digest::from_c_name(digest).filter(|digest| digest.len() <= size)
        {
            let (key, data) = (bytes(key.cast(), key_len), bytes(data, len));
            let code = core::slice::from_raw_parts_mut(out, digest.len());
            with_hash!(digest, H => kdf::Hmac::<H>::new(key).mac(&[data], code));
            if let Some(out_len) = out_len.as_mut() {
                *out_len = digest.len();
            }
            slot().event(Event::MacDirect);
            return out;
        }
        original(libctx, name, properties, digest, params, key, key_len, data, len, out, size, out_len)
    }
}

/// # Safety
///
/// `data` is null or valid for reads of `len` bytes, and stays so, unchanged, while the result is used.
unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's data has this length; null stands for no data.
    if data.is_null() || len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(data, len) } }
}
