//! `libhasten_wal.so`: new logs of unmodified programs on a faster durable device, with links in their place.
//!
//! Preloaded into a program, it hooks the functions that make, rename, remove and look at files (`hooks.rs` is the table).
//! A log that the program is about to make (`hasten-logs` knows which files are logs) is made on the fast device, and its
//! name in the program's directory becomes a symbolic link (`make.rs`). From then on the kernel does everything: writes,
//! syncs, truncation and locks are those of the file itself. What a link would do differently from a file, `links.rs` does
//! as for a file.
//!
//! Nothing is logged. Any doubt leads to the original function, and a log that cannot be made there is made at home.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a program's C frames: build with panic = \"abort\"");

mod config;
mod hooks;
mod links;
mod make;
mod start;
mod sys;
