//! Deflate: engines behind one interface, and zlib's streams on top of them.

pub mod abi;
pub mod engine;
