//! The service that is tuned: started as its owner starts it, watched, and gone afterwards with all that it started.
//!
//! The command may be a shell script, a package manager or a server that puts itself into the background. So its tree is
//! found by what becomes of it, not by what is typed: this process adopts the orphans of its descendants, and whatever
//! has been seen in the tree stays in it.

mod cost;
mod error;
mod launch;
mod listen;
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
