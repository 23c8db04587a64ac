//! Workloads and load drivers.
//!
//! [`drive`] makes full TLS handshakes as fast as a server answers them and counts every one that is not perfect;
//! [`cpu`] says what they cost the server. [`server`] starts real servers, stock or accelerated.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod certificates;
pub mod cpu;
pub mod drive;
pub mod server;
