//! `libhasten_tls.so`: TLS handshakes of stock OpenSSL servers, batched.
//!
//! Preloaded into a server, it interposes on the calls between server,
//! libssl, libcrypto and libc (`hooks.rs` is the table). A handshake that
//! needs an expensive operation is left in the middle (`handshake.rs`,
//! `slice.rs`, `runtime.rs`), the operation waits for others of its kind,
//! the event loop says when to stop waiting (`epoll.rs`), and eight are
//! computed for little more than the price of one (crate `hasten-batch`). Before the
//! thread does anything else than go round its loop, what was left goes on
//! (`loans.rs`).
//! What is cheaper done directly than by OpenSSL's frameworks is done
//! directly (`sign.rs`, `exchange.rs`, `kdf.rs`).
//!
//! Nothing is logged, and nothing is allocated per handshake. Any doubt leads
//! to the original function.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a server's C frames: build with panic = \"abort\"");

mod blocking;
mod calls;
mod cancel;
mod config;
mod digest;
mod epoll;
mod errors;
mod exchange;
mod fdcalls;
mod fds;
mod fetch;
mod forks;
mod handshake;
mod hooks;
mod host;
mod kdf;
mod kernel;
mod key_schedule;
mod keys;
mod loans;
mod locks;
mod openssl;
mod providers;
mod random;
mod ready;
mod runtime;
mod shortcuts;
mod sign;
mod slice;
mod start;
mod suspension;
mod tickets;
mod turn;
