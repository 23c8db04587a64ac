//! Asymmetric TLS operations in batches of eight, and the encodings around them.
//!
//! The crate is linked into a preload library and runs inside other people's servers: it depends on libc alone, never
//! panics on input, never allocates in an operation, and leaves no secret behind.

#![deny(unsafe_code)]

mod algorithm;
mod break_even;
mod cpu;
mod ecdhe;
mod ecdsa;
pub mod encoding;
mod group;
mod hash;
pub mod kdf;
mod limbs;
mod memory;
mod multibuffer;
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
pub use multibuffer::{DeriveLane, LANES, LaneStatus, RsaLane, Scratch, derive, keygen, rsa_private};
pub use random::{Random, RandomPool};
pub use rsa::{RsaKey, RsaParts, RsaSize, UnsupportedKey};
