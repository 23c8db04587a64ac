//! Facts and configuration in, a plan out: what is applied to a process, with a reason for every yes and no.
//!
//! Facts come from `hasten-probe`. Nothing here runs, changes or prints anything.

#![forbid(unsafe_code)]

pub mod accelerator;
pub mod config;
pub mod findings;
pub mod hooks;
mod nearest;
mod plan;
mod preload;
mod surroundings;

pub use config::{Config, ConfigError};
pub use nearest::{nearest, suggestion};
pub use plan::{Decision, Plan, Reason, Side, Verdict, host_verdicts};
pub use surroundings::{Surroundings, misspelt_variable};
