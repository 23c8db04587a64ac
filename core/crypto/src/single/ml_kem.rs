//! Encapsulation by ML-KEM-768.

use graviola::key_agreement::{mlkem768, x25519};

use super::Single;
use crate::memory::wipe_stack;
use crate::wipe;

/// Bytes of an encapsulation key of ML-KEM-768.
pub const ML_KEM_KEY: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT: usize = 1088;

impl Single {
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
        wipe_stack::<{ Self::ML_KEM_STACK }>();
        // The engine wipes the vector registers when it leaves what it considers an entry point: this is one.
        let _ = x25519::StaticPrivateKey::from_array(&[0; 32]);
        done
    }
}

/// On a stack frame of its own, so that [`wipe_stack`] reaches it.
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
