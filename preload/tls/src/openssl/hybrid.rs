//! The hybrid groups, and what is where in their messages.
//!
//! A share is an encapsulation key of ML-KEM and a public key of a classical group; the answer has a ciphertext in the place of
//! the first; the secret is both secrets. The standard has ML-KEM first with X25519, and last with the NIST curves.

use core::ffi::CStr;

use hasten_crypto::{Group, ML_KEM_CIPHERTEXT, ML_KEM_KEY};

/// A hybrid group of OpenSSL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hybrid {
    X25519MlKem768,
    P256MlKem768,
    P384MlKem1024,
}

/// Bytes of the secret of ML-KEM.
pub(super) const ML_KEM_SECRET: usize = 32;

impl Hybrid {
    pub(super) const ALL: [Self; 3] = [Self::X25519MlKem768, Self::P256MlKem768, Self::P384MlKem1024];

    /// The key type and the group, in OpenSSL.
    pub(super) const fn name(self) -> &'static CStr {
        match self {
            Self::X25519MlKem768 => c"X25519MLKEM768",
            Self::P256MlKem768 => c"SecP256r1MLKEM768",
            Self::P384MlKem1024 => c"SecP384r1MLKEM1024",
        }
    }

    pub(super) fn from_name(name: &CStr) -> Option<Self> {
        Self::ALL.into_iter().find(|hybrid| hybrid.name() == name)
    }

    /// The classical half.
    pub(super) const fn group(self) -> Group {
        match self {
            Self::X25519MlKem768 => Group::X25519,
            Self::P256MlKem768 => Group::P256,
            Self::P384MlKem1024 => Group::P384,
        }
    }

    /// Bytes of an encapsulation key.
    const fn key_len(self) -> usize {
        match self {
            Self::X25519MlKem768 | Self::P256MlKem768 => ML_KEM_KEY,
            Self::P384MlKem1024 => 1568,
        }
    }

    /// Bytes of a ciphertext.
    const fn ciphertext_len(self) -> usize {
        match self {
            Self::X25519MlKem768 | Self::P256MlKem768 => ML_KEM_CIPHERTEXT,
            Self::P384MlKem1024 => 1568,
        }
    }

    /// Bytes of the client's share.
    pub(super) const fn share_len(self) -> usize {
        self.key_len() + self.group().public_len()
    }

    /// Bytes of the server's share.
    pub(super) const fn answer_len(self) -> usize {
        self.ciphertext_len() + self.group().public_len()
    }

    /// Bytes of the secret.
    pub(super) const fn secret_len(self) -> usize {
        ML_KEM_SECRET + self.group().shared_len()
    }

    /// The encapsulation key and the public key in a client's share; `None` if it has another length.
    pub(super) fn split_share(self, share: &[u8]) -> Option<(&[u8], &[u8])> {
        let ml_kem = self.key_len();
        (share.len() == self.share_len()).then(|| match self {
            Self::X25519MlKem768 => share.split_at(ml_kem),
            Self::P256MlKem768 | Self::P384MlKem1024 => swapped(share.split_at(share.len() - ml_kem)),
        })
    }

    /// The places for the ciphertext and the public key in a server's share of the right length.
    pub(super) fn split_answer(self, answer: &mut [u8]) -> (&mut [u8], &mut [u8]) {
        self.split_mut(answer, self.ciphertext_len())
    }

    /// The places for ML-KEM's and the group's secret in a secret of the right length.
    pub(super) fn split_secret(self, secret: &mut [u8]) -> (&mut [u8], &mut [u8]) {
        self.split_mut(secret, ML_KEM_SECRET)
    }

    fn split_mut(self, bytes: &mut [u8], ml_kem: usize) -> (&mut [u8], &mut [u8]) {
        match self {
            Self::X25519MlKem768 => bytes.split_at_mut(ml_kem),
            Self::P256MlKem768 | Self::P384MlKem1024 => swapped(bytes.split_at_mut(bytes.len() - ml_kem)),
        }
    }
}

fn swapped<T>((first, second): (T, T)) -> (T, T) {
    (second, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the drafts for TLS.
    #[test]
    fn lengths_are_those_of_the_standard() {
        let lengths = Hybrid::ALL.map(|one| (one.share_len(), one.answer_len(), one.secret_len()));
        assert_eq!(lengths, [(1216, 1120, 64), (1249, 1153, 64), (1665, 1665, 80)]);
    }

    #[test]
    fn ml_kem_is_first_with_x25519_and_last_with_the_curves() {
        for hybrid in Hybrid::ALL {
            let mut bytes: Vec<u8> = (0..hybrid.share_len()).map(|at| (at >> 5) as u8).collect();
            let (key, point) = hybrid.split_share(&bytes).unwrap();
            let lengths = (key.len(), point.len());
            assert_eq!(lengths, (hybrid.key_len(), hybrid.group().public_len()));
            assert_eq!(key[0] < point[0], hybrid == Hybrid::X25519MlKem768, "{hybrid:?}");
            assert!(hybrid.split_share(&bytes[1..]).is_none());
            let (secret, shared) = hybrid.split_secret(&mut bytes[..hybrid.secret_len()]);
            assert_eq!((secret.len(), shared.len()), (32, hybrid.group().shared_len()));
            let (ciphertext, public) =
                hybrid.split_answer(&mut bytes[..hybrid.answer_len().min(hybrid.share_len())]);
            assert_eq!(
                (ciphertext.len(), public.len()),
                (hybrid.ciphertext_len(), hybrid.group().public_len())
            );
            assert_eq!(Hybrid::from_name(hybrid.name()), Some(hybrid));
        }
        assert_eq!(Hybrid::from_name(c"X25519"), None);
    }
}
