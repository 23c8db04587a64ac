//! The driver's sockets.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

use super::failure::Failure;

/// A non-blocking socket that is connecting to `address`.
pub(super) fn connect(address: SocketAddr) -> Result<TcpStream, Failure> {
    connecting(address).map_err(Failure::Connect)
}

/// What is wrong with a connection, whether connecting or open.
pub(super) fn broken(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::Connect(error),
        _ => Failure::Broken(error),
    }
}

fn connecting(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    set_tcp_nodelay(&socket, true)?;
    // The server closes first, so a reset loses nothing, and it frees both ends at once: no TIME_WAIT, which
    // would use up the ports within a minute.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}
