//! Turns facts and configuration into a plan: what is applied to a process, with a reason for every yes and no.
//!
//! Facts come from `hasten-probe`. Nothing here runs, changes or prints anything.

#![forbid(unsafe_code)]

pub mod accelerator;
pub mod config;
pub mod devices;
pub mod findings;
pub mod gc_advice;
pub mod hooks;
mod lasting;
mod launch;
mod library;
mod nearest;
mod node_options;
mod plan;
mod preload;
pub mod process;
mod surroundings;
pub mod tunings;
mod warning;

pub use config::{Config, ConfigError};
pub use gc_advice::{AdviceError, GcAdvice};
pub use lasting::Lasting;
pub use launch::Launch;
pub use nearest::{nearest, suggestion};
pub use plan::{AdvisedOption, Decision, Plan, Proof, Reason, Side, Verdict, host_verdicts};
pub use surroundings::{Surroundings, disables, misspelt_variable};
pub use warning::Warning;
