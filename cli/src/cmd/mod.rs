//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod core;
pub(crate) mod disable;
pub(crate) mod enable;
pub(crate) mod engine;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod selftest;
mod services;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod wal;
