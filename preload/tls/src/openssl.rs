//! OpenSSL's side: its interface, and the operations performed in its place.
//!
//! Operations that can be batched go to the thread's `Runtime`, which may suspend the handshake until the result is
//! there. Nothing here refers to that handshake, or to an event loop.

mod abi;
pub(crate) mod decapsulation;
pub(crate) mod digest;
pub(crate) mod encapsulation;
pub(crate) mod errors;
pub(crate) mod ex_data;
pub(crate) mod exchange;
pub(crate) mod fetch;
mod hybrid;
mod import;
pub(crate) mod kdf;
pub(crate) mod key_schedule;
pub(crate) mod keys;
pub(crate) mod providers;
pub(crate) mod random;
pub(crate) mod release;
pub(crate) mod shortcuts;
pub(crate) mod sign;
mod tag;
pub(crate) mod tickets;
mod trial;

pub(crate) use abi::*;
