//! `libhasten_gzip.so`: faster engines for the zlib streams of unmodified
//! programs.
//!
//! Preloaded into a program, it hooks the functions of libz that take a stream
//! (`hooks.rs` is the table), and no other library's functions of these names.
//! A stream that it opens is its own from then on; one that the original opened
//! stays the original's. The state of a stream is in memory from the stream's
//! own allocator, which is asked for exactly what zlib would have asked for
//! (`allocation.rs`).
//!
//! Nothing is logged. Any doubt leads to the original function.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");

mod allocation;
mod checksum;
mod deflate;
mod hooks;
mod inflate;
mod nested;
mod oneshot;
mod start;
