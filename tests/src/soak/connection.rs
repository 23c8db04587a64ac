//! One connection of a well-behaved client, which records its whole life for the verdict.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use super::corpus::File;
use super::ledger::{Loss, Nature};
use super::station::{Clock, Station};
use crate::client::Client;
use crate::http::Answer;

/// The longest wait: a server that is silent for this long has lost the connection, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much a slow reader reads at a time.
const SIP: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(25);

type Stream = BufReader<Slow<StreamOwned<ClientConnection, TcpStream>>>;

/// A connection with its handshake in progress.
pub struct Begun {
    tls: ClientConnection,
    socket: TcpStream,
    life: Life,
}

pub struct Connection {
    stream: Stream,
    life: Life,
    /// Answered requests.
    answered: u32,
    is_over: bool,
}

/// A connection's contribution to a [`Loss`].
#[derive(Clone, Copy, Debug)]
struct Life {
    clock: Clock,
    port: Option<u16>,
    began: Duration,
    connected: Duration,
    worker: Option<u32>,
}

/// What is requested, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    pub packed: bool,
    pub last: bool,
    pub slow: bool,
}

impl Begun {
    /// Connects, and prepares a hello.
    pub fn new(station: &Station, client: &Client, clock: Clock) -> Result<Self, Loss> {
        let began = clock.now();
        let mut life = Life { clock, port: None, began, connected: began, worker: None };
        let socket = TcpStream::connect(station.address());
        life.connected = clock.now();
        let socket = socket.map_err(|error| life.loss("connect", nature(&error), &error))?;
        life.port = socket.local_addr().ok().map(|address| address.port());
        prepare(&socket).map_err(|error| life.loss("connect", nature(&error), &error))?;
        Ok(Self { tls: client.connection(), socket, life })
    }

    /// Sends the hello. Errors show when the handshake continues.
    pub fn say_hello(&mut self) {
        let _ = self.tls.write_tls(&mut self.socket);
    }

    pub fn finish(self, station: &Station) -> Result<Connection, Loss> {
        let Self { mut tls, mut socket, life } = self;
        let shaken = shake_hands(&mut tls, &mut socket);
        shaken.map_err(|error| life.loss("handshake", nature(&error), &error))?;
        let resumed = tls.handshake_kind() == Some(HandshakeKind::Resumed);
        super::count(if resumed { &station.tally.resumed } else { &station.tally.full }, 1);
        let stream = Slow { stream: StreamOwned::new(tls, socket), is_slow: false };
        let stream = BufReader::with_capacity(SIP, stream);
        Ok(Connection { stream, life, answered: 0, is_over: false })
    }
}

impl Connection {
    pub fn open(station: &Station, client: &Client, clock: Clock) -> Result<Self, Loss> {
        Begun::new(station, client, clock)?.finish(station)
    }

    /// Whether the server wants no further request here.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Requests a file and checks every byte of the answer.
    pub fn get(
        &mut self,
        station: &Station,
        prefix: &str,
        file: &File,
        request: Request,
    ) -> Result<(), Loss> {
        self.stream.get_mut().is_slow = request.slow;
        self.ask(prefix, file, request).map_err(|error| self.unanswered(&error))?;
        let what = format!("{prefix}{}", file.name);
        let answer = Answer::read(&mut self.stream);
        let answer = answer.map_err(|error| self.life.loss(&what, nature(&error), &error))?;
        self.life.worker = answer.header("x-worker").and_then(|worker| worker.parse().ok());
        self.is_over = request.last || answer.header("connection") == Some("close");
        self.answered += 1;
        verify(&answer, file).map_err(|why| self.life.loss(&what, Nature::Fault, &why))?;
        super::count(&station.tally.answers, 1);
        super::count(&station.tally.packed, u64::from(answer.is_packed()));
        super::count(&station.tally.bytes, answer.body.len() as u64);
        Ok(())
    }

    /// Sends a request, reads this much of its answer and leaves, one way or the other.
    pub fn leave_in_body(mut self, prefix: &str, file: &File, after: usize) -> io::Result<()> {
        self.ask(prefix, file, Request::default())?;
        let mut some = vec![0; after];
        self.stream.read_exact(&mut some)
    }

    /// Returns once the answer begins.
    fn ask(&mut self, prefix: &str, file: &File, request: Request) -> io::Result<()> {
        let packed = if request.packed { "Accept-Encoding: gzip\r\n" } else { "" };
        let last = if request.last { "Connection: close\r\n" } else { "" };
        let name = &file.name;
        let request = format!("GET {prefix}{name} HTTP/1.1\r\nHost: soak.test\r\n{packed}{last}\r\n");
        let stream = &mut self.stream.get_mut().stream;
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        if self.stream.fill_buf()?.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Nothing of the answer has arrived.
    fn unanswered(&self, error: &io::Error) -> Loss {
        let nature = match nature(error) {
            Nature::Cut if self.answered > 0 => Nature::Unanswered,
            other => other,
        };
        self.life.loss(&format!("request {}", self.answered + 1), nature, error)
    }
}

impl Life {
    fn loss(&self, what: &str, nature: Nature, why: &impl ToString) -> Loss {
        let Self { clock, port, began, connected, worker } = *self;
        let what = format!("{what}: {}", why.to_string());
        Loss { what, nature, port, began, connected, noticed: clock.now(), worker }
    }
}

/// Errors that the end of a process causes for its clients; everything else is a fault.
fn nature(error: &io::Error) -> Nature {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionRefused | ConnectionReset | UnexpectedEof => Nature::Cut,
        _ => Nature::Fault,
    }
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)
}

fn shake_hands(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.is_handshaking() {
        tls.complete_io(socket)?;
    }
    Ok(())
}

/// Status, framing, coding, and every byte.
fn verify(answer: &Answer, file: &File) -> Result<(), String> {
    if answer.status != 200 {
        return Err(format!("status {}", answer.status));
    }
    let plain = answer.plain().map_err(|error| format!("a body that cannot be unpacked: {error}"))?;
    if plain == file.content {
        return Ok(());
    }
    let at = plain.iter().zip(&file.content).position(|(is, should_be)| is != should_be);
    let at = at.map_or("at the end of the shorter".to_owned(), |at| format!("first at byte {at}"));
    Err(format!("{} bytes instead of {}, which differ {at}", plain.len(), file.content.len()))
}

/// Reads a little at a time on request.
struct Slow<S> {
    stream: S,
    is_slow: bool,
}

impl<S: Read> Read for Slow<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_slow {
            thread::sleep(PAUSE);
        }
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &[u8]) -> Answer {
        Answer { status, headers: Vec::new(), body: body.to_vec() }
    }

    #[test]
    fn one_wrong_byte_is_seen() {
        let file = File { name: "page".to_owned(), content: b"all of it".to_vec() };
        assert_eq!(verify(&answer(200, b"all of it"), &file), Ok(()));
        let why = |answer: &Answer| verify(answer, &file).unwrap_err();
        assert_eq!(why(&answer(200, b"all 0f it")), "9 bytes instead of 9, which differ first at byte 4");
        assert_eq!(
            why(&answer(200, b"all of")),
            "6 bytes instead of 9, which differ at the end of the shorter"
        );
        assert_eq!(why(&answer(502, b"all of it")), "status 502");
    }

    #[test]
    fn a_timeout_is_no_end_of_a_process() {
        assert_eq!(nature(&ErrorKind::ConnectionReset.into()), Nature::Cut);
        assert_eq!(nature(&ErrorKind::WouldBlock.into()), Nature::Fault);
        assert_eq!(nature(&ErrorKind::InvalidData.into()), Nature::Fault);
    }
}
