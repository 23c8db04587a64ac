//! Services of systemd and OpenRC: what they start, drop-ins, and restarts that can be taken back.

#![forbid(unsafe_code)]

mod copy;
mod drop_in;
mod environment;
mod error;
mod manager;
mod obstacle;
mod openrc;
mod place;
mod properties;
mod restart;
mod systemd;
pub mod text;
mod trial;
mod unit;
pub mod words;

pub use drop_in::{DropIn, Found};
pub use error::UnitError;
pub use manager::{Copies, Manager, Phrases, of_host};
pub use obstacle::Obstacle;
pub use restart::Outcome;
pub use systemd::Systemd;
pub use trial::TrialError;
pub use unit::{Activity, Unit};
