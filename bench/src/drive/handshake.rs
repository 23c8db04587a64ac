//! One operation: connect, handshake, request, answer, end of stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustls::client::ClientConnection;

use super::answer::Answer;
use super::client::ClientTls;
use super::connect::{broken, connect};
use super::event_loop::{Connection, Progress};
use super::failure::Failure;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The request follows the client's Finished in its own flight, as with curl or a browser: they learn first that they
/// are connected. The server wakes once more for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    BeforeFinished,
    Due,
    Sent,
}

#[derive(Debug)]
pub(super) struct Handshake {
    socket: TcpStream,
    tls: ClientConnection,
    request: Request,
    started: Instant,
    answer: Answer,
    /// From connect to the last byte of the answer, once that has arrived.
    latency: Option<Duration>,
}

impl Handshake {
    /// Starts to connect.
    pub(super) fn open(address: SocketAddr, tls: &ClientTls, answer: Answer) -> Result<Self, Failure> {
        let started = Instant::now();
        let tls = tls.connection()?;
        let socket = connect(address)?;
        Ok(Self { socket, tls, request: Request::BeforeFinished, started, answer, latency: None })
    }

    pub(super) fn send_request(&mut self) -> Result<Progress, Failure> {
        if self.is_due() {
            self.request = Request::Sent;
            self.tls.writer().write_all(REQUEST).map_err(Failure::Broken)?;
        }
        self.write()
    }

    /// From connect to the last byte of the answer, once that has arrived.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// The answer's memory, to be reused.
    pub(super) fn into_answer(mut self) -> Answer {
        self.answer.clear();
        self.answer
    }

    /// Sends pending data.
    pub(super) fn write(&mut self) -> Result<Progress, Failure> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::ReadOrWrite),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server closed after its answer and no longer accepts our close_notify.
                Err(_) if self.latency.is_some() => return Ok(Progress::Read),
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(Progress::Read)
    }

    /// Processes received data and replies to it.
    pub(super) fn advance(&mut self, expected: Option<&[u8]>) -> Result<Progress, Failure> {
        let received = match self.tls.read_tls(&mut self.socket) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.write(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Progress::Read),
            // The whole answer has been checked: how the server ends the connection does not matter.
            Err(_) if self.latency.is_some() => return Ok(Progress::Done),
            Err(error) => return Err(broken(error)),
        };
        if let Err(error) = self.tls.process_new_packets() {
            // Tells the server why, as a real client does.
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
            if self.answer.push(&buffer[..count])? {
                if expected.is_some_and(|expected| expected != self.answer.body()) {
                    return Err(Failure::Body);
                }
                self.latency.get_or_insert(self.started.elapsed());
            }
        }
    }
}

impl Connection for Handshake {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn started(&self) -> Instant {
        self.started
    }

    fn stage(&self) -> &'static str {
        match (self.tls.is_handshaking(), self.latency) {
            (true, _) => "in the handshake",
            (false, None) => "waiting for the answer",
            (false, Some(_)) => "waiting for the server to close",
        }
    }

    /// Whether it is time to send the request.
    fn is_due(&self) -> bool {
        self.request == Request::Due
    }
}
