//! `libhasten_tier.so`: one heap of an unmodified program on two kinds of memory.
//!
//! Preloaded into a program, it is the program's allocator: jemalloc, linked statically. Small objects are near, where
//! the kernel puts them; large ones are far, in an arena of private anonymous memory that is bound to a NUMA node
//! (`far.rs`). What is large follows from the sizes in use, so that the share that is far stays what was asked for
//! (`share.rs`). Which of the two an address is in is told by the address.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");

mod allocate;
mod config;
mod entry;
mod far;
mod jemalloc;
mod share;
