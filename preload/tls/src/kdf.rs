//! The key schedule: EVP_KDF and EVP_Q_mac answered with the same hash functions, without their frameworks.
//!
//! A TLS 1.3 handshake derives some twenty secrets. In OpenSSL 3.0 each
//! fetches an algorithm by name, makes a context and parses parameters:
//! together a fifth of the instructions of a handshake.

use core::ffi::{CStr, c_char, c_int, c_void};

use hasten_crypto::{Hash, MAX_OUTPUT, kdf, wipe};
use hasten_telemetry::{Event, slot};

use crate::digest::{Digest, with_hash};
use crate::fetch;
use crate::hooks::original_with_caller;
use crate::openssl::*;
use crate::runtime::Runtime;
use crate::shortcuts;

/// libssl passes everything as parameters and uses a context once; others may
/// have set half of them before, hence only for libssl.
pub(crate) unsafe extern "C" fn derive(
    context: *mut EvpKdfCtx,
    out: *mut u8,
    len: usize,
    params: *const Param,
    caller: usize,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        if shortcuts::are_on()
            && Runtime::in_handshake().is_some()
            && shortcuts::libssl::contains(caller)
            && !out.is_null()
            && !params.is_null()
        {
            let kdf = EVP_KDF_CTX_kdf.get()(context).cast_mut();
            let out = core::slice::from_raw_parts_mut(out, len);
            let params = Params(params);
            let done = if kdf.is_null() {
                None
            } else if kdf == fetch::TLS13_KDF.cached() {
                tls13(&params, out)
            } else if kdf == fetch::TLS1_PRF.cached() {
                tls1_prf(&params, out)
            } else {
                None
            };
            if done.is_some() {
                slot().event(Event::HkdfDirect);
                return 1;
            }
        }
        original_with_caller::EVP_KDF_derive.get()(context, out, len, params)
    }
}

const EXTRACT_ONLY: c_int = 1;
const EXPAND_ONLY: c_int = 2;

/// TLS13-KDF; `None` leaves it, with any error there is, to the original.
unsafe fn tls13(params: &Params, out: &mut [u8]) -> Option<()> {
    // SAFETY: as `Params`.
    unsafe {
        let digest = Digest::from_c_name(params.find(c"digest")?.data.cast())?;
        if params.octets(c"prefix")? != b"tls13 " {
            return None;
        }
        let label = params.octets(c"label")?;
        let mode = params.find(c"mode")?;
        if mode.data_size != size_of::<c_int>() {
            return None;
        }
        match mode.data.cast::<c_int>().read() {
            EXPAND_ONLY => {
                let (secret, context) = (params.octets(c"key")?, params.octets(c"data").unwrap_or_default());
                with_hash!(digest, H => kdf::hkdf_expand_label(&kdf::Hmac::<H>::new(secret), label, context, out))
            }
            EXTRACT_ONLY => {
                let (secret, salt) = (params.octets(c"key"), params.octets(c"salt"));
                with_hash!(digest, H => next_secret::<H>(salt, label, secret, out))
            }
            _ => None,
        }
    }
}

/// The next of early, handshake and master secret (RFC 8446, section 7.1).
fn next_secret<H: Hash>(
    previous: Option<&[u8]>,
    label: &[u8],
    input: Option<&[u8]>,
    out: &mut [u8],
) -> Option<()> {
    let zeros = [0; MAX_OUTPUT];
    let mut salt = [0; MAX_OUTPUT];
    if let Some(previous) = previous {
        let mut nothing = [0; MAX_OUTPUT];
        H::new().finish(&mut nothing[..H::OUTPUT]);
        let previous = kdf::Hmac::<H>::new(previous);
        kdf::hkdf_expand_label(&previous, label, &nothing[..H::OUTPUT], &mut salt[..H::OUTPUT])?;
    }
    let done = kdf::hkdf_extract::<H>(&salt[..H::OUTPUT], input.unwrap_or(&zeros[..H::OUTPUT]), out);
    wipe(&mut salt);
    done
}

/// TLS1-PRF of TLS 1.2: label and randoms come as consecutive seeds.
unsafe fn tls1_prf(params: &Params, out: &mut [u8]) -> Option<()> {
    const SEEDS: usize = 256;
    let mut seed = [0; SEEDS];
    let mut len = 0;
    // SAFETY: as `Params`.
    unsafe {
        let digest = Digest::from_c_name(params.find(c"digest")?.data.cast())?;
        let secret = params.octets(c"secret")?;
        for param in params.all().filter(|param| CStr::from_ptr(param.key) == c"seed") {
            let part = Params::bytes(param)?;
            seed.get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
        }
        with_hash!(digest, H => kdf::tls12_prf(&kdf::Hmac::<H>::new(secret), &seed[..len], [&[], &[]], out));
    }
    Some(())
}

/// An array of OSSL_PARAM that ends with an end.
struct Params(*const Param);

impl Params {
    unsafe fn all<'a>(&self) -> impl Iterator<Item = &'a Param> {
        let mut at = self.0;
        core::iter::from_fn(move || {
            // SAFETY: the array ends with a null key, and `at` never passes it.
            unsafe {
                let param = &*at;
                if param.key.is_null() {
                    return None;
                }
                at = at.add(1);
                Some(param)
            }
        })
    }

    unsafe fn find<'a>(&self, key: &CStr) -> Option<&'a Param> {
        // SAFETY: keys are C strings.
        unsafe { self.all().find(|param| CStr::from_ptr(param.key) == key && !param.data.is_null()) }
    }

    unsafe fn octets<'a>(&self, key: &CStr) -> Option<&'a [u8]> {
        // SAFETY: as `find`.
        unsafe { Self::bytes(self.find(key)?) }
    }

    unsafe fn bytes<'a>(param: &Param) -> Option<&'a [u8]> {
        if param.data_type != Param::OCTET_STRING || param.data.is_null() {
            return None;
        }
        // SAFETY: an octet string has data_size bytes.
        Some(unsafe { core::slice::from_raw_parts(param.data.cast(), param.data_size) })
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
            && shortcuts::are_on()
            && Runtime::in_handshake().is_some()
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

unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's data has this length; null goes with none.
    if data.is_null() || len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(data, len) } }
}
