//! One operation: connect, handshake, requests and their answers, end of stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustls::client::ClientConnection;

use super::answer::Answer;
use super::client::ClientTls;
use super::connect::{broken, connect};
use super::dialogue::Dialogue;
use super::event_loop::{Connection, Progress};
use super::failure::Failure;

/// The first request follows the client's Finished in its own flight, as with curl or a browser: they learn first that they
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
    /// How many answers have been received.
    step: usize,
    /// From connect to the last byte of the last answer, once that has arrived.
    latency: Option<Duration>,
}

impl Handshake {
    /// Starts to connect.
    pub(super) fn open(address: SocketAddr, tls: &ClientTls, answer: Answer) -> Result<Self, Failure> {
        let started = Instant::now();
        let mut tls = tls.connection()?;
        // A request may be longer than what rustls holds back by itself.
        tls.set_buffer_limit(None);
        let socket = connect(address)?;
        Ok(Self { socket, tls, request: Request::BeforeFinished, started, answer, step: 0, latency: None })
    }

    /// Sends the first request, if it is time to.
    pub(super) fn send_request(&mut self, dialogue: &Dialogue) -> Result<Progress, Failure> {
        if self.is_due() {
            self.request = Request::Sent;
            self.ask(dialogue)?;
        }
        self.write()
    }

    /// Prepares the next request, if there is one.
    fn ask(&mut self, dialogue: &Dialogue) -> Result<bool, Failure> {
        let Some(request) = dialogue.request(self.step, self.answer.body()) else { return Ok(false) };
        self.tls.writer().write_all(&request).map_err(Failure::Broken)?;
        self.answer.expect(dialogue.encoding(self.step));
        Ok(true)
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
    pub(super) fn advance(&mut self, dialogue: &Dialogue) -> Result<Progress, Failure> {
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
        self.take_plaintext(dialogue)?;
        if received == 0 {
            return if self.latency.is_some() { Ok(Progress::Done) } else { Err(Failure::ClosedEarly) };
        }
        self.write()
    }

    fn take_plaintext(&mut self, dialogue: &Dialogue) -> Result<(), Failure> {
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
                dialogue.check(self.step, self.answer.body())?;
                self.step += 1;
                if !self.ask(dialogue)? {
                    self.latency.get_or_insert(self.started.elapsed());
                }
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
