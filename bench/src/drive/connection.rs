//! One operation: connect, handshake, request, answer, end of stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
use rustls::client::ClientConnection;

use super::client::ClientTls;
use super::failure::Failure;
use super::response::Response;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// How an operation that goes on wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// When the socket is readable.
    Read,
    /// When it is readable or writable: the kernel did not take everything.
    ReadOrWrite,
    /// Never: the operation is over.
    Done,
}

/// The request follows the client's Finished in a flight of its own, as that of curl or a browser does: they hear first that
/// they are connected. The server wakes once more for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    BeforeFinished,
    Due,
    Sent,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    tls: ClientConnection,
    request: Request,
    started: Instant,
    response: Response,
    /// From connect to the last byte of the answer, once that has arrived.
    latency: Option<Duration>,
}

impl Connection {
    /// Starts to connect.
    pub(super) fn open(address: SocketAddr, tls: &ClientTls, response: Response) -> Result<Self, Failure> {
        let started = Instant::now();
        let tls = tls.connection()?;
        let socket = connect_socket(address).map_err(Failure::Connect)?;
        Ok(Self { socket, tls, request: Request::BeforeFinished, started, response, latency: None })
    }

    /// Whether the request is to be sent, in the next turn of the event loop.
    pub(super) fn is_due(&self) -> bool {
        self.request == Request::Due
    }

    pub(super) fn send_request(&mut self) -> Result<Progress, Failure> {
        if self.is_due() {
            self.request = Request::Sent;
            self.tls.writer().write_all(REQUEST).map_err(Failure::Broken)?;
        }
        self.write()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    pub(super) fn stage(&self) -> &'static str {
        match (self.tls.is_handshaking(), self.latency) {
            (true, _) => "in the handshake",
            (false, None) => "waiting for the answer",
            (false, Some(_)) => "waiting for the server to close",
        }
    }

    /// The latency of a finished operation and the buffer for the next one.
    pub(super) fn finish(self) -> (Option<Duration>, Response) {
        let mut response = self.response;
        response.clear();
        (self.latency, response)
    }

    /// Sends what is ready.
    pub(super) fn write(&mut self) -> Result<Progress, Failure> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::ReadOrWrite),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server closed after its answer and does not want our close_notify any more.
                Err(_) if self.latency.is_some() => return Ok(Progress::Read),
                Err(error) => return Err(self.broken(error)),
            }
        }
        Ok(Progress::Read)
    }

    /// Takes what has arrived and answers it.
    pub(super) fn advance(&mut self, expected: Option<&[u8]>) -> Result<Progress, Failure> {
        let received = match self.tls.read_tls(&mut self.socket) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.write(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Progress::Read),
            // The whole answer was checked: how the server ends the connection is its own affair.
            Err(_) if self.latency.is_some() => return Ok(Progress::Done),
            Err(error) => return Err(self.broken(error)),
        };
        if let Err(error) = self.tls.process_new_packets() {
            // Tell the server why, as a real client does.
            let _ = self.tls.write_tls(&mut self.socket);
            return Err(error.into());
        }
        if self.request == Request::BeforeFinished && !self.tls.is_handshaking() {
            self.request = Request::Due;
        }
        self.take_plaintext(expected)?;
        if received == 0 {
            return if self.latency.is_some() { Ok(Progress::Done) } else { Err(Failure::ClosedEarly) };
        }
        self.write()
    }

    fn take_plaintext(&mut self, expected: Option<&[u8]>) -> Result<(), Failure> {
        let mut buffer = [0; 4096];
        loop {
            let count = match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                // `WouldBlock`: no more for now. `UnexpectedEof`: closed without close_notify, which is harmless
                // because the answer carries its length.
                Err(_) => return Ok(()),
            };
            if self.response.push(&buffer[..count])? {
                if expected.is_some_and(|expected| expected != self.response.body()) {
                    return Err(Failure::Body);
                }
                self.latency.get_or_insert(self.started.elapsed());
            }
        }
    }

    fn broken(&self, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Connect(error),
            _ => Failure::Broken(error),
        }
    }
}

/// A non-blocking socket on its way to `address`.
pub(super) fn connect_socket(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    set_tcp_nodelay(&socket, true)?;
    // The server closes first, so nothing is lost by a reset, and it frees both ends at once: no TIME_WAIT, which
    // would use up the ports within a minute.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}
