//! The client's side of the hybrid key exchange X25519MLKEM768.
//!
//! A client makes both key pairs before it knows whether the server will use them, so they have to be cheap: X25519's is from
//! the pool, ML-KEM's is made by the engine, and OpenSSL has neither unless it has to. The EVP_PKEY that libssl holds carries
//! them in its tag.

use core::ffi::c_int;
use core::ptr::null_mut;

use hasten_crypto::{Group, KeyPair, ML_KEM_CIPHERTEXT, ML_KEM_PRIVATE, ML_KEM_SEED, MlKemPair, wipe};
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::encapsulation::{Init, engine_here};
use super::hybrid::Hybrid;
use super::shortcuts::{self, Stand, is_stand_in};
use super::tag::Tag;
use super::{import, random};
use crate::hooks::original;
use crate::runtime::Runtime;

const GROUP: Hybrid = Hybrid::X25519MlKem768;
/// Bytes of a private key of X25519.
const POINT: usize = GROUP.group().private_len();
const SHARE: usize = GROUP.share_len();
const ANSWER: usize = GROUP.answer_len();
const SECRET: usize = GROUP.secret_len();

/// A client's new key pairs.
pub(super) struct Pair {
    ml_kem: MlKemPair,
    point: KeyPair,
}

/// New key pairs, if the engines have them.
pub(super) fn key_pair(runtime: &Runtime) -> Option<Pair> {
    let engine = engine_here()?;
    let mut seed = [0; ML_KEM_SEED];
    if !random::private(&mut seed) {
        return None;
    }
    let ml_kem = engine.ml_kem_key_pair(&mut seed);
    Some(Pair { ml_kem, point: runtime.batch.engine.key_pair(Group::X25519)? })
}

impl Pair {
    /// Stores them in the tag of an EVP_PKEY of ours.
    pub(super) fn attach(self, tag: &Tag) {
        let mut share = tag.share.borrow_mut();
        share.clear();
        share.extend_from_slice(&self.ml_kem.public());
        share.extend_from_slice(self.point.public());
        tag.set_private(self.point.private());
        tag.ml_kem.replace(Some(self.ml_kem));
    }
}

/// # Safety
///
/// As for `EVP_PKEY_get1_encoded_public_key`: `pkey` is null or alive, no other thread uses it meanwhile, and `out` is valid
/// for a write.
pub(crate) unsafe fn encoded_public_key(
    original: unsafe extern "C" fn(*mut EvpPkey, *mut *mut u8) -> usize,
    pkey: *mut EvpPkey,
    out: *mut *mut u8,
) -> usize {
    // SAFETY: the caller's EVP_PKEY; the copy is OpenSSL's memory, which the caller frees.
    unsafe {
        let tag = Tag::of(pkey).filter(|tag| !tag.escaped.get() && tag.has_ml_kem());
        let Some(tag) = tag.filter(|_| !out.is_null()) else { return original(pkey, out) };
        let share = tag.share.borrow();
        let copy = CRYPTO_malloc.get()(share.len(), c"hasten".as_ptr(), 0).cast::<u8>();
        if copy.is_null() {
            return 0;
        }
        copy.copy_from_nonoverlapping(share.as_ptr(), share.len());
        out.write(copy);
        share.len()
    }
}

/// # Safety
///
/// As for `EVP_PKEY_decapsulate_init`: `context` is null or a live EVP_PKEY_CTX, and `params` is null or an array with an end
/// marker.
pub(crate) unsafe fn decapsulate_init(
    original: Init,
    context: *mut EvpPkeyCtx,
    params: *const Param,
) -> c_int {
    // SAFETY: the caller's context.
    if is_stand_in(context, Stand::Decapsulate) { 1 } else { unsafe { original(context, params) } }
}

type Decapsulate = unsafe extern "C" fn(*mut EvpPkeyCtx, *mut u8, *mut usize, *const u8, usize) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_decapsulate`: `context` is null or a live EVP_PKEY_CTX, `secret_len` is valid for reads and writes,
/// `secret` is null or valid for writes of that many bytes, and `wrapped` is valid for reads of `wrapped_len`. With a stand-in,
/// the key that it was made from is alive until this returns.
pub(crate) unsafe fn decapsulate(
    original: Decapsulate,
    context: *mut EvpPkeyCtx,
    secret: *mut u8,
    secret_len: *mut usize,
    wrapped: *const u8,
    wrapped_len: usize,
) -> c_int {
    let Some(runtime) = shortcuts::behind(context, Stand::Decapsulate) else {
        // SAFETY: the caller's context.
        return unsafe { original(context, secret, secret_len, wrapped, wrapped_len) };
    };
    // SAFETY: libssl's call, with memory as long as it says; it keeps the key alive.
    unsafe {
        if !secret.is_null() && *secret_len < SECRET {
            return 0;
        }
        *secret_len = SECRET;
        if secret.is_null() {
            return 1;
        }
        let Some(own) = runtime.exchange.recipient() else { return 0 };
        let secret = &mut *secret.cast::<[u8; SECRET]>();
        let answer = core::slice::from_raw_parts(wrapped, wrapped_len);
        let done = Tag::of(own).is_some_and(|tag| take_out(runtime, tag, answer, secret));
        c_int::from(done || decapsulate_with_original(own, answer, secret))
    }
}

/// Takes both halves of the secret out of the server's answer; false if OpenSSL should try, with its own errors.
fn take_out(runtime: &Runtime, tag: &Tag, answer: &[u8], secret: &mut [u8; SECRET]) -> bool {
    let Ok(answer) = <&[u8; ANSWER]>::try_from(answer) else { return false };
    let (ciphertext, point) = answer.split_at(ML_KEM_CIPHERTEXT);
    let Some((first, second)) = secret.split_first_chunk_mut() else { return false };
    let ml_kem = tag.ml_kem.borrow();
    let (Some(_), Some(ml_kem), Ok(ciphertext)) = (engine_here(), &*ml_kem, ciphertext.try_into()) else {
        return false;
    };
    let mut private = tag.private.get();
    let done = runtime.batch.engine.derive(Group::X25519, &private[..POINT], point, second);
    wipe(&mut private);
    if done {
        ml_kem.decapsulate(ciphertext, first);
        slot().event(Event::HybridExchange);
    }
    done
}

/// Does what libssl originally asked for, with a key OpenSSL can use.
///
/// # Safety
///
/// `own` is a key of ours that stays alive until this returns.
unsafe fn decapsulate_with_original(own: *mut EvpPkey, answer: &[u8], secret: &mut [u8; SECRET]) -> bool {
    let mut len = SECRET;
    // SAFETY: the contract; OpenSSL's own functions in their documented order.
    unsafe {
        let context = original::EVP_PKEY_CTX_new_from_pkey.get();
        let Some(tag) = Tag::of(own) else { return false };
        let mut key = null_mut();
        if !import(tag, &mut key) {
            return false;
        }
        let context = context(null_mut(), key, core::ptr::null());
        let decapsulate = original::EVP_PKEY_decapsulate.get();
        let done = !context.is_null()
            && original::EVP_PKEY_decapsulate_init.get()(context, core::ptr::null()) > 0
            && decapsulate(context, secret.as_mut_ptr(), &raw mut len, answer.as_ptr(), answer.len()) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        original::EVP_PKEY_free.get()(key);
        done && len == SECRET
    }
}

/// Hands our key pairs over to OpenSSL.
///
/// # Safety
///
/// `pkey` is alive and has no key, `tag` is attached to it, and nothing else uses either meanwhile.
pub(super) unsafe fn complete(pkey: *mut EvpPkey, tag: &Tag) {
    let mut same = pkey;
    // SAFETY: the contract. If OpenSSL refuses, the EVP_PKEY has no key, and every use of it fails.
    let _ = unsafe { import(tag, &mut same) };
}

/// Imports our key pairs into OpenSSL, which encodes them as both private keys, and both public ones.
///
/// # Safety
///
/// `out` holds null, or a live EVP_PKEY that receives the key and that nothing else uses meanwhile.
unsafe fn import(tag: &Tag, out: &mut *mut EvpPkey) -> bool {
    let mut private = [0; ML_KEM_PRIVATE + POINT];
    let Some((ml_kem, point)) = private.split_first_chunk_mut() else { return false };
    match &*tag.ml_kem.borrow() {
        Some(pair) => pair.write_private(ml_kem),
        None => return false,
    }
    // SAFETY: the tag's bytes, which nothing changes meanwhile.
    point.copy_from_slice(unsafe { &(&*tag.private.as_ptr())[..POINT] });
    let share = tag.share.borrow();
    debug_assert_eq!(share.len(), SHARE);
    let mut params = [Param::octets(c"pub", &share), Param::octets(c"priv", &private), Param::end()];
    // SAFETY: the parameters have an end marker and live during the call; the caller's promise for `out`.
    let imported = unsafe { import::key(GROUP.name(), EVP_PKEY_KEYPAIR, &mut params, out) };
    wipe(&mut private);
    imported
}
