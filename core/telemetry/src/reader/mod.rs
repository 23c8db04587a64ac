//! The reader's side. Pages belong to other processes, which may be hostile or
//! broken: everything is copied first, checked, and never trusted.

mod condition;
mod control;
mod counters;
mod discover;
mod engines;
mod error;
mod handshakes;
mod proc;
mod snapshot;
mod suspension;
mod warning;
mod window;

pub use condition::EngineCondition;
pub use control::{Control, ControlError};
pub use counters::{AlgorithmCounters, Counters, EngineCounters};
pub use discover::{PageHandle, Process, Scan, Unseen, discover, pages_of};
pub use engines::{EngineInfo, EngineReport, boottime};
pub use error::{PageError, ProcessError};
pub use handshakes::Handshakes;
pub use snapshot::{BreakEven, Snapshot, Writer};
pub use suspension::{SuspensionReport, SuspensionShare};
pub use warning::{Severity, Warning, duration};
pub use window::{Share, Window};
