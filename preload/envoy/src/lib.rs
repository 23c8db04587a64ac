//! `libhasten_envoy.so`: Envoy's own gzip compressor, in place, by faster engines.
//!
//! Preloaded into a build of Envoy that `hasten-envoy-builds` knows, it verifies that the process is that build
//! (`lock.rs`), and replaces one entry of a table of virtual functions: the one by which the gzip filter makes its
//! compressors. A compressor of ours has the interface of the original (`compressor.rs`). Everything else is Envoy's: the
//! filter, its configuration, its statistics. No code is changed.
//!
//! In any other program, and in a build that it does not know, nothing happens.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C++ frames: build with panic = \"abort\"");

mod buffer;
mod compressor;
mod lock;
mod program;
mod start;
mod tls;
