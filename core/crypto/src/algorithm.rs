//! The operations that are worth a batch.

use std::fmt;

/// One operation of a TLS handshake, as queued, measured and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Algorithm {
    Rsa2048Sign,
    Rsa3072Sign,
    Rsa4096Sign,
    P256Sign,
    P384Sign,
    X25519Keygen,
    P256Keygen,
    P384Keygen,
    X25519Derive,
    P256Derive,
    P384Derive,
}

impl Algorithm {
    pub const COUNT: usize = 11;

    /// Every algorithm, in the order of [`index`](Self::index).
    pub const ALL: [Self; Self::COUNT] = [
        Self::Rsa2048Sign,
        Self::Rsa3072Sign,
        Self::Rsa4096Sign,
        Self::P256Sign,
        Self::P384Sign,
        Self::X25519Keygen,
        Self::P256Keygen,
        Self::P384Keygen,
        Self::X25519Derive,
        Self::P256Derive,
        Self::P384Derive,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rsa2048Sign => "rsa-2048-sign",
            Self::Rsa3072Sign => "rsa-3072-sign",
            Self::Rsa4096Sign => "rsa-4096-sign",
            Self::P256Sign => "p-256-sign",
            Self::P384Sign => "p-384-sign",
            Self::X25519Keygen => "x25519-keygen",
            Self::P256Keygen => "p-256-keygen",
            Self::P384Keygen => "p-384-keygen",
            Self::X25519Derive => "x25519-derive",
            Self::P256Derive => "p-256-derive",
            Self::P384Derive => "p-384-derive",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Algorithm;

    #[test]
    fn indices_and_names_lead_back() {
        for (index, algorithm) in Algorithm::ALL.into_iter().enumerate() {
            assert_eq!(algorithm.index(), index);
            assert_eq!(Algorithm::from_name(algorithm.as_str()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("rsa-1024-sign"), None);
    }
}
