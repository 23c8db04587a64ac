//! A store of blocks for a read cache: one file with a fixed size, shared by the processes of one user.
//!
//! Nothing in the file is trusted. A block is found by 128 bits made from everything that identifies its content, and
//! its checksum covers those bits and the data, so a block that is damaged, half-written, overwritten meanwhile or
//! somebody else's is a miss. Processes therefore need no lock between them, and one that is killed at any moment costs
//! blocks and never truth.
//!
//! The file is read and written, not mapped: a device that fails gives an error, not a signal.

#![forbid(unsafe_code)]

pub mod key;
pub mod rate;
pub mod set;
pub mod store;
mod sum;
pub mod trial;

pub use key::{FileTag, Identity, Tag};
pub use store::{Answer, BLOCK, Cursor, OpenError, Store};
