//! The tuned service: started as its owner starts it, watched, and finally ended with everything that it started.
//!
//! The command may be a shell script, a package manager or a server that moves to the background. So its tree is
//! determined by what happens, not by what is typed: this process adopts its descendants' orphans, and a process seen
//! in the tree stays in it.

mod cost;
mod error;
mod launch;
mod memory;
pub(crate) mod process;
mod ready;
mod running;
mod tree;
mod unit;

pub use self::cost::CpuTimes;
pub use self::error::ServiceError;
pub use self::launch::{Launch, User};
pub use self::ready::Readiness;
pub use self::running::{Limits, Service, Stopped};
pub use self::unit::{SEARCH_PATH, Unit, UnitError};
