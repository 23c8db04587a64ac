//! Workloads and load drivers.
//!
//! [`drive`] makes full TLS handshakes as fast as a server answers them and counts every one that is not perfect;
//! [`cpu`] says what they cost the server.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod cpu;
pub mod drive;
