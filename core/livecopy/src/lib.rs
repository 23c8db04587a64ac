//! A core file of a process that goes on running.
//!
//! All threads of the process stop; its main thread runs a few instructions of ours, which fork it; all go on. The copy, which never
//! runs, is read through `/proc` and then killed.

#![deny(unsafe_code)]

mod copy;
mod error;
mod image;
mod limits;
mod packed;
mod space;
mod stopped;
mod stub;
#[allow(unsafe_code, reason = "ptrace; xtask's layering knows it")]
mod trace;
mod watch;

pub use copy::{Standing, Written, check, look, snapshot};
pub use error::LiveError;
pub use stopped::Pause;
pub use watch::{Watch, keep_newest};
