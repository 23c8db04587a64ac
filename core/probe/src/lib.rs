//! Facts about this host and about a program: read, typed, never judged.
//!
//! Whether a fact is good news is decided by `hasten-plan`; this crate only says what is there, and says
//! "unknown" rather than guess.

#![forbid(unsafe_code)]

pub mod host;
pub mod listen;
pub mod program;
mod root;
pub mod storage;

pub use hasten_names::Feature;
pub use host::cpu::Cpu;
pub use host::{Host, Probe};
pub use program::{Environment, Program, ProgramError};
