//! The server behind Envoy: it has the pages, and checks those that are sent back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::affinity::Pinned;
use crate::certificates::Certificate;

/// A page, as it is and compressed.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Page {
    pub(super) fn new(path: &str, plain: Vec<u8>) -> io::Result<Self> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&plain)?;
        Ok(Self { path: path.to_owned(), packed: encoder.finish()?, plain })
    }
}

/// What stands before the path of a page that is wanted compressed.
pub(super) const PACKED: &str = "/packed";

/// Runs until it is dropped.
pub(super) struct Origin {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Origin {
    /// Serves the pages on the loopback, by TLS if there is a certificate; its threads stay on `cpu`.
    pub(super) fn start(
        pages: Vec<Page>,
        certificate: Option<&Certificate>,
        cpu: Option<usize>,
    ) -> io::Result<Self> {
        let tls = certificate.map(tls).transpose()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (pages, is_over) = (Arc::new(pages), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        thread::Builder::new().name("origin".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (pages, tls) = (Arc::clone(&pages), tls.clone());
                thread::spawn(move || {
                    let _pinned = cpu.map(Pinned::to);
                    // Whatever ends a connection, Envoy sees it and the driver after it.
                    let _ = serve(stream, tls, &pages);
                });
            }
        })?;
        Ok(Self { address, is_over })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address).and_then(|stream| stream.shutdown(Shutdown::Both));
    }
}

fn tls(certificate: &Certificate) -> io::Result<Arc<ServerConfig>> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&certificate.chain).map_err(io::Error::other)?.collect();
    let key = PrivateKeyDer::from_pem_file(&certificate.key).map_err(io::Error::other)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.map_err(io::Error::other)?, key)
        .map_err(io::Error::other)?;
    Ok(Arc::new(config))
}

fn serve(stream: TcpStream, tls: Option<Arc<ServerConfig>>, pages: &[Page]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            answer_all(BufReader::with_capacity(64 << 10, StreamOwned::new(connection, stream)), pages)
        }
        None => answer_all(BufReader::with_capacity(64 << 10, stream), pages),
    }
}

/// Answers requests on a connection until its other end closes it.
fn answer_all<S: Read + Write>(mut stream: BufReader<S>, pages: &[Page]) -> io::Result<()> {
    while let Some(request) = Request::read(&mut stream)? {
        let (is_packed, path) = match request.path.strip_prefix(PACKED) {
            Some(path) => (true, path),
            None => (false, request.path.as_str()),
        };
        let page = pages.iter().find(|page| page.path == path);
        let answer = match page {
            None => head("404 Not Found", "", 0),
            Some(page) if request.is_upload && page.plain == request.body => head("200 OK", "", 0),
            Some(_) if request.is_upload => head("400 Bad Request", "", 0),
            Some(page) if is_packed => {
                with(head("200 OK", "content-encoding: gzip\r\n", page.packed.len()), &page.packed)
            }
            Some(page) => with(head("200 OK", "", page.plain.len()), &page.plain),
        };
        let stream = stream.get_mut();
        stream.write_all(&answer)?;
        stream.flush()?;
    }
    Ok(())
}

fn head(status: &str, lines: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: text/html\r\n{lines}content-length: {length}\r\n\r\n")
        .into_bytes()
}

fn with(mut head: Vec<u8>, body: &[u8]) -> Vec<u8> {
    head.extend_from_slice(body);
    head
}

struct Request {
    is_upload: bool,
    path: String,
    body: Vec<u8>,
}

impl Request {
    /// `None` if there is no further one.
    fn read(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "transfer-encoding" => is_chunked = value == "chunked",
                _ => {}
            }
        }
        let body = if is_chunked { chunks(stream)? } else { exactly(stream, length)? };
        Ok(Some(Self { is_upload: method == "POST", path, body }))
    }
}

fn exactly(stream: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The chunks of a body, and the trailers behind them, which are ignored.
fn chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let (mut body, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        if length == 0 {
            break;
        }
        body.append(&mut exactly(stream, length)?);
        exactly(stream, 2)?;
    }
    while !line.trim_end().is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &[u8]) -> String {
        let page = Page::new("/page", b"a page".to_vec()).expect("memory");
        let origin = Origin::start(vec![page], None, None).expect("a port");
        let mut stream = TcpStream::connect(origin.address()).expect("a connection");
        stream.write_all(request).expect("a request");
        stream.shutdown(Shutdown::Write).expect("an end");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn pages_are_served_and_compared() {
        assert!(ask(b"GET /page HTTP/1.1\r\nhost: x\r\n\r\n").ends_with("\r\n\r\na page"));
        assert!(ask(b"GET /packed/page HTTP/1.1\r\nhost: x\r\n\r\n").contains("content-encoding: gzip"));
        assert!(ask(b"GET /other HTTP/1.1\r\nhost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
        let upload = |body: &str| format!("POST /page HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{body}");
        assert!(
            ask(upload("2\r\na \r\n4\r\npage\r\n0\r\nx: y\r\n\r\n").as_bytes()).starts_with("HTTP/1.1 200")
        );
        assert!(ask(upload("6\r\na pagf\r\n0\r\n\r\n").as_bytes()).starts_with("HTTP/1.1 400"));
        assert!(ask(b"POST /page HTTP/1.1\r\ncontent-length: 6\r\n\r\na page").starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn connection_has_several_requests() {
        let request = b"GET /page HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(ask(&[&request[..], request].concat()).matches("a page").count(), 2);
    }
}
