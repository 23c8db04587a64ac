//! Whether to use something that may fail, or cost more than it saves.
//!
//! [`breaker`] stays away from an engine that has failed until it is worth another attempt, [`cost`] learns what each
//! of two ways takes, [`clock`] reads the clocks that both need. Nothing here knows what it guards: its users tell
//! devices, software engines and lanes apart. No lock is taken, nothing is allocated, and time is an argument.

#![forbid(unsafe_code)]

pub mod breaker;
pub mod clock;
pub mod cost;

/// The vocabulary of breakers.
pub use hasten_names::{BreakerState, Fault};

pub use breaker::Breaker;
