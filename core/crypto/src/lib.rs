//! Asymmetric TLS operations in batches of eight, and the encodings around them.
//!
//! The crate is linked into a preload library and runs inside other people's servers: it depends on libc alone, never
//! panics on input, never allocates in an operation, and leaves no secret behind. Where it has no result, the caller runs
//! the host's own function.
//!
//! ```
//! use hasten_crypto::{Curve, EcKey, EcdsaSignature, Ifma, NoncePool, Scratch};
//!
//! let Some(ifma) = Ifma::detect() else { return };
//! let mut scratch = Scratch::new(ifma);
//! let mut random = |bytes: &mut [u8]| {
//!     // The host's DRBG goes here.
//! #   for (i, byte) in bytes.iter_mut().enumerate() { *byte = i as u8 + 1 }
//!     true
//! };
//!
//! // Once in eight signatures, at any time: the expensive part.
//! let mut pool = NoncePool::new(Curve::P256).expect("Linux 4.14 or newer");
//! pool.refill(ifma, &mut scratch, &mut random);
//!
//! // In the handshake: a fraction of a microsecond.
//! let key = EcKey::new(Curve::P256, &[7; 32]).expect("a scalar below the order");
//! let signature = pool.sign(&key, &[0x5a; 32]).expect("the pool is not empty");
//! let mut der = [0; EcdsaSignature::MAX_DER];
//! let length = signature.to_der(&mut der).expect("the buffer is long enough");
//! assert!((68..=72).contains(&length));
//! ```

#![deny(unsafe_code)]

mod algorithm;
mod break_even;
mod cpu;
mod ecdhe;
mod ecdsa;
pub mod encoding;
mod group;
mod hash;
mod inverse;
pub mod kdf;
mod limbs;
mod memory;
mod multibuffer;
mod nonce;
mod order;
mod random;
mod rsa;

pub use algorithm::Algorithm;
pub use break_even::{BreakEven, Overrides, OverridesError};
pub use cpu::Ifma;
pub use ecdhe::{KeyPair, KeyPool};
pub use ecdsa::{EcKey, EcdsaSignature, NoncePool};
pub use group::{Curve, Group};
pub use hash::{Hash, MAX_BLOCK, MAX_OUTPUT};
pub use memory::{constant_time_eq, wipe};
pub use multibuffer::{
    DeriveLane, EcdsaLane, LANES, LaneStatus, RsaLane, Scratch, derive, ecdsa_sign, keygen, rsa_check,
    rsa_private,
};
pub use random::{Random, RandomPool};
pub use rsa::{RsaKey, RsaNumbers, RsaParts, RsaSize, UnsupportedKey};
