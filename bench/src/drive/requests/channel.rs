//! One connection: a request, its answer, and the next request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::content::Encoding;
use crate::drive::answer::Answer;
use crate::drive::connect::{broken, connect};
use crate::drive::event_loop::{Connection, Progress};
use crate::drive::failure::Failure;

#[derive(Debug)]
pub(super) struct Channel {
    socket: TcpStream,
    /// Bytes of the request that the kernel has taken.
    sent: usize,
    started: Instant,
    pub(super) answer: Answer,
}

impl Channel {
    /// Starts connecting, for the first request.
    pub(super) fn open(address: SocketAddr, encoding: Encoding) -> Result<Self, Failure> {
        let started = Instant::now();
        let socket = connect(address)?;
        Ok(Self { socket, sent: 0, started, answer: Answer::new(encoding) })
    }

    /// Prepares for the next request.
    pub(super) fn renew(&mut self) {
        self.sent = 0;
        self.answer.clear();
        self.started = Instant::now();
    }

    /// Sends the rest of `request`.
    pub(super) fn write(&mut self, request: &[u8]) -> Result<Progress, Failure> {
        while self.sent < request.len() {
            match self.socket.write(&request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::ReadOrWrite),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(Progress::Read)
    }

    /// Processes received data.
    pub(super) fn advance(&mut self, request: &[u8], buffer: &mut [u8]) -> Result<Progress, Failure> {
        let progress = self.write(request)?;
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Err(Failure::ClosedEarly),
                Ok(count) => {
                    if self.answer.push(&buffer[..count])? {
                        return Ok(Progress::Done);
                    }
                    // Less than the available room: the kernel has no more at the moment.
                    if count < buffer.len() {
                        return Ok(progress);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(progress),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

impl Connection for Channel {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn started(&self) -> Instant {
        self.started
    }

    fn stage(&self) -> &'static str {
        if self.sent == 0 { "connecting" } else { "waiting for the answer" }
    }
}
