//! ML-KEM-768: both sides of the exchange.

use std::fmt;

use graviola::key_agreement::{mlkem768, x25519};

use super::Single;
use crate::memory::wipe_stack;
use crate::wipe;

/// Bytes of an encapsulation key of ML-KEM-768.
pub const ML_KEM_KEY: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT: usize = 1088;
/// Bytes of the random seed of a key pair.
pub const ML_KEM_SEED: usize = 64;
/// Bytes of an encoded decapsulation key.
pub const ML_KEM_PRIVATE: usize = 2400;

/// A key pair of ML-KEM-768. What is secret is wiped when it is dropped.
pub struct MlKemPair(Box<mlkem768::DecapKey>);

impl fmt::Debug for MlKemPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlKemPair").finish_non_exhaustive()
    }
}

impl MlKemPair {
    /// The encapsulation key, as sent over the wire.
    #[must_use]
    pub fn public(&self) -> [u8; ML_KEM_KEY] {
        self.0.encapsulation_key().as_bytes()
    }

    /// Encodes the decapsulation key as FIPS 203 does.
    pub fn write_private(&self, out: &mut [u8; ML_KEM_PRIVATE]) {
        encode(self, out);
        finish();
    }

    /// Takes the shared secret out of a ciphertext. One that was not made with this key yields a secret that nobody has, as
    /// FIPS 203 demands. Needs [`Single::ML_KEM_STACK`] bytes of stack.
    pub fn decapsulate(&self, ciphertext: &[u8; ML_KEM_CIPHERTEXT], secret: &mut [u8; 32]) {
        decapsulate(self, ciphertext, secret);
        finish();
    }
}

impl Single {
    /// Makes a key pair of random bytes, which are wiped. Needs [`ML_KEM_STACK`](Self::ML_KEM_STACK) bytes of stack.
    #[must_use]
    pub fn ml_kem_key_pair(self, seed: &mut [u8; ML_KEM_SEED]) -> MlKemPair {
        let pair = generate(seed);
        wipe(seed);
        finish();
        pair
    }

    /// Whether this is an encapsulation key: FIPS 203's check of its input.
    #[must_use]
    pub fn is_ml_kem_key(self, key: &[u8; ML_KEM_KEY]) -> bool {
        mlkem768::EncapKey::from_bytes(key).is_ok()
    }

    /// Encapsulates a shared secret, made of the 32 random bytes in `message`, which are wiped. False, and no secret, if the
    /// key is none. Needs [`ML_KEM_STACK`](Self::ML_KEM_STACK) bytes of stack.
    #[must_use]
    pub fn ml_kem_encapsulate(
        self,
        key: &[u8; ML_KEM_KEY],
        message: &mut [u8; 32],
        ciphertext: &mut [u8; ML_KEM_CIPHERTEXT],
        secret: &mut [u8; 32],
    ) -> bool {
        let done = encapsulate(key, message, ciphertext, secret);
        wipe(message);
        finish();
        done
    }
}

/// Wipes what the functions below may have left behind. Each has a stack frame of its own, so that this reaches it.
fn finish() {
    wipe_stack::<{ Single::ML_KEM_STACK }>();
    // The engine wipes the vector registers when it leaves what it considers an entry point: this is one.
    let _ = x25519::StaticPrivateKey::from_array(&[0; 32]);
}

#[inline(never)]
fn generate(seed: &[u8; ML_KEM_SEED]) -> MlKemPair {
    MlKemPair(Box::new(mlkem768::DecapKey::keygen_internal(seed)))
}

#[inline(never)]
fn encode(pair: &MlKemPair, out: &mut [u8; ML_KEM_PRIVATE]) {
    *out = pair.0.as_bytes();
}

#[inline(never)]
fn decapsulate(pair: &MlKemPair, ciphertext: &[u8; ML_KEM_CIPHERTEXT], secret: &mut [u8; 32]) {
    let shared = pair.0.decaps_internal(&mlkem768::Ciphertext::from(*ciphertext));
    secret.copy_from_slice(shared.as_ref());
}

#[inline(never)]
fn encapsulate(
    key: &[u8; ML_KEM_KEY],
    message: &[u8; 32],
    ciphertext: &mut [u8; ML_KEM_CIPHERTEXT],
    secret: &mut [u8; 32],
) -> bool {
    let Ok(key) = mlkem768::EncapKey::from_bytes(key) else { return false };
    let (shared, encapsulated) = key.encaps_internal(mlkem768::Message(*message));
    ciphertext.copy_from_slice(encapsulated.as_ref());
    secret.copy_from_slice(shared.as_ref());
    true
}
