//! The key derivation functions of TLS, from the parameters that libssl gives to EVP_KDF.

use core::ffi::{CStr, c_int};

use hasten_crypto::{Hash, MAX_OUTPUT, kdf, wipe};

use super::abi::Param;
use super::digest::{Digest, with_hash};

const EXTRACT_ONLY: c_int = 1;
const EXPAND_ONLY: c_int = 2;

/// TLS13-KDF; `None` leaves it to the original, along with any error.
///
/// # Safety
///
/// `params` is an array of OSSL_PARAM with an end marker; their data has the stated lengths, and text is
/// null-terminated.
pub(crate) unsafe fn tls13(params: *const Param, out: &mut [u8]) -> Option<()> {
    if out.is_empty() {
        return None;
    }
    let params = Params(params);
    // SAFETY: as the contract says.
    unsafe {
        let digest = params.digest()?;
        if params.octets(c"prefix")?? != b"tls13 " {
            return None;
        }
        let label = params.octets(c"label")??;
        // OpenSSL reads all of them, whichever it needs.
        let (secret, salt) = (params.octets(c"key")?, params.octets(c"salt")?);
        let context = params.octets(c"data")?.unwrap_or_default();
        match params.integer(c"mode")? {
            EXPAND_ONLY => {
                let secret = secret?;
                with_hash!(digest, H => kdf::hkdf_expand_label(&kdf::Hmac::<H>::new(secret), label, context, out))
            }
            EXTRACT_ONLY => with_hash!(digest, H => next_secret::<H>(salt, label, secret, out)),
            _ => None,
        }
    }
}

/// The next secret: early, handshake or master (RFC 8446, section 7.1).
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

/// TLS1-PRF of TLS 1.2: label and randoms come as consecutive seeds. libssl passes five, the last of them empty.
///
/// # Safety
///
/// As [`tls13`].
pub(crate) unsafe fn tls1_prf(params: *const Param, out: &mut [u8]) -> Option<()> {
    const SEEDS: usize = 256;
    let params = Params(params);
    let mut seed = [0; SEEDS];
    let mut len = 0;
    // SAFETY: as the contract says.
    unsafe {
        let digest = params.digest()?;
        let secret = params.octets(c"secret")??;
        let seeds = params.all().filter(|param| CStr::from_ptr(param.key) == c"seed");
        for param in seeds.filter(|param| !param.data.is_null()) {
            let part = Params::bytes(param)?;
            seed.get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
        }
        if len == 0 || out.is_empty() {
            return None;
        }
        with_hash!(digest, H => kdf::tls12_prf(&kdf::Hmac::<H>::new(secret), &seed[..len], [&[], &[]], out));
    }
    Some(())
}

/// An array of OSSL_PARAM with an end marker.
struct Params(*const Param);

impl Params {
    /// # Safety
    ///
    /// The array is as [`tls13`] takes it, and stays so while the iterator and its items are used.
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

    /// # Safety
    ///
    /// As [`Params::all`].
    unsafe fn find<'a>(&self, key: &CStr) -> Option<&'a Param> {
        // SAFETY: keys are C strings.
        unsafe { self.all().find(|param| CStr::from_ptr(param.key) == key) }
    }

    /// # Safety
    ///
    /// As [`Params::all`].
    unsafe fn digest(&self) -> Option<Digest> {
        // SAFETY: text is null-terminated.
        unsafe {
            let param = self.find(c"digest").filter(|param| param.data_type == Param::UTF8_STRING)?;
            Digest::from_c_name(param.data.cast())
        }
    }

    /// # Safety
    ///
    /// As [`Params::all`].
    unsafe fn integer(&self, key: &CStr) -> Option<c_int> {
        // SAFETY: as `find`; an integer of this size is a `c_int`.
        unsafe {
            let param = self.find(key).filter(|param| param.data_type == Param::INTEGER)?;
            let fits = param.data_size == size_of::<c_int>() && !param.data.is_null();
            fits.then(|| param.data.cast::<c_int>().read_unaligned())
        }
    }

    /// Outer option: whether the parameter is well-formed. Inner option: whether it is present.
    ///
    /// # Safety
    ///
    /// As [`Params::all`].
    unsafe fn octets<'a>(&self, key: &CStr) -> Option<Option<&'a [u8]>> {
        // SAFETY: as `find`.
        unsafe { self.find(key).map_or(Some(None), |param| Self::bytes(param).map(Some)) }
    }

    /// # Safety
    ///
    /// `param` is an element of such an array: the data of an octet string is null or has `data_size` bytes, which do
    /// not change while the result is used.
    unsafe fn bytes<'a>(param: &Param) -> Option<&'a [u8]> {
        if param.data_type != Param::OCTET_STRING || param.data.is_null() {
            return None;
        }
        // SAFETY: an octet string has data_size bytes.
        Some(unsafe { core::slice::from_raw_parts(param.data.cast(), param.data_size) })
    }
}
