//! The load driver for plain HTTP: requests on open connections, in a closed loop.
//!
//! Like the one for handshakes it sacrifices nothing that could hide a fault: every answer must be complete,
//! compressed or not as requested, and have exactly the expected body.

mod channel;
mod content;
mod stream;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub use self::content::Content;
pub(super) use self::content::Encoding;

use self::stream::Stream;
use super::answer::Answer;
use super::event_loop::{Drive, EventLoop};
use super::{Outcome, threads};

/// What to request, and what makes an answer correct.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub address: SocketAddr,
    /// With the leading slash.
    pub path: &'a str,
    pub content: &'a Content,
}

/// How hard and how long to drive.
#[derive(Clone, Debug)]
pub struct Load {
    /// Connections; each has one request in flight at a time.
    pub concurrency: usize,
    pub threads: usize,
    pub duration: Duration,
    /// A single request that takes longer has failed.
    pub timeout: Duration,
    /// The CPUs of the driver's threads, used in turn; empty to leave them where they are.
    pub cpus: Vec<usize>,
}

/// Drives `target` until the time is up and every request that was sent is answered.
///
/// Every answer is paid for within the run, so server CPU time divided by [`Outcome::ops`] is exact.
pub fn run(target: &Target<'_>, load: &Load) -> io::Result<Outcome> {
    let request = request(target.path, target.content.encoding(), "keep-alive");
    let shares = threads::shares(load.concurrency, load.threads);
    let event_loop = |(thread, connections)| {
        let drive = Drive::new(load.duration, load.timeout, &load.cpus, thread);
        EventLoop::new(Stream::new(target, request.as_bytes()), drive, connections)
    };
    let loops = shares.enumerate().map(event_loop).collect::<io::Result<Vec<_>>>()?;
    threads::run(loops, &|| {}, &EventLoop::run)
}

/// The body of a page as a server sends it now, without compression.
pub fn fetch(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.write_all(request(path, Encoding::Identity, "close").as_bytes())?;
    let mut answer = Answer::new(Encoding::Identity);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = socket.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if answer.push(&buffer[..count]).map_err(io::Error::other)? {
            return Ok(answer.body().to_vec());
        }
    }
}

fn request(path: &str, encoding: Encoding, connection: &str) -> String {
    let encoding = encoding.as_str();
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {encoding}\r\nConnection: {connection}\r\n\r\n"
    )
}
