//! The server's signature, in CertificateVerify or ServerKeyExchange.
//!
//! libssl initialises an EVP_MD_CTX with the key, sets the padding, and asks for the signature. For a key the engine
//! has, the first two steps are only noted ([`Signing`]), which saves OpenSSL's set-up of a provider context; if the
//! original has to sign after all, they are done then.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;

use hasten_batch::{MAX_SIGNATURE, Request, Verdict, device};
use hasten_crypto::{EcKey, MAX_OUTPUT, RsaKey, encoding};
use hasten_guard::clock::now;
use hasten_telemetry::{Event, Reason, slot};

use super::abi::*;
use super::digest::{self, Digest, with_hash};
use super::keys::{self, Key};
use super::random;
use super::shortcuts::{self, Shortcut, Stand};
use crate::config;
use crate::hooks::original;
use crate::runtime::Runtime;

/// A signature that libssl has set up but not yet requested. One per thread: nothing suspends a handshake between the
/// two.
#[derive(Clone, Copy)]
pub(crate) struct Signing {
    context: *mut EvpMdCtx,
    pkey: *mut EvpPkey,
    digest_name: *const c_char,
    digest: Digest,
    padding: c_int,
    params: *const Param,
}

#[derive(Default)]
pub(crate) struct SigningSlot(Cell<Option<Signing>>);

impl SigningSlot {
    /// Drops the set-up of an earlier call of the server.
    pub(crate) fn clear(&self) {
        self.0.set(None);
    }
}

type Init = unsafe extern "C" fn(
    *mut EvpMdCtx,
    *mut *mut EvpPkeyCtx,
    *const c_char,
    *mut LibCtx,
    *const c_char,
    *mut EvpPkey,
    *const Param,
) -> c_int;

/// # Safety
///
/// As for `EVP_DigestSignInit_ex`: `context` is a live EVP_MD_CTX, `pctx` is null or valid for a write, `libctx` is
/// null or a live library context, `name` and `properties` are null or C strings, `pkey` is null or alive, and `params`
/// is null or an array with an end marker. The caller is libssl, which keeps `pkey`, `name` and `params` until it has the
/// signature: a note of them holds no reference.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn digest_sign_init(
    original: Init,
    context: *mut EvpMdCtx,
    pctx: *mut *mut EvpPkeyCtx,
    name: *const c_char,
    libctx: *mut LibCtx,
    properties: *const c_char,
    pkey: *mut EvpPkey,
    params: *const Param,
) -> c_int {
    // SAFETY: libssl's call; the key is alive, the name a C string or null.
    unsafe {
        let plain =
            !pctx.is_null() && libctx.is_null() && properties.is_null() && says_nothing_new(params, name);
        if let Some(runtime) = shortcuts::using(Shortcut::Signature)
            && plain
            && is_usable(runtime, pkey)
            && let Some(digest) = Digest::from_c_name(name)
        {
            let padding = RSA_PKCS1_PADDING;
            runtime.signing.0.set(Some(Signing {
                context,
                pkey,
                digest_name: name,
                digest,
                padding,
                params,
            }));
            *pctx = shortcuts::stand_in(Stand::Sign);
            return 1;
        }
        original(context, pctx, name, libctx, properties, pkey, params)
    }
}

/// Whether these parameters are none, or those that OpenSSL 4.0 passes with every signature: the digest once more, and the
/// version of TLS, which no key of the default provider's that an engine has depends on.
///
/// # Safety
///
/// `params` is null or an array with an end marker, whose keys are C strings and whose data are as long as they say; `name`
/// is null or a C string.
unsafe fn says_nothing_new(params: *const Param, name: *const c_char) -> bool {
    let mut at = params;
    // SAFETY: no parameter follows the one without a key.
    while let Some(param) = unsafe { at.as_ref() }.filter(|param| !param.key.is_null()) {
        // SAFETY: as the contract says.
        let is_known = unsafe {
            match CStr::from_ptr(param.key).to_bytes() {
                b"tls-version" => true,
                b"digest" => !name.is_null() && param.text() == Some(CStr::from_ptr(name).to_bytes()),
                _ => false,
            }
        };
        if !is_known {
            return false;
        }
        // SAFETY: the array goes on at least until its end marker.
        at = unsafe { at.add(1) };
    }
    true
}

/// Whether an engine has the key; if not, counts the reason.
///
/// # Safety
///
/// `pkey` is null or a live EVP_PKEY.
unsafe fn is_usable(runtime: &Runtime, pkey: *mut EvpPkey) -> bool {
    // SAFETY: the key is alive.
    match unsafe { keys::find(pkey) } {
        Some(keys::Entry { key: Key::Rsa(_), .. }) if runtime.batch.device.is_here() => return true,
        Some(keys::Entry { key: Key::Refused(reason), .. }) => slot().bypass(*reason),
        Some(keys::Entry { key: Key::Ec(_), .. }) => match runtime.batch.engine.can_sign() {
            Ok(()) => return true,
            Err(reason) => slot().bypass(reason),
        },
        Some(_) => match runtime.batch.engine.refusal() {
            Some(reason) => slot().bypass(reason),
            None => return config::get().engine.lane_engine.is_some() || config::get().engine.bypass,
        },
        None => slot().bypass(Reason::UnsupportedKey),
    }
    false
}

/// Handles a call on the stand-in of a noted signature; `None` if it is not one.
fn on_noted(pctx: *mut EvpPkeyCtx, note: impl FnOnce(&mut Signing) -> c_int) -> Option<c_int> {
    let runtime = shortcuts::behind(pctx, Stand::Sign)?;
    let mut signing = runtime.signing.0.get()?;
    let result = note(&mut signing);
    runtime.signing.0.set(Some(signing));
    Some(result)
}

/// # Safety
///
/// As for `EVP_PKEY_CTX_set_rsa_padding`: `pctx` is null or a live EVP_PKEY_CTX.
pub(crate) unsafe fn set_rsa_padding(
    original: unsafe extern "C" fn(*mut EvpPkeyCtx, c_int) -> c_int,
    pctx: *mut EvpPkeyCtx,
    padding: c_int,
) -> c_int {
    let noted = on_noted(pctx, |signing| {
        signing.padding = padding;
        1
    });
    // SAFETY: libssl's call.
    noted.unwrap_or_else(|| unsafe { original(pctx, padding) })
}

/// # Safety
///
/// As for `EVP_PKEY_CTX_set_rsa_pss_saltlen`: `pctx` is null or a live EVP_PKEY_CTX.
pub(crate) unsafe fn set_pss_salt_len(
    original: unsafe extern "C" fn(*mut EvpPkeyCtx, c_int) -> c_int,
    pctx: *mut EvpPkeyCtx,
    len: c_int,
) -> c_int {
    // TLS uses only one salt length, that of the digest.
    let noted = on_noted(pctx, |_| if len == RSA_PSS_SALTLEN_DIGEST { 1 } else { -1 });
    // SAFETY: libssl's call.
    noted.unwrap_or_else(|| unsafe { original(pctx, len) })
}

type Sign = unsafe extern "C" fn(*mut EvpMdCtx, *mut u8, *mut usize, *const u8, usize) -> c_int;

/// # Safety
///
/// As for `EVP_DigestSign`: `context` is a live EVP_MD_CTX that was initialised for signing, `len` is valid for reads
/// and writes, `signature` is null or valid for writes of `*len` bytes, and `message` is valid for reads of
/// `message_len` bytes. The key stays alive until this returns; the handshake may be suspended meanwhile.
pub(crate) unsafe fn digest_sign(
    original: Sign,
    context: *mut EvpMdCtx,
    signature: *mut u8,
    len: *mut usize,
    message: *const u8,
    message_len: usize,
) -> c_int {
    let noted = Runtime::existing().and_then(|runtime| Some((runtime, runtime.signing.0.get()?)));
    let Some((runtime, signing)) = noted.filter(|(_, signing)| signing.context == context) else {
        // SAFETY: libssl's call, or anybody's.
        return unsafe { original(context, signature, len, message, message_len) };
    };
    // SAFETY: libssl's call: the key is alive, the buffers are as long as said.
    unsafe {
        let size = signing.signature_len();
        if signature.is_null() || *len < size {
            // The original would accept a shorter buffer if the signature happened to fit.
            *len = size;
            return c_int::from(signature.is_null());
        }
        runtime.signing.clear();
        let message = core::slice::from_raw_parts(message, message_len);
        let out = core::slice::from_raw_parts_mut(signature, size);
        signing.sign_or_let_sign(runtime, original, out, len, message)
    }
}

impl Signing {
    /// # Safety
    ///
    /// The noted EVP_PKEY is alive and stays so while the result is used.
    unsafe fn key<'a>(&self) -> &'a Key {
        // SAFETY: the SSL that signs keeps the key alive; the key was found when the signature was noted.
        unsafe { keys::find(self.pkey).map_or(&Key::Refused(Reason::UnsupportedKey), |entry| &entry.key) }
    }

    /// Signs with the engine, or with the original if the engine has no answer.
    ///
    /// # Safety
    ///
    /// As [`Signing::sign_with_original`]. The handshake may be suspended meanwhile.
    unsafe fn sign_or_let_sign(
        &self,
        runtime: &Runtime,
        original: Sign,
        out: &mut [u8],
        len: *mut usize,
        message: &[u8],
    ) -> c_int {
        // SAFETY: as the contract says.
        unsafe {
            match self.sign(runtime, message, out) {
                Ok(written) => {
                    *len = written;
                    1
                }
                Err(Verdict::Cancelled) => 0,
                Err(verdict) => {
                    if let Verdict::Bypass(reason) = verdict {
                        slot().bypass(reason);
                    }
                    self.sign_with_original(runtime, original, out, len, message)
                }
            }
        }
    }

    /// The greatest length of a signature by the key, which is also libcrypto's answer.
    ///
    /// # Safety
    ///
    /// The noted EVP_PKEY is alive.
    unsafe fn signature_len(&self) -> usize {
        // SAFETY: as `key`.
        match unsafe { self.key() } {
            Key::Rsa(key) => key.size().bytes(),
            // SEQUENCE { r, s }, each with a leading zero.
            Key::Ec(key) => 2 + 2 * (2 + 1 + key.curve().bytes()) + usize::from(key.curve().bytes() > 60),
            Key::Refused(_) => 0,
        }
    }

    /// # Safety
    ///
    /// The noted EVP_PKEY is alive until this returns. The handshake may be suspended meanwhile.
    unsafe fn sign(&self, runtime: &Runtime, message: &[u8], out: &mut [u8]) -> Result<usize, Verdict> {
        let hash = digest::hash(self.digest, message);
        let hash = &hash[..self.digest.len()];
        // SAFETY: as `key`.
        match unsafe { self.key() } {
            Key::Ec(key) => self.sign_ecdsa(runtime, key, hash, out),
            Key::Rsa(key) => self.sign_rsa(runtime, key, hash, out),
            Key::Refused(reason) => Err(Verdict::Bypass(*reason)),
        }
    }

    /// Signs in a batch if the handshake can wait for one, or at once if even a single lane beats the original.
    fn sign_ecdsa(
        &self,
        runtime: &Runtime,
        key: &EcKey,
        hash: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Verdict> {
        match runtime.submit(&Request::Ecdsa(key, hash), out) {
            Verdict::DoneWith(written) => Ok(written),
            Verdict::Cancelled => Err(Verdict::Cancelled),
            verdict => {
                let signature = runtime.batch.engine.ecdsa(key, hash);
                signature.and_then(|signature| signature.to_der(out)).ok_or(verdict)
            }
        }
    }

    fn sign_rsa(
        &self,
        runtime: &Runtime,
        key: &RsaKey,
        hash: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Verdict> {
        let refuse = Verdict::Bypass(Reason::UnsupportedParameters);
        let mut padded = [0; MAX_SIGNATURE];
        let padded = &mut padded[..key.size().bytes()];
        match self.padding {
            RSA_PKCS1_PADDING => encoding::pkcs1::pad(self.digest.kind(), hash, padded).ok_or(refuse)?,
            RSA_PKCS1_PSS_PADDING => {
                let mut salt = [0; MAX_OUTPUT];
                let salt = &mut salt[..self.digest.len()];
                if !random::public(salt) {
                    return Err(refuse);
                }
                with_hash!(self.digest, H => encoding::pss::pad::<H>(hash, salt, key.size().bits(), padded))
                    .ok_or(refuse)?;
            }
            _ => return Err(refuse),
        }
        let len = out.len();
        if device::is_requested() {
            runtime.batch.device.will_sign(key.size().sign());
        }
        match runtime.submit(&Request::Rsa(key, padded), out) {
            Verdict::Done => Ok(len),
            Verdict::Bypass(_) if runtime.batch.engine.rsa(key, padded, out) => Ok(len),
            other => Err(other),
        }
    }

    /// Does what libssl originally asked for.
    ///
    /// # Safety
    ///
    /// The noted EVP_PKEY and EVP_MD_CTX are alive, the noted name is a C string, the noted parameters are as
    /// [`digest_sign_init`] got them, `sign` is `EVP_DigestSign`, and `len`
    /// is valid for writes.
    unsafe fn sign_with_original(
        &self,
        runtime: &Runtime,
        sign: Sign,
        out: &mut [u8],
        len: *mut usize,
        message: &[u8],
    ) -> c_int {
        let mut pctx = null_mut();
        // SAFETY: the context is fresh, the key is alive, and the digest's name is libcrypto's own.
        unsafe {
            let (name, properties) = (self.digest_name, core::ptr::null());
            let init = original::EVP_DigestSignInit_ex.get();
            if init(self.context, &raw mut pctx, name, null_mut(), properties, self.pkey, self.params) <= 0 {
                return 0;
            }
            if self.padding == RSA_PKCS1_PSS_PADDING
                && (original::EVP_PKEY_CTX_set_rsa_padding.get()(pctx, self.padding) <= 0
                    || original::EVP_PKEY_CTX_set_rsa_pss_saltlen.get()(pctx, RSA_PSS_SALTLEN_DIGEST) <= 0)
            {
                return 0;
            }
            *len = out.len();
            let start = now();
            let result = sign(self.context, out.as_mut_ptr(), len, message.as_ptr(), message.len());
            match self.key() {
                Key::Rsa(key) => runtime.batch.engine.original_took(key.size().sign(), now() - start),
                Key::Ec(key) => runtime.batch.engine.original_took(key.curve().sign(), now() - start),
                Key::Refused(_) => {}
            }
            result
        }
    }
}

/// # Safety
///
/// As for `EVP_PKEY_digestsign_supports_digest`: `pkey` is null or alive, `libctx` is null or a live library context,
/// and `name` and `properties` are null or C strings.
pub(crate) unsafe fn supports_digest(
    original: unsafe extern "C" fn(*mut EvpPkey, *mut LibCtx, *const c_char, *const c_char) -> c_int,
    pkey: *mut EvpPkey,
    libctx: *mut LibCtx,
    name: *const c_char,
    properties: *const c_char,
) -> c_int {
    // SAFETY: libssl's call; the key is alive.
    unsafe {
        let plain = libctx.is_null() && properties.is_null();
        let known = if plain && shortcuts::using(Shortcut::Fetch).is_some() {
            Digest::from_c_name(name)
        } else {
            None
        };
        let Some((digest, entry)) = known.zip(keys::find(pkey)) else {
            return original(pkey, libctx, name, properties);
        };
        if entry.is_known_to_sign_with(digest) {
            slot().event(Event::FetchCached);
            return 1;
        }
        let answer = original(pkey, libctx, name, properties);
        if answer > 0 {
            entry.signs_with(digest);
        }
        answer
    }
}
