//! Deflate: engines behind one interface, and zlib's streams on top of them.

pub mod abi;
pub mod breaker;
pub mod checksum;
pub mod devices;
pub mod engine;
pub mod engines;
pub mod header;
pub mod inflate;
mod pages;
pub mod pool;
pub mod savings;
pub mod select;
mod stack;
pub mod store;
mod stored;
pub mod stream;
pub mod verify;
mod watch;
