//! The groups of ephemeral Diffie-Hellman and the curves of ECDSA.

use crate::Algorithm;
use crate::vocabulary::names;

names! {
    /// A NIST curve.
    Curve {
        P256 => "p-256",
        P384 => "p-384",
    }
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

names! {
    /// A group of ephemeral Diffie-Hellman.
    Group {
        X25519 => "x25519",
        P256 => "p-256",
        P384 => "p-384",
    }
}

impl Group {
    pub const MAX_PRIVATE: usize = 48;
    pub const MAX_PUBLIC: usize = 97;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_keys_are_as_long_as_said() {
        assert_eq!(Group::ALL.map(Group::private_len).into_iter().max(), Some(Group::MAX_PRIVATE));
        assert_eq!(Group::ALL.map(Group::public_len).into_iter().max(), Some(Group::MAX_PUBLIC));
    }

    #[test]
    fn operations_have_the_names_of_their_groups() {
        for group in Group::ALL {
            assert_eq!(group.keygen().as_str(), format!("{group}-keygen"));
            assert_eq!(group.derive().as_str(), format!("{group}-derive"));
        }
        for curve in Curve::ALL {
            assert_eq!(curve.sign().as_str(), format!("{curve}-sign"));
        }
    }
}
