//! systemd's services: what they start, drop-ins, and restarts that can be taken back.

#![forbid(unsafe_code)]

mod copy;
mod drop_in;
mod environment;
mod error;
mod obstacle;
mod properties;
mod restart;
mod systemd;
pub mod text;
mod trial;
mod unit;
pub mod words;

pub use drop_in::{DropIn, Found};
pub use error::UnitError;
pub use obstacle::Obstacle;
pub use restart::Outcome;
pub use systemd::Systemd;
pub use trial::{Sandbox, TrialError};
pub use unit::{Activity, Unit};
