//! The groups of ephemeral Diffie-Hellman and the curves of ECDSA.

use crate::algorithm::Algorithm;

/// A NIST curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    P256,
    P384,
}

impl Curve {
    /// Bytes of a scalar or a coordinate.
    pub const fn bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    pub const fn sign(self) -> Algorithm {
        match self {
            Self::P256 => Algorithm::P256Sign,
            Self::P384 => Algorithm::P384Sign,
        }
    }
}

/// A group of ephemeral Diffie-Hellman.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    X25519,
    P256,
    P384,
}

impl Group {
    pub const MAX_PRIVATE: usize = 48;
    pub const MAX_PUBLIC: usize = 97;

    pub const ALL: [Self; 3] = [Self::X25519, Self::P256, Self::P384];

    /// Bytes of a private key: raw for X25519, a big-endian scalar otherwise.
    pub const fn private_len(self) -> usize {
        match self {
            Self::X25519 | Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    /// Bytes of a public key on the wire: raw for X25519, an uncompressed point otherwise.
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::P256 => 65,
            Self::P384 => 97,
        }
    }

    /// Bytes of a shared secret.
    pub const fn shared_len(self) -> usize {
        self.private_len()
    }

    pub const fn keygen(self) -> Algorithm {
        match self {
            Self::X25519 => Algorithm::X25519Keygen,
            Self::P256 => Algorithm::P256Keygen,
            Self::P384 => Algorithm::P384Keygen,
        }
    }

    pub const fn derive(self) -> Algorithm {
        match self {
            Self::X25519 => Algorithm::X25519Derive,
            Self::P256 => Algorithm::P256Derive,
            Self::P384 => Algorithm::P384Derive,
        }
    }
}
