//! The server's side of the hybrid key exchange X25519MLKEM768.
//!
//! The client sends an encapsulation key of ML-KEM-768 and a public key of X25519. The server answers with a ciphertext of the
//! one and a public key of the other, and the secret is both secrets. OpenSSL treats the pair as one key, which libssl
//! encapsulates to. Here X25519 takes its key pair from the pool and its secret from a batch, as an exchange by X25519 alone
//! does, and ML-KEM is done at once.

use core::ffi::{CStr, c_int};
use core::ptr::{null, null_mut};

use hasten_batch::{Request, Verdict};
use hasten_crypto::{Group, ML_KEM_CIPHERTEXT, ML_KEM_KEY, Single, wipe};
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::exchange::share_of;
use super::random;
use super::shortcuts::{self, Stand, is_stand_in};
use crate::config;
use crate::hooks::original;
use crate::runtime::Runtime;
use crate::stack;

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
pub(super) fn engine() -> Option<Single> {
    config::get().engine.single
}

/// The engine, if this stack has room for it: it needs more than OpenSSL, which keeps its matrices in the heap, and a
/// coroutine's stack may be small.
fn engine_here() -> Option<Single> {
    engine().filter(|_| stack::has_room(Single::ML_KEM_STACK))
}

/// Whether this is a client's share that OpenSSL would accept, and that the engine can encapsulate to here: all else is left
/// to OpenSSL, with its errors.
pub(super) fn accepts(share: &[u8]) -> bool {
    let key = share.first_chunk::<ML_KEM_KEY>().filter(|_| share.len() == SHARE);
    engine_here().zip(key).is_some_and(|(engine, key)| engine.is_ml_kem_key(key))
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
    let Some(runtime) = shortcuts::behind(context, Stand::Encapsulate) else {
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
        let Some(recipient) = runtime.exchange.recipient() else { return 0 };
        let answer = &mut *wrapped.cast::<[u8; ANSWER]>();
        let secret = &mut *secret.cast::<[u8; SECRET]>();
        match engine_here().map(|engine| exchange(runtime, engine, recipient, answer, secret)) {
            Some(Outcome::Done) => 1,
            Some(Outcome::Cancelled) => 0,
            Some(Outcome::Refused) | None => {
                c_int::from(encapsulate_with_original(recipient, answer, secret))
            }
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

/// Computes both halves. The handshake may be suspended meanwhile.
///
/// # Safety
///
/// `recipient` is a key of ours that stays alive until this returns.
unsafe fn exchange(
    runtime: &Runtime,
    engine: Single,
    recipient: *mut EvpPkey,
    answer: &mut [u8; ANSWER],
    secret: &mut [u8; SECRET],
) -> Outcome {
    // SAFETY: the contract. What is on the stack is copied when the handshake is suspended, so the share is not.
    let share = || unsafe { share_of(recipient) };
    let Some(peer) = share().and_then(|share| share.last_chunk().copied()) else { return Outcome::Refused };
    let Some((ciphertext, public)) = answer.split_first_chunk_mut() else { return Outcome::Refused };
    let Some((ml_kem, x25519)) = secret.split_first_chunk_mut() else { return Outcome::Refused };
    match exchange_points(runtime, &peer, public, x25519) {
        Outcome::Done => {}
        other => return other,
    }
    let mut message = [0; 32];
    let done = share().is_some_and(|share| {
        let key = share.first_chunk().filter(|_| random::private(&mut message));
        key.is_some_and(|key| engine.ml_kem_encapsulate(key, &mut message, ciphertext, ml_kem))
    });
    if done {
        slot().event(Event::HybridExchange);
        return Outcome::Done;
    }
    wipe(secret);
    Outcome::Refused
}

/// The half by X25519: its public key goes to `public`. The handshake may be suspended meanwhile.
fn exchange_points(runtime: &Runtime, peer: &[u8; POINT], public: &mut [u8], secret: &mut [u8]) -> Outcome {
    let engine = &runtime.batch.engine;
    let Some(pair) = engine.key_pair(Group::X25519) else { return Outcome::Refused };
    public.copy_from_slice(pair.public());
    match runtime.submit(&Request::Derive(Group::X25519, pair.private(), peer), secret) {
        Verdict::Done => Outcome::Done,
        Verdict::Cancelled => Outcome::Cancelled,
        _ if engine.derive(Group::X25519, pair.private(), peer, secret) => Outcome::Done,
        verdict => {
            if let Verdict::Bypass(reason) = verdict {
                slot().bypass(reason);
            }
            Outcome::Refused
        }
    }
}

/// Does what libssl originally asked for, with a key OpenSSL can use.
///
/// # Safety
///
/// `recipient` is a key of ours that stays alive until this returns.
unsafe fn encapsulate_with_original(
    recipient: *mut EvpPkey,
    answer: &mut [u8; ANSWER],
    secret: &mut [u8; SECRET],
) -> bool {
    // SAFETY: the contract; OpenSSL's own functions in their documented order; everything created is freed.
    unsafe {
        let Some(share) = share_of(recipient) else {
            // Somebody else has looked at it while the handshake was suspended, so OpenSSL has it.
            return encapsulate_to(recipient, answer, secret);
        };
        let parameters = original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), NAME.as_ptr(), null());
        let mut key = null_mut();
        let done = !parameters.is_null()
            && original::EVP_PKEY_paramgen_init.get()(parameters) > 0
            && original::EVP_PKEY_paramgen.get()(parameters, &raw mut key) > 0
            && original::EVP_PKEY_set1_encoded_public_key.get()(key, share.as_ptr(), share.len()) > 0
            && encapsulate_to(key, answer, secret);
        original::EVP_PKEY_CTX_free.get()(parameters);
        original::EVP_PKEY_free.get()(key);
        done
    }
}

/// # Safety
///
/// `key` is alive, and OpenSSL's own.
unsafe fn encapsulate_to(key: *mut EvpPkey, answer: &mut [u8; ANSWER], secret: &mut [u8; SECRET]) -> bool {
    let (mut answer_len, mut secret_len) = (ANSWER, SECRET);
    let (answer, secret) = (answer.as_mut_ptr(), secret.as_mut_ptr());
    // SAFETY: the contract; OpenSSL's own functions in their documented order.
    unsafe {
        let context = original::EVP_PKEY_CTX_new_from_pkey.get()(null_mut(), key, null());
        let encapsulate = original::EVP_PKEY_encapsulate.get();
        let done = !context.is_null()
            && original::EVP_PKEY_encapsulate_init.get()(context, null()) > 0
            && encapsulate(context, answer, &raw mut answer_len, secret, &raw mut secret_len) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        done && (answer_len, secret_len) == (ANSWER, SECRET)
    }
}
