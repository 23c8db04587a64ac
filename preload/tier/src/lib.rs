//! `libhasten_tier.so`: one heap of an unmodified program on two kinds of memory.
//!
//! Preloaded into a program whose allocator is jemalloc, as a library of its own, it hooks the functions that allocate
//! (`hooks.rs` is the table) and gives some of the objects to an arena on another NUMA node (`far.rs`). Which ones,
//! `share.rs` decides.
//!
//! Every object is and remains one of the program's own jemalloc. Any function of jemalloc may be called with any
//! object, whether it is hooked or not, and an object from another allocator is treated as without this library. So no
//! pointer ever needs an owner to be found, and a call that no hook sees is right, too: at most the share is off by it.
//!
//! Nothing is logged. Any doubt leads to the original function.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");

mod allocate;
mod config;
mod far;
mod hooks;
mod jemalloc;
mod limits;
mod share;
mod start;
mod thread;
