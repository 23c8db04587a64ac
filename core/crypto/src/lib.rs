//! Asymmetric TLS operations in batches of eight or one at a time, and the encodings around them.
//!
//! The crate is linked into a preload library and runs inside other people's servers: it depends only on libc, the names
//! and graviola, never panics on input, never allocates in an operation, and leaves no secret behind. If it has no result, the
//! caller runs the host's own function.
//!
//! ```
//! use hasten_crypto::{Curve, EcKey, EcdsaLane, Ifma, LaneEngine};
//! # #[derive(Clone)]
//! # struct HostSha512(openssl::sha::Sha512);
//! # impl hasten_crypto::Hash for HostSha512 {
//! #     const OUTPUT: usize = 64;
//! #     const BLOCK: usize = 128;
//! #     fn new() -> Self { Self(openssl::sha::Sha512::new()) }
//! #     fn update(&mut self, bytes: &[u8]) { self.0.update(bytes) }
//! #     fn finish(self, out: &mut [u8]) { out.copy_from_slice(&self.0.finish()) }
//! # }
//!
//! let Some(ifma) = Ifma::detect() else { return };
//! let mut scratch = ifma.scratch();
//! let key = EcKey::new(Curve::P256, &[7; 32]).expect("a scalar below the order");
//!
//! // The digests of two connections, or of eight: the price is the same.
//! let (mut first, mut second) = (None, None);
//! let mut lanes = [
//!     EcdsaLane { key: &key, digest: &[0x5a; 32], signature: &mut first },
//!     EcdsaLane { key: &key, digest: &[0xa5; 32], signature: &mut second },
//! ];
//! let mut random = |bytes: &mut [u8]| {
//!     // The host's generator goes here; HostSha512 is its hash.
//! #   bytes.fill(1);
//!     true
//! };
//! let status = ifma.ecdsa_sign::<HostSha512>(&mut scratch, Curve::P256, &mut lanes, &mut random);
//! assert!(status.all_ok(2));
//! assert_eq!(first.expect("a signature").r().len(), 32);
//! ```

#![deny(unsafe_code)]

mod break_even;
mod cpu;
#[cfg(target_arch = "x86_64")]
mod crt;
mod ecdhe;
mod ecdsa;
pub mod encoding;
mod hash;
mod inverse;
pub mod kdf;
mod lanes;
mod limbs;
mod memory;
#[cfg(target_arch = "x86_64")]
mod multibuffer;
#[cfg(not(target_arch = "x86_64"))]
mod no_lanes;
mod nonce;
mod order;
mod random;
mod rsa;
mod single;

/// The vocabulary of these operations.
pub use hasten_names::{Algorithm, Curve, Group, LANES};

pub use break_even::{BreakEven, Overrides, OverridesError, Way};
pub use cpu::Ifma;
pub use ecdhe::{KeyPair, KeyPool};
pub use ecdsa::{EcKey, EcdsaSignature};
pub use hash::{Hash, MAX_BLOCK, MAX_OUTPUT};
pub use lanes::{DeriveLane, EcdsaLane, LaneEngine, LaneStatus, RsaLane};
pub use memory::{constant_time_eq, wipe};
#[cfg(target_arch = "x86_64")]
pub use multibuffer::Scratch;
#[cfg(not(target_arch = "x86_64"))]
use no_lanes as crt;
#[cfg(not(target_arch = "x86_64"))]
pub use no_lanes::Scratch;
pub use random::{Random, RandomPool};
pub use rsa::{RsaKey, RsaNumbers, RsaParts, RsaSize, UnsupportedKey};
pub use single::{ML_KEM_CIPHERTEXT, ML_KEM_KEY, ML_KEM_PRIVATE, ML_KEM_SEED, MlKemPair, Single};
