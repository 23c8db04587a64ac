//! `libhasten_readcache.so`: a cache on local storage for files that do not change, in unmodified programs.
//!
//! Preloaded into a program, it hooks the functions that open and read files (`hooks.rs` is the table). A read of a file
//! that may be cached is answered from a store of blocks (`hasten-blocks`) or by the original function, after which the
//! blocks may be kept.
//!
//! What a descriptor refers to is never remembered, only whether it is worth a look (`fds.rs`): each read asks the
//! kernel anew which file it is and when it was last changed. `proof.rs` has the argument why that is enough.
//!
//! Nothing is logged. Any doubt leads to the original function.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");

mod cache;
mod config;
mod fds;
mod hooks;
mod open;
mod proof;
mod read;
mod room;
mod start;
