//! The server's side of the hybrid key exchanges.
//!
//! OpenSSL treats both halves as one key, which libssl encapsulates to. Here the classical half takes its key pair from the pool
//! and its secret from a batch, as an exchange by that group alone does, and ML-KEM is done at once: ML-KEM-768 by the engine,
//! ML-KEM-1024, which it does not have, by OpenSSL.

use core::cell::Ref;
use core::ffi::{CStr, c_int};
use core::ptr::{null, null_mut};

use hasten_batch::{Request, Verdict};
use hasten_crypto::{Group, Single, wipe};
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::exchange::{self, share_of};
use super::hybrid::{Hybrid, ML_KEM_SECRET};
use super::shortcuts::{self, Stand, is_stand_in};
use super::tag::{Kind, Tag};
use super::{import, random};
use crate::config;
use crate::hooks::original;
use crate::runtime::Runtime;
use crate::stack;

/// The key type of the half that OpenSSL does.
const ML_KEM_1024: &CStr = c"ML-KEM-1024";

/// The engine for what is not done in lanes, if this CPU has what it needs.
pub(super) fn engine() -> Option<Single> {
    config::get().engine.single
}

/// The engine, if this stack has room for it: it needs more than OpenSSL, which keeps its matrices in the heap, and a
/// coroutine's stack may be small.
pub(super) fn engine_here() -> Option<Single> {
    engine().filter(|_| stack::has_room(Single::ML_KEM_STACK))
}

/// Takes a client's share, if it is one that OpenSSL would accept, and that can be encapsulated to here: all else is left to
/// OpenSSL, with its errors.
///
/// # Safety
///
/// `tag` is that of an EVP_PKEY of ours that has no key.
pub(super) unsafe fn accept(tag: &Tag, hybrid: Hybrid, share: &[u8]) -> bool {
    let Some((key, point)) = hybrid.split_share(share) else { return false };
    let is_key = match hybrid {
        Hybrid::X25519MlKem768 | Hybrid::P256MlKem768 => {
            engine_here().zip(key.first_chunk()).is_some_and(|(engine, key)| engine.is_ml_kem_key(key))
        }
        Hybrid::P384MlKem1024 => {
            tag.encapsulation_key.set(import(key));
            !tag.encapsulation_key.get().is_null()
        }
    };
    let is_good = is_key && (hybrid.group() == Group::X25519 || is_point(hybrid.group(), point));
    if is_good {
        tag.share.borrow_mut().extend_from_slice(share);
    } else {
        tag.drop_encapsulation_key();
    }
    is_good
}

/// Whether OpenSSL accepts a point of a curve.
fn is_point(group: Group, point: &[u8]) -> bool {
    let Some(runtime) = Runtime::existing() else { return false };
    let Some(pkey) = runtime.exchange.take(Kind::Classical(group)) else { return false };
    // SAFETY: the EVP_PKEY is ours alone; errors are dropped, because OpenSSL will report them itself.
    unsafe {
        ERR_set_mark.get()();
        let set = original::EVP_PKEY_set1_encoded_public_key.get()(pkey, point.as_ptr(), point.len());
        ERR_pop_to_mark.get()();
        exchange::pkey_free(original::EVP_PKEY_free.get(), pkey);
        set == 1
    }
}

/// OpenSSL's encapsulation key of ML-KEM-1024, or null.
fn import(key: &[u8]) -> *mut EvpPkey {
    let mut params = [Param::octets(c"pub", key), Param::end()];
    let mut pkey = null_mut();
    // SAFETY: the parameters have an end marker and live during the call. Errors are dropped, as above.
    unsafe {
        ERR_set_mark.get()();
        let imported = import::key(ML_KEM_1024, EVP_PKEY_PUBLIC_KEY, &mut params, &mut pkey);
        ERR_pop_to_mark.get()();
        if imported { pkey } else { null_mut() }
    }
}

pub(super) type Init = unsafe extern "C" fn(*mut EvpPkeyCtx, *const Param) -> c_int;

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
    let Some(recipient) = runtime.exchange.recipient() else { return 0 };
    // SAFETY: libssl's call, with memory as long as it says; it keeps the recipient alive.
    unsafe {
        let Some(Kind::Hybrid(hybrid)) = Tag::of(recipient).map(|tag| tag.kind) else { return 0 };
        let (answer_len, shared_len) = (hybrid.answer_len(), hybrid.secret_len());
        let is_query = wrapped.is_null() || secret.is_null();
        if !is_query && (*wrapped_len < answer_len || *secret_len < shared_len) {
            return 0;
        }
        (*wrapped_len, *secret_len) = (answer_len, shared_len);
        if is_query {
            return 1;
        }
        let answer = core::slice::from_raw_parts_mut(wrapped, answer_len);
        let secret = core::slice::from_raw_parts_mut(secret, shared_len);
        match exchange(runtime, hybrid, recipient, answer, secret) {
            Outcome::Done => 1,
            Outcome::Cancelled => 0,
            Outcome::Refused => c_int::from(encapsulate_with_original(hybrid, recipient, answer, secret)),
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
    hybrid: Hybrid,
    recipient: *mut EvpPkey,
    answer: &mut [u8],
    secret: &mut [u8],
) -> Outcome {
    let (ciphertext, public) = hybrid.split_answer(answer);
    let (ml_kem, shared) = hybrid.split_secret(secret);
    // SAFETY: the contract. What is on the stack is copied when the handshake is suspended, so the share is not.
    let share = || unsafe { share_of(recipient) };
    let mut peer = [0; Group::MAX_PUBLIC];
    let peer = &mut peer[..hybrid.group().public_len()];
    match share().as_deref().and_then(|share| hybrid.split_share(share)) {
        Some((_, point)) => peer.copy_from_slice(point),
        None => return Outcome::Refused,
    }
    match exchange_points(runtime, hybrid.group(), peer, public, shared) {
        Outcome::Done => {}
        other => return other,
    }
    let (Ok(ml_kem), Some(share)) = (ml_kem.try_into(), share()) else { return Outcome::Refused };
    // SAFETY: as above.
    if unsafe { encapsulate_ml_kem(hybrid, recipient, &share, ciphertext, ml_kem) } {
        slot().event(Event::HybridExchange);
        return Outcome::Done;
    }
    wipe(secret);
    Outcome::Refused
}

/// The half by ML-KEM; false if there is no engine here, or OpenSSL failed.
///
/// # Safety
///
/// `recipient` is a key of ours that stays alive until this returns.
unsafe fn encapsulate_ml_kem(
    hybrid: Hybrid,
    recipient: *mut EvpPkey,
    share: &Ref<'_, Vec<u8>>,
    ciphertext: &mut [u8],
    secret: &mut [u8; ML_KEM_SECRET],
) -> bool {
    if hybrid == Hybrid::P384MlKem1024 {
        // SAFETY: the tag keeps OpenSSL's key alive.
        return unsafe {
            let key = Tag::of(recipient).map_or(null_mut(), |tag| tag.encapsulation_key.get());
            !key.is_null() && encapsulate_to(key, ciphertext, secret)
        };
    }
    let Some(engine) = engine_here() else { return false };
    let key = hybrid.split_share(share).and_then(|(key, _)| key.first_chunk());
    let (Some(key), Ok(ciphertext)) = (key, ciphertext.try_into()) else { return false };
    let mut message = [0; 32];
    random::private(&mut message) && engine.ml_kem_encapsulate(key, &mut message, ciphertext, secret)
}

/// The classical half: its public key goes to `public`. The handshake may be suspended meanwhile.
fn exchange_points(
    runtime: &Runtime,
    group: Group,
    peer: &[u8],
    public: &mut [u8],
    secret: &mut [u8],
) -> Outcome {
    let engine = &runtime.batch.engine;
    let Some(pair) = engine.key_pair(group) else { return Outcome::Refused };
    public.copy_from_slice(pair.public());
    match runtime.submit(&Request::Derive(group, pair.private(), peer), secret) {
        Verdict::Done => Outcome::Done,
        Verdict::Cancelled => Outcome::Cancelled,
        _ if engine.derive(group, pair.private(), peer, secret) => Outcome::Done,
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
    hybrid: Hybrid,
    recipient: *mut EvpPkey,
    answer: &mut [u8],
    secret: &mut [u8],
) -> bool {
    // SAFETY: the contract; OpenSSL's own functions in their documented order; everything created is freed.
    unsafe {
        let Some(share) = share_of(recipient) else {
            // Somebody else has looked at it while the handshake was suspended, so OpenSSL has it.
            return encapsulate_to(recipient, answer, secret);
        };
        let name = hybrid.name().as_ptr();
        let parameters = original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), name, null());
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
unsafe fn encapsulate_to(key: *mut EvpPkey, answer: &mut [u8], secret: &mut [u8]) -> bool {
    let (mut answer_len, mut secret_len) = (answer.len(), secret.len());
    // SAFETY: the contract; OpenSSL's own functions in their documented order.
    unsafe {
        let context = original::EVP_PKEY_CTX_new_from_pkey.get()(null_mut(), key, null());
        let encapsulate = original::EVP_PKEY_encapsulate.get();
        let (answer_at, secret_at) = (answer.as_mut_ptr(), secret.as_mut_ptr());
        let done = !context.is_null()
            && original::EVP_PKEY_encapsulate_init.get()(context, null()) > 0
            && encapsulate(context, answer_at, &raw mut answer_len, secret_at, &raw mut secret_len) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        done && (answer_len, secret_len) == (answer.len(), secret.len())
    }
}
