//! Accelerator devices: which exist, whether they can be used, and engines that may fail at any time.
//!
//! A device is never trusted. Every call of its library is bounded in time, every engine answers a question with a
//! known answer before it is asked a real one, and a [`hasten_guard::Breaker`] in front of it decides whether it is
//! asked at all. The caller does in software whatever a device does not: a [`Fault`] is never more than a reason for
//! that.
//!
//! The crate is linked into preload libraries and runs inside other people's servers: it depends only on libc, names
//! and guards, never panics, never logs, and allocates when a device is opened, not when it is used.

#![deny(unsafe_code)]

pub mod answers;
pub mod break_even;
pub mod counters;
pub mod discovery;
#[allow(unsafe_code)]
pub mod engines;
pub mod guard;
pub mod health;
#[allow(unsafe_code)]
pub mod library;
mod pause;
pub mod root;
pub mod selftest;
pub mod settings;
pub mod watch;
#[allow(unsafe_code)]
pub mod worker;

pub use hasten_guard::{Breaker, BreakerState, Fault};

pub use discovery::{Device, DeviceKind};
pub use guard::{Limits, Refusal};
pub use library::{Library, LibraryError};
pub use root::Root;
