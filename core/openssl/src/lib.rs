//! The conditions of the TLS library: one table, by which the plan judges a program before it starts, and the library
//! the process it is in.

#![forbid(unsafe_code)]

mod series;

pub use series::{SERIES, Series, series_names};

/// The shared library with the handshakes, by the names that it has in those series.
pub const LIBSSL: [&str; 2] = ["libssl.so.3", "libssl.so.4"];

/// A library with OpenSSL's names and interface, by its version's text. Its libssl calls other functions of its libcrypto,
/// and none of the objects between them is laid out as OpenSSL's are.
pub const AWS_LC: &str = "AWS-LC";

/// The functions with which a server starts a handshake that can be suspended.
pub const HANDSHAKES: [&str; 2] = ["SSL_do_handshake", "SSL_accept"];

/// The functions with which a thread waits for its connections, and which can report a handshake that goes on.
pub const LOOPS: [&str; 2] = ["epoll_wait", "epoll_pwait"];

/// The functions that give OpenSSL a socket to read from. A program that has none of them moves the bytes itself.
pub const SOCKETS: [&str; 5] =
    ["SSL_set_fd", "SSL_set_rfd", "BIO_new_socket", "BIO_s_socket", "BIO_s_accept"];

/// The function with which a program creates a BIO type, which may read from a socket or from memory.
pub const OWN_BIO: &str = "BIO_meth_new";

/// Servers, by the names of their executables, that hasten's tests and public suites run: their event loops come back
/// for every handshake, and their callbacks work wherever they are called.
pub const PROVEN: [&str; 2] = ["haproxy", "nginx"];
