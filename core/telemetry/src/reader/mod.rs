//! The reader's side. Pages belong to other processes, which may be hostile
//! or broken: everything is copied first, checked, and never trusted.

mod counters;
mod discover;
mod error;
mod proc;
mod snapshot;

pub use counters::{AlgorithmCounters, Counters};
pub use discover::{PageHandle, Process, Scan, discover, pages_of};
pub use error::{PageError, ProcessError};
pub use snapshot::{BreakEven, Snapshot, Writer};
