//! Handshakes: their signatures and key exchanges in batches.
//!
//! Nothing is suspended in the middle. A handshake waits where BoringSSL and Envoy can wait by themselves:
//!
//! - Before it begins. The client's hello is read from the socket and stays there. If it offers a key, the shared secret is
//!   queued, and Envoy is told that the handshake wants to read; when the secret is there, the socket is readable once
//!   more, the handshake begins, and finds the answer (`exchange.rs`).
//! - At its signature. BoringSSL can leave a private key to somebody who answers later, and Envoy knows how to wait for
//!   him; here he is `sign.rs`.
//!
//! The clock is `epoll_wait`: before a worker sleeps, what is queued runs (`event_loop.rs`).

mod boring;
mod connection;
mod event_loop;
mod exchange;
mod handshake;
mod hello;
mod host;
mod keys;
mod sign;
mod start;
mod worker;

pub(crate) use start::{is_wanted, start};
