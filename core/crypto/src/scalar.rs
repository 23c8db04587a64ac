//! Operations for which eight lanes have no engine, or that cannot wait for seven others: ML-KEM-768 and X25519, one at a
//! time.
//!
//! The engine is graviola: constant-time, formally verified arithmetic, two to five times as fast as OpenSSL's ML-KEM.

use graviola::key_agreement::{mlkem768, x25519};

use crate::memory::wipe_stack;
use crate::wipe;

/// Bytes of an encapsulation key of ML-KEM-768.
pub const ML_KEM_KEY: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT: usize = 1088;

/// Proof that this CPU has what the engine needs.
#[derive(Clone, Copy, Debug)]
pub struct Scalar(());

impl Scalar {
    /// Bytes of the stack that an operation may use: 30 KiB in an encapsulation, twice as many in an unoptimised build.
    pub const STACK: usize = if cfg!(debug_assertions) { 96 << 10 } else { 48 << 10 };

    /// CPUs since Haswell and Zen have it; emulators may not.
    #[must_use]
    pub fn detect() -> Option<Self> {
        graviola::util::is_cpu_supported().then_some(Self(()))
    }

    /// The public key of a private one.
    #[must_use]
    pub fn x25519_public(self, private: &[u8; 32]) -> [u8; 32] {
        x25519::StaticPrivateKey::from_array(private).public_key().as_bytes()
    }

    /// The shared secret; false, and no secret, if it would be zero.
    #[must_use]
    pub fn x25519(self, private: &[u8; 32], peer: &[u8; 32], secret: &mut [u8; 32]) -> bool {
        let peer = x25519::PublicKey::from_array(peer);
        match x25519::StaticPrivateKey::from_array(private).diffie_hellman(&peer) {
            Ok(shared) => {
                secret.copy_from_slice(&shared.0);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether this is an encapsulation key: FIPS 203's check of its input.
    #[must_use]
    pub fn is_ml_kem_key(self, key: &[u8; ML_KEM_KEY]) -> bool {
        mlkem768::EncapKey::from_bytes(key).is_ok()
    }

    /// Encapsulates a shared secret, made of the 32 random bytes in `message`, which are wiped. False, and no secret, if the
    /// key is none.
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
        wipe_stack::<{ Self::STACK }>();
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
