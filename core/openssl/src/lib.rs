//! The conditions of the TLS library: one table, by which the plan judges a program before it starts, and the library the
//! process in which it finds itself.

#![forbid(unsafe_code)]

mod series;

pub use series::{SERIES, Series, series_names};

/// The shared library that has the handshakes of that series, and some later ones.
pub const LIBSSL: &str = "libssl.so.3";

/// How a server begins a handshake that can be put aside.
pub const HANDSHAKES: [&str; 2] = ["SSL_do_handshake", "SSL_accept"];

/// How a thread waits for its connections, where it can be told of one that goes on.
pub const LOOPS: [&str; 2] = ["epoll_wait", "epoll_pwait"];

/// How OpenSSL is given a socket to read from. A program that has none of them moves the bytes itself.
pub const SOCKETS: [&str; 5] =
    ["SSL_set_fd", "SSL_set_rfd", "BIO_new_socket", "BIO_s_socket", "BIO_s_accept"];

/// How a program makes a kind of BIO, which may read from a socket or from memory.
pub const OWN_BIO: &str = "BIO_meth_new";

/// Servers, by the names of their executables, that hasten's tests and public suites run: their event loops come back for
/// every handshake, and their callbacks do not mind where they are called.
pub const PROVEN: [&str; 2] = ["haproxy", "nginx"];
