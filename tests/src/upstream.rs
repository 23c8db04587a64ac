//! A server behind the server, whose kinds of answers make a proxy compress in different ways.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::bodies;

/// Runs until the end of the test program.
///
/// * `/length/N`: N bytes with a Content-Length.
/// * `/chunked/N`: N bytes in chunks.
/// * `/packed/N`: N bytes that have been packed already.
/// * `/lines`: what [`Upstream::say`] says, when it says it.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    lines: Sender<Option<String>>,
}

impl Upstream {
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on the loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (lines, said) = mpsc::channel();
        let said = Arc::new(Mutex::new(said));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = Arc::clone(&said);
                // A proxy that gives up on us does not concern us.
                thread::spawn(move || answer(&stream, &said).unwrap_or_default());
            }
        });
        Self { address, lines }
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a line to every client that has requested `/lines`.
    pub fn say(&self, line: &str) {
        self.lines.send(Some(line.to_owned())).expect("the upstream runs");
    }

    /// Ends the answer to `/lines`.
    pub fn hush(&self) {
        self.lines.send(None).expect("the upstream runs");
    }
}

fn answer(stream: &TcpStream, said: &Mutex<Receiver<Option<String>>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let mut parts = path.trim_start_matches('/').split('/');
    let (way, length) = (parts.next().unwrap_or_default(), parts.next().and_then(|n| n.parse().ok()));
    let body = bodies::page(length.unwrap_or(0));
    match way {
        "length" => send(stream, "", &body),
        "chunked" => send_chunks(stream, &body),
        "packed" => send(stream, "Content-Encoding: gzip\r\n", &pack(&body)?),
        "lines" => send_lines(stream, said),
        _ => write!(&*stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    }
}

fn send(mut stream: &TcpStream, headers: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";

/// Chunks of all sizes: the proxy reads them as it likes.
fn send_chunks(mut stream: &TcpStream, body: &[u8]) -> io::Result<()> {
    stream.write_all(CHUNKED)?;
    let (mut rest, mut size) = (body, 1);
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(size.min(rest.len()));
        send_chunk(stream, chunk)?;
        (rest, size) = (behind, size * 7 % 20_011);
    }
    stream.write_all(b"0\r\n\r\n")
}

fn send_chunk(mut stream: &TcpStream, chunk: &[u8]) -> io::Result<()> {
    let mut message = format!("{:x}\r\n", chunk.len()).into_bytes();
    message.extend_from_slice(chunk);
    message.extend_from_slice(b"\r\n");
    stream.write_all(&message)
}

fn send_lines(mut stream: &TcpStream, said: &Mutex<Receiver<Option<String>>>) -> io::Result<()> {
    stream.write_all(CHUNKED)?;
    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
    while let Ok(Some(line)) = said.recv() {
        send_chunk(stream, line.as_bytes())?;
    }
    stream.write_all(b"0\r\n\r\n")
}

fn pack(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}
