//! A plain HTTP client that trusts nothing: it parses messages by hand and decompresses with another inflate than
//! the one under test.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Decompress;
use flate2::bufread::GzDecoder;

const PATIENCE: Duration = Duration::from_secs(20);

/// Headers that the server itself decides anew for every answer.
const PASSING: [&str; 2] = ["date", "server"];

/// A server's address; every request opens a new connection.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    headers: String,
}

/// An answer with its transfer coding removed.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Lower-case names, in the server's order.
    pub headers: Vec<(String, String)>,
    /// As encoded for transmission.
    pub body: Vec<u8>,
}

/// The part of an answer that must not depend on the implementation of zlib.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Essence {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub plain: Plain,
}

/// A body after decoding. Its debug output is its length and its beginning.
#[derive(Clone, PartialEq, Eq)]
pub struct Plain(pub Vec<u8>);

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = String::from_utf8_lossy(&self.0[..self.0.len().min(40)]).into_owned();
        write!(f, "{} bytes, {start:?}…", self.0.len())
    }
}

impl Client {
    /// Accepts answers uncompressed, and compressed by gzip.
    #[must_use]
    pub fn of(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), headers: "Accept-Encoding: gzip\r\n".to_owned() }
    }

    /// Accepts only uncompressed answers.
    #[must_use]
    pub fn without_gzip(&self) -> Self {
        Self { headers: String::new(), ..self.clone() }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.headers, "{name}: {value}\r\n");
        self
    }

    /// Requests a path and reads to the end.
    pub fn get(&self, path: &str) -> io::Result<Answer> {
        let mut reader = self.ask(path)?;
        Answer::read(&mut reader)
    }

    /// Requests a path and leaves reading the answer to the caller.
    pub fn ask(&self, path: &str) -> io::Result<BufReader<UnixStream>> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let headers = &self.headers;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")?;
        Ok(BufReader::new(stream))
    }
}

impl Answer {
    /// Reads an answer that ends as its headers say.
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let (status, headers) = read_head(from)?;
        let mut answer = Self { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            while read_chunk(from, &mut answer.body)? {}
        } else if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().map_err(io::Error::other)?];
            from.read_exact(&mut answer.body)?;
        } else {
            from.read_to_end(&mut answer.body)?;
        }
        Ok(answer)
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.header("content-encoding") == Some("gzip")
    }

    /// The body, decompressed if necessary.
    pub fn plain(&self) -> io::Result<Vec<u8>> {
        if self.is_packed() { unpack(&self.body) } else { Ok(self.body.clone()) }
    }

    /// What must be the same whichever side compressed it.
    #[must_use]
    pub fn essence(&self) -> Essence {
        let stays = |(name, _): &&(String, String)| !PASSING.contains(&name.as_str());
        Essence {
            status: self.status,
            headers: self.headers.iter().filter(stays).cloned().collect(),
            plain: Plain(self.plain().expect("a body that can be unpacked")),
        }
    }
}

/// Reads status and headers.
pub fn read_head(from: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let line = read_line(from)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        match line.split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None if line.is_empty() => return Ok((status, headers)),
            None => return Err(io::Error::other(format!("no header: {line:?}"))),
        }
    }
}

/// Appends the next chunk; false after the last.
pub fn read_chunk(from: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<bool> {
    let size = usize::from_str_radix(&read_line(from)?, 16).map_err(io::Error::other)?;
    let start = body.len();
    body.resize(start + size, 0);
    from.read_exact(&mut body[start..])?;
    let end = read_line(from)?;
    if end.is_empty() {
        Ok(size > 0)
    } else {
        Err(io::Error::other(format!("a chunk that goes on: {end:?}")))
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Decompresses exactly one member that fills all of `packed`.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut decoder = GzDecoder::new(packed);
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain)?;
    let behind = decoder.into_inner();
    if behind.is_empty() {
        Ok(plain)
    } else {
        Err(io::Error::other(format!("{} bytes behind the end", behind.len())))
    }
}

/// Decompresses the available part of an unfinished member.
#[derive(Debug)]
pub struct Unpacker {
    inflate: Decompress,
    plain: Vec<u8>,
    taken: usize,
}

impl Unpacker {
    /// Bytes of the header that nginx writes: one without options.
    const HEADER: usize = 10;

    #[must_use]
    #[expect(clippy::new_without_default, reason = "a stream that has begun is no default of anything")]
    pub fn new() -> Self {
        Self { inflate: Decompress::new(false), plain: Vec::new(), taken: Self::HEADER }
    }

    /// Everything that can be decompressed of `packed`, which has grown since the last call.
    pub fn unpack(&mut self, packed: &[u8]) -> &[u8] {
        while self.taken < packed.len() {
            self.plain.reserve(64 << 10);
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let flush = flate2::FlushDecompress::Sync;
            self.inflate
                .decompress_vec(&packed[self.taken..], &mut self.plain, flush)
                .expect("a good stream");
            self.taken += usize::try_from(self.inflate.total_in() - before.0).expect("bytes in memory");
            if (self.inflate.total_in(), self.inflate.total_out()) == before {
                break;
            }
        }
        &self.plain
    }
}
