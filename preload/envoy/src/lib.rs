//! `libhasten_envoy.so`: Envoy's own handshakes in batches, and its gzip filters by faster engines, in place.
//!
//! Preloaded into a build of Envoy that `hasten-envoy-builds` knows, it verifies that the process is that build
//! (`lock.rs`), and replaces entries of tables of virtual functions: those by which Envoy and BoringSSL do a handshake
//! (`tls.rs`), and those by which its filters make what compresses and decompresses bodies (`gzip.rs`). Everything else is
//! Envoy's: the configuration, the secrets, the statistics. No code is changed.
//!
//! In any other program, and in a build that it does not know, nothing happens.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C++ frames: build with panic = \"abort\"");

mod gzip;
mod lock;
mod object;
mod program;
mod start;
mod tls;
