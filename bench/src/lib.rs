//! Workloads and load drivers.
//!
//! [`tls`], [`gzip`] and [`node`] compare stock and accelerated programs. Their parts stand alone: [`drive`] makes full
//! TLS handshakes, or requests compressed bodies, as fast as a server answers and counts every imperfect answer,
//! [`cpu`] measures what they cost the server, [`server`] starts real servers with [`certificates`] like those of
//! public ones.

// One file calls zlib's C functions, one wait4.
#![deny(unsafe_code)]

pub mod affinity;
pub mod baseline;
pub mod certificates;
pub mod cpu;
pub mod drive;
mod duel;
pub mod envoy;
mod error;
pub mod gzip;
pub mod host;
pub mod http;
pub mod interrupt;
mod keeper;
pub mod node;
pub mod noise;
mod pace;
pub mod port;
pub mod progress;
mod rows;
pub mod server;
pub mod storage;
mod summary;
pub mod tier;
pub mod tls;
pub mod wait;

pub use error::BenchError;
pub use pace::Pace;
