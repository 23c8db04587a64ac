//! A port on the loopback interface for a server that is yet to be started.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// A port that the kernel gives to nobody else while this lives.
///
/// Finding a free port and releasing it is not enough: HAProxy shares its port with anyone who asks for it, so two
/// servers given the same port would both start, and share their clients.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    /// Bound, and never listening: servers, which set `SO_REUSEADDR`, can bind and listen beside it.
    _reserved: OwnedFd,
}

impl Port {
    pub fn reserve() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self { address, _reserved: socket })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::Port;

    #[test]
    fn a_server_listens_on_it_again_and_again() {
        let port = Port::reserve().unwrap();
        for _ in 0..3 {
            let listener = TcpListener::bind(port.address()).unwrap();
            TcpStream::connect(port.address()).unwrap();
            listener.accept().unwrap();
        }
    }

    /// Nobody listens there yet, and a client given the port for its own end would connect to itself.
    #[test]
    fn nobody_else_gets_it() {
        let port = Port::reserve().unwrap();
        for _ in 0..50_000 {
            let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            assert_ne!(other.local_addr().unwrap(), port.address());
        }
    }
}
