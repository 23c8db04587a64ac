//! A small HTTP/1.1 client for loopback: one connection that stays open, any status, complete answers only.

mod tls;
mod url;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use hasten_bench::http::{Limits, Response};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

pub(crate) use self::url::Url;

/// An endless head or body must not exhaust our memory.
const LIMITS: Limits = Limits { head: 256 << 10, body: 256 << 20 };

/// Sends the same request repeatedly.
#[derive(Debug)]
pub(crate) struct Client {
    addresses: Vec<SocketAddr>,
    host: String,
    tls: Option<Arc<ClientConfig>>,
    request: Vec<u8>,
    timeout: Duration,
    stream: Option<Stream>,
    buffer: Vec<u8>,
    /// Bytes of answers, including heads and frames but not TLS.
    received: u64,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Client {
    /// `headers` replace our own headers of the same name.
    pub(crate) fn new(url: &Url, headers: &[(String, String)], timeout: Duration) -> io::Result<Self> {
        let addresses: Vec<_> = (url.host.as_str(), url.port).to_socket_addrs()?.collect();
        Ok(Self {
            addresses,
            host: url.host.clone(),
            tls: url.tls.then(tls::config),
            request: request(url, headers).into_bytes(),
            timeout,
            stream: None,
            buffer: vec![0; 64 << 10],
            received: 0,
        })
    }

    /// Bytes of all answers so far, as received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The answer to one more request.
    pub(crate) fn fetch(&mut self) -> io::Result<Response> {
        if let Some(stream) = self.stream.take() {
            match self.exchange(stream) {
                // Between two requests a server may close any connection.
                Err(error) if is_closed(&error) => {}
                other => return other,
            }
        }
        let stream = self.connect()?;
        self.exchange(stream)
    }

    fn exchange(&mut self, mut stream: Stream) -> io::Result<Response> {
        stream.write_all(&self.request)?;
        stream.flush()?;
        let mut response = Response::new(LIMITS);
        loop {
            let count = match stream.read(&mut self.buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The server closed the connection without TLS's close_notify; whether the answer is complete is
                // checked later.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) if response.is_empty() => return Err(error),
                Err(error) => return Err(io::Error::other(format!("in the middle of an answer: {error}"))),
            };
            self.received += count as u64;
            let taken = response.push(&self.buffer[..count])?;
            if count == 0 {
                end(&mut response)?;
            }
            if response.is_complete() {
                // Excess bytes belong to no request.
                if response.keeps_alive() && taken == count {
                    self.stream = Some(stream);
                }
                return Ok(response);
            }
        }
    }

    fn connect(&self) -> io::Result<Stream> {
        let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in &self.addresses {
            match TcpStream::connect_timeout(address, self.timeout) {
                Ok(socket) => return self.dressed(socket),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    fn dressed(&self, socket: TcpStream) -> io::Result<Stream> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.timeout))?;
        socket.set_write_timeout(Some(self.timeout))?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection that ends before any byte of an answer was closed between two requests.
fn end(response: &mut Response) -> io::Result<()> {
    if response.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(response.end()?) }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn request(url: &Url, headers: &[(String, String)]) -> String {
    let own = [("Host", url.authority()), ("User-Agent", "hasten".to_owned()), ("Accept", "*/*".to_owned())];
    let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut text = format!("GET {} HTTP/1.1\r\n", url.path);
    let own =
        own.into_iter().filter(|(name, _)| !is_given(name)).map(|(name, value)| (name.to_owned(), value));
    // No header of the user's may become two lines.
    let clean = |text: &str| text.replace(['\r', '\n'], " ");
    for (name, value) in own.chain(headers.iter().cloned()) {
        text += &format!("{}: {}\r\n", clean(&name), clean(&value));
    }
    text + "\r\n"
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Sends each answer, closing the connection after those marked so, and counts connections.
    fn serve(answers: Vec<(&'static [u8], bool)>) -> (Url, thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/a?b=c", listener.local_addr().unwrap())).unwrap();
        let server = thread::spawn(move || {
            let mut connections = 0;
            let mut answers = answers.into_iter().peekable();
            while answers.peek().is_some() {
                let (mut socket, _) = listener.accept().unwrap();
                connections += 1;
                for (answer, closes) in answers.by_ref() {
                    let mut request = Vec::new();
                    let mut byte = [0];
                    while !request.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap_or(0) == 1 {
                        request.push(byte[0]);
                    }
                    assert!(request.starts_with(b"GET /a?b=c HTTP/1.1\r\n"), "{request:?}");
                    socket.write_all(answer).unwrap();
                    if closes {
                        break;
                    }
                }
            }
            connections
        });
        (url, server)
    }

    #[test]
    fn connections_stay_open_and_are_renewed_where_a_server_closes_them() {
        let answers: Vec<(&'static [u8], bool)> = vec![
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
            (b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", true),
            (b"HTTP/1.1 204 No Content\r\n\r\n", false),
            (b"HTTP/1.0 200 OK\r\n\r\nto the end", true),
        ];
        let bytes: usize = answers.iter().map(|(answer, _)| answer.len()).sum();
        let (url, server) = serve(answers);
        let mut client = Client::new(&url, &[], Duration::from_secs(60)).unwrap();
        let mut fetch = || client.fetch().map(|answer| (answer.status(), answer.body().to_vec()));
        assert_eq!(fetch().unwrap(), (200, b"ok".to_vec()));
        assert_eq!(fetch().unwrap(), (404, b"no".to_vec()));
        assert_eq!(fetch().unwrap(), (204, Vec::new()));
        assert_eq!(fetch().unwrap(), (200, b"to the end".to_vec()));
        assert_eq!(client.received(), bytes as u64);
        drop(client);
        assert_eq!(server.join().unwrap(), 2);
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        let (url, server) = serve(vec![(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", true)]);
        let mut client = Client::new(&url, &[], Duration::from_secs(60)).unwrap();
        assert!(client.fetch().is_err());
        server.join().unwrap();
    }

    #[test]
    fn headers_of_the_user_take_the_place_of_ours() {
        let url = Url::parse("https://localhost:8443").unwrap();
        let headers =
            [("host".to_owned(), "example.org".to_owned()), ("X".to_owned(), "a\r\nY: b".to_owned())];
        let request = request(&url, &headers);
        assert!(request.contains("host: example.org\r\n") && !request.contains("localhost"), "{request}");
        assert!(request.contains("X: a  Y: b\r\n"), "{request}");
    }
}
