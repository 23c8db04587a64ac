//! The groups of ephemeral Diffie-Hellman and the curves of ECDSA.

use std::ffi::CStr;

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
    /// The key type of all curves in OpenSSL.
    pub const KEY_TYPE: &'static CStr = c"EC";

    /// Bytes of a scalar or a coordinate.
    pub const fn bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    /// The curve of this name in OpenSSL or in TLS.
    pub fn from_openssl(name: &CStr) -> Option<Self> {
        Group::from_openssl(name)?.curve()
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

    /// The curve of the group, if it has one.
    pub const fn curve(self) -> Option<Curve> {
        match self {
            Self::X25519 => None,
            Self::P256 => Some(Curve::P256),
            Self::P384 => Some(Curve::P384),
        }
    }

    /// The group's key type in OpenSSL.
    pub const fn key_type(self) -> &'static CStr {
        match self {
            Self::X25519 => c"X25519",
            Self::P256 | Self::P384 => Curve::KEY_TYPE,
        }
    }

    /// Its names in OpenSSL and in TLS, as libssl and keys give them; hasten passes the first one to OpenSSL.
    pub const fn openssl_names(self) -> &'static [&'static CStr] {
        match self {
            Self::X25519 => &[c"X25519", c"x25519"],
            Self::P256 => &[c"P-256", c"prime256v1", c"secp256r1"],
            Self::P384 => &[c"P-384", c"secp384r1"],
        }
    }

    /// The first of [`Self::openssl_names`].
    pub const fn openssl_name(self) -> &'static CStr {
        self.openssl_names()[0]
    }

    /// The group of this name in OpenSSL or in TLS.
    pub fn from_openssl(name: &CStr) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.openssl_names().contains(&name))
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
    fn groups_are_known_by_what_openssl_calls_them() {
        for group in Group::ALL {
            for name in group.openssl_names() {
                assert_eq!(Group::from_openssl(name), Some(group), "{name:?}");
                assert_eq!(Curve::from_openssl(name), group.curve(), "{name:?}");
            }
            assert!(group.openssl_names().contains(&group.openssl_name()));
        }
        for other in [c"", c"P-521", c"p-256", c"prime192v1", c"X448", c"EC"] {
            assert_eq!((Group::from_openssl(other), Curve::from_openssl(other)), (None, None), "{other:?}");
        }
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
