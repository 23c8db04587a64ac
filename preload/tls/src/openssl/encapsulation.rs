//! The server's side of the hybrid key exchange X25519MLKEM768.
//!
//! The client sends an encapsulation key of ML-KEM-768 and a public key of X25519. The server answers with a ciphertext of the
//! one and a public key of the other, and the secret is both secrets. OpenSSL treats the pair as one key, which libssl
//! encapsulates to. Here X25519 takes its key pair from the pool and its secret from a batch, as an exchange by X25519 alone
//! does, and ML-KEM is done at once.

use core::ffi::{CStr, c_int};
use core::ptr::{null, null_mut};
use std::sync::OnceLock;

use hasten_batch::{Request, Verdict};
use hasten_crypto::{Group, ML_KEM_CIPHERTEXT, ML_KEM_KEY, Scalar, wipe};
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::random;
use super::shortcuts::{Stand, is_stand_in};
use crate::hooks::original;
use crate::runtime::Runtime;

/// The key type and the group, in OpenSSL.
pub(super) const NAME: &CStr = c"X25519MLKEM768";

const POINT: usize = 32;
/// Bytes of the client's share.
const SHARE: usize = ML_KEM_KEY + POINT;
/// Bytes of the server's share.
const ANSWER: usize = ML_KEM_CIPHERTEXT + POINT;
/// Bytes of the secret.
const SECRET: usize = 2 * 32;

/// The engine for what is not done in lanes, if this CPU has what it needs.
pub(super) fn engine() -> Option<Scalar> {
    static ENGINE: OnceLock<Option<Scalar>> = OnceLock::new();
    *ENGINE.get_or_init(Scalar::detect)
}

/// Whether this is a client's share that OpenSSL would accept: all else is left to it, with its errors.
pub(super) fn accepts(share: &[u8]) -> bool {
    let key = share.first_chunk::<ML_KEM_KEY>().filter(|_| share.len() == SHARE);
    engine().zip(key).is_some_and(|(engine, key)| engine.is_ml_kem_key(key))
}

type Init = unsafe extern "C" fn(*mut EvpPkeyCtx, *const Param) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_encapsulate_init`: `context` is null or a live EVP_PKEY_CTX, and `params` is null or an array with an end
/// marker.
pub(crate) unsafe fn encapsulate_init(
    original: Init,
    context: *mut EvpPkeyCtx,
    params: *const Param,
) -> c_int {
    // SAFETY: the caller's context.
    if is_stand_in(context, Stand::Encapsulate) { 1 } else { unsafe { original(context, params) } }
}

type Encapsulate = unsafe extern "C" fn(*mut EvpPkeyCtx, *mut u8, *mut usize, *mut u8, *mut usize) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_encapsulate`: `context` is null or a live EVP_PKEY_CTX, both lengths are valid for reads and writes, and
/// `wrapped` and `secret` are null or valid for writes of that many bytes. With a stand-in, the key that it was made from is
/// alive until this returns; the handshake may be suspended meanwhile.
pub(crate) unsafe fn encapsulate(
    original: Encapsulate,
    context: *mut EvpPkeyCtx,
    wrapped: *mut u8,
    wrapped_len: *mut usize,
    secret: *mut u8,
    secret_len: *mut usize,
) -> c_int {
    let runtime = Runtime::existing().filter(|_| is_stand_in(context, Stand::Encapsulate));
    let Some(runtime) = runtime else {
        // SAFETY: the caller's context.
        return unsafe { original(context, wrapped, wrapped_len, secret, secret_len) };
    };
    // SAFETY: libssl's call: it keeps the key alive, and the buffers are as long as said.
    unsafe {
        if wrapped_len.is_null() || secret_len.is_null() {
            return 0;
        }
        let is_query = wrapped.is_null();
        if !is_query && (secret.is_null() || *wrapped_len < ANSWER || *secret_len < SECRET) {
            return 0;
        }
        (*wrapped_len, *secret_len) = (ANSWER, SECRET);
        if is_query {
            return 1;
        }
        let mut share = [0; SHARE];
        match runtime.exchange.share() {
            Some(kept) => share.copy_from_slice(&kept),
            None => return 0,
        }
        let answer = &mut *wrapped.cast::<[u8; ANSWER]>();
        let secret = &mut *secret.cast::<[u8; SECRET]>();
        match engine().map(|engine| exchange(runtime, engine, &share, answer, secret)) {
            Some(Outcome::Done) => 1,
            Some(Outcome::Cancelled) => 0,
            Some(Outcome::Refused) | None => c_int::from(encapsulate_with_original(&share, answer, secret)),
        }
    }
}

enum Outcome {
    Done,
    /// The connection went away.
    Cancelled,
    /// OpenSSL has the last word.
    Refused,
}

/// Computes both halves.
fn exchange(
    runtime: &Runtime,
    engine: Scalar,
    share: &[u8; SHARE],
    answer: &mut [u8; ANSWER],
    secret: &mut [u8; SECRET],
) -> Outcome {
    let (Some(key), Some(peer)) = (share.first_chunk(), share.last_chunk()) else { return Outcome::Refused };
    let Some((ciphertext, public)) = answer.split_first_chunk_mut() else { return Outcome::Refused };
    let Some((ml_kem, x25519)) = secret.split_first_chunk_mut() else { return Outcome::Refused };
    match exchange_points(runtime, engine, peer, public, x25519) {
        Outcome::Done => {}
        other => return other,
    }
    let mut message = [0; 32];
    if random::private(&mut message) && engine.ml_kem_encapsulate(key, &mut message, ciphertext, ml_kem) {
        slot().event(Event::HybridExchange);
        return Outcome::Done;
    }
    wipe(secret);
    Outcome::Refused
}

/// The half by X25519: its public key goes to `public`. The handshake may be suspended meanwhile.
fn exchange_points(
    runtime: &Runtime,
    engine: Scalar,
    peer: &[u8; POINT],
    public: &mut [u8],
    secret: &mut [u8],
) -> Outcome {
    let mut private = [0; POINT];
    if let Some(pair) = runtime.batch.engine.key_pair(Group::X25519) {
        private.copy_from_slice(pair.private());
        public.copy_from_slice(pair.public());
    } else if random::private(&mut private) {
        public.copy_from_slice(&engine.x25519_public(&private));
    } else {
        return Outcome::Refused;
    }
    let verdict = runtime.submit(&Request::Derive(Group::X25519, &private, peer), secret);
    let outcome = match (verdict, secret.first_chunk_mut()) {
        (Verdict::Done, _) => Outcome::Done,
        (Verdict::Cancelled, _) => Outcome::Cancelled,
        (verdict, Some(secret)) => {
            if let Verdict::Bypass(reason) = verdict {
                slot().bypass(reason);
            }
            slot().scalar(Group::X25519.derive(), 1);
            if engine.x25519(&private, peer, secret) { Outcome::Done } else { Outcome::Refused }
        }
        (_, None) => Outcome::Refused,
    };
    wipe(&mut private);
    outcome
}

/// Does what libssl originally asked for, with a key OpenSSL can use.
fn encapsulate_with_original(
    share: &[u8; SHARE],
    answer: &mut [u8; ANSWER],
    secret: &mut [u8; SECRET],
) -> bool {
    // SAFETY: OpenSSL's own functions in their documented order; everything created is freed.
    unsafe {
        let parameters = original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), NAME.as_ptr(), null());
        let mut key = null_mut();
        let has_key = !parameters.is_null()
            && original::EVP_PKEY_paramgen_init.get()(parameters) > 0
            && original::EVP_PKEY_paramgen.get()(parameters, &raw mut key) > 0
            && original::EVP_PKEY_set1_encoded_public_key.get()(key, share.as_ptr(), share.len()) > 0;
        original::EVP_PKEY_CTX_free.get()(parameters);
        let context = match has_key {
            true => original::EVP_PKEY_CTX_new_from_pkey.get()(null_mut(), key, null()),
            false => null_mut(),
        };
        let (mut answer_len, mut secret_len) = (ANSWER, SECRET);
        let done = !context.is_null()
            && original::EVP_PKEY_encapsulate_init.get()(context, null()) > 0
            && original::EVP_PKEY_encapsulate.get()(
                context,
                answer.as_mut_ptr(),
                &raw mut answer_len,
                secret.as_mut_ptr(),
                &raw mut secret_len,
            ) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        original::EVP_PKEY_free.get()(key);
        done && (answer_len, secret_len) == (ANSWER, SECRET)
    }
}
