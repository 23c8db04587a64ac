//! Operations of public-key cryptography.

use crate::vocabulary::names;

/// Operations in one batch: the lanes of the vector unit.
pub const LANES: usize = 8;

/// A group size that no batch reaches: the break-even of an algorithm that gains nothing from a full batch.
pub const NEVER: usize = LANES + 1;

names! {
    /// An asymmetric operation of a TLS handshake that can be batched, as queued, measured and counted.
    Algorithm {
        Rsa2048Sign => "rsa-2048-sign",
        Rsa3072Sign => "rsa-3072-sign",
        Rsa4096Sign => "rsa-4096-sign",
        P256Sign => "p-256-sign",
        P384Sign => "p-384-sign",
        X25519Keygen => "x25519-keygen",
        P256Keygen => "p-256-keygen",
        P384Keygen => "p-384-keygen",
        X25519Derive => "x25519-derive",
        P256Derive => "p-256-derive",
        P384Derive => "p-384-derive",
    }
}
