//! `libhasten_tls.so`: TLS handshakes of stock OpenSSL servers, batched.
//!
//! Preloaded into a server, it interposes on the calls between server, libssl,
//! libcrypto and libc (`hooks.rs` is the table). A handshake that needs an
//! expensive operation is suspended in the middle (`handshake/`), the operation
//! waits for others of its kind (`runtime.rs`), the event loop determines when
//! to stop waiting (`event_loop/epoll.rs`), and eight are computed for little
//! more than the price of one (crate `hasten-batch`). Before the thread does
//! anything other than go round its loop, its suspended handshakes are resumed
//! (`event_loop/loans.rs`). Where a direct computation is cheaper than
//! OpenSSL's frameworks, it is done directly (`openssl/`).
//!
//! Nothing is logged, and nothing is allocated per handshake. Any doubt leads
//! to the original function.

#[cfg(all(not(test), not(panic = "abort")))]
compile_error!("a panic must not unwind through a server's C frames: build with panic = \"abort\"");

mod config;
mod event_loop;
mod forks;
mod handshake;
mod hooks;
mod host;
mod openssl;
mod runtime;
mod stack;
mod start;
