//! Workloads and load drivers.
//!
//! [`tls`] compares stock and accelerated servers. Its parts stand alone: [`drive`] makes full TLS handshakes as fast
//! as a server answers them and counts every one that is not perfect, [`cpu`] says what they cost the server,
//! [`server`] starts real servers with [`certificates`] like those of public ones.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod certificates;
pub mod cpu;
pub mod drive;
pub mod host;
pub mod interrupt;
pub mod noise;
pub mod progress;
pub mod server;
pub mod tls;
