use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use super::*;

/// Far more than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// So that a different limit applies.
const NEVER: Duration = Duration::from_secs(3600);

/// A server in a thread, on a host without devices.
struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        Self::with(LIMITS, false)
    }

    fn with(limits: Limits, allow_remote: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let watch = Watch::start(Collector::new("/nonexistent")).unwrap();
            let stopped = async { drop(stopped.await) };
            let site = Site { watch, allow_remote };
            runtime.block_on(run(listener, site, limits, |_| {}, stopped)).unwrap();
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Everything received for these bytes until the server closes.
    fn send(&self, bytes: &str) -> String {
        let mut stream = self.connect();
        // A request that is refused half-way may be reset before it has been sent completely.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn get(&self, path: &str, headers: &str) -> (String, String) {
        let answer = self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {answer:?}"));
        (head.to_owned(), body.to_owned())
    }

    /// The thread ends by itself once told to.
    fn finish(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer:?}")).parse().unwrap()
}

#[test]
fn metrics_come_as_the_scraper_wants_them() {
    let server = Server::start();
    let (head, body) = server.get("/metrics", "");
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert!(head.contains("vary: accept") && head.contains("connection: close"), "{head}");
    assert!(body.contains("\nhasten_processes_denied ") && !body.contains("# EOF"), "{body}");
    let (head, body) =
        server.get("/metrics?format=any", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"), "{body}");
    server.finish();
}

#[test]
fn the_page_the_status_and_the_sign_of_life_are_there() {
    let server = Server::start();
    let (head, body) = server.get("/", "");
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'nonce-"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    assert!(body.starts_with("<!DOCTYPE html>") && body.trim_end().ends_with("</html>"));
    let (head, body) = server.get("/api/status", "");
    assert!(head.contains("content-type: application/json"), "{head}");
    let status: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status["schema"], 1);
    let history: serde_json::Value = serde_json::from_str(&server.get("/api/history", "").1).unwrap();
    assert_eq!(history["points"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/healthz", "").1, "ok\n");
    server.finish();
}

#[test]
fn what_is_not_here_is_said_to_be_not_here() {
    let server = Server::start();
    let (head, body) = server.get("/etc/passwd", "");
    assert_eq!(status(&head), 404);
    assert!(body.contains("/metrics"), "{body}");
    for path in ["/metrics/", "/../etc/passwd", "//metrics", "/%2e%2e/metrics"] {
        assert_eq!(status(&server.get(path, "").0), 404, "{path}");
    }
    let host = format!("Host: {}", server.address);
    let posted = server.send(&format!("POST /metrics HTTP/1.1\r\n{host}\r\nContent-Length: 3\r\n\r\nabc"));
    assert_eq!(status(&posted), 405);
    assert!(posted.contains("allow: GET, HEAD"), "{posted}");
    let head = server.send(&format!("HEAD /healthz HTTP/1.1\r\n{host}\r\n\r\n"));
    assert!(
        status(&head) == 200 && head.ends_with("\r\n\r\n") && head.contains("content-length: 3"),
        "{head}"
    );
    server.finish();
}

#[test]
fn a_name_that_anybody_could_have_made_lead_here_is_refused() {
    let ask = |server: &Server, host: &str| {
        status(&server.send(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")))
    };
    let server = Server::start();
    assert_eq!(ask(&server, "rebound.example:9469"), 403);
    assert_eq!(ask(&server, "localhost:9469"), 200);
    server.finish();
    let open = Server::with(LIMITS, true);
    assert_eq!(ask(&open, "metrics.example:9469"), 200);
    open.finish();
}

#[test]
fn requests_without_measure_are_refused() {
    let server = Server::start();
    let host = server.address;
    let long = "x".repeat(2 * MOST_HEAD);
    let wide = "X: y\r\n".repeat(MOST_HEADERS + 1);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n{wide}\r\n"),
        "\u{16}\u{3}\u{1}not http at all\r\n\r\n".to_owned(),
    ] {
        let answer = server.send(&request);
        // A client that is still sending may see a reset instead of an answer.
        assert!(answer.is_empty() || (400..=431).contains(&status(&answer)), "{answer}");
    }
    assert_eq!(server.get("/healthz", "").1, "ok\n");
    server.finish();
}

#[test]
fn clients_that_say_nothing_make_nobody_wait_for_long() {
    let limits =
        Limits { connections: 2, head_time: Duration::from_millis(100), connection_time: NEVER, ..LIMITS };
    let server = Server::with(limits, false);
    let silent: Vec<TcpStream> = (0..6).map(|_| server.connect()).collect();
    assert_eq!(server.get("/healthz", "").1, "ok\n");
    for mut stream in silent {
        let mut rest = Vec::new();
        // Closed by the server, with or without an answer.
        let _ = stream.read_to_end(&mut rest);
    }
    server.finish();
}

#[test]
fn a_client_that_never_comes_to_its_end_loses_its_connection() {
    let limits =
        Limits { connections: 1, head_time: NEVER, connection_time: Duration::from_millis(300), ..LIMITS };
    let server = Server::with(limits, false);
    let mut endless = server.connect();
    endless.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n", server.address).as_bytes()).unwrap();
    assert_eq!(server.get("/healthz", "").1, "ok\n");
    server.finish();
}

#[test]
fn it_ends_when_it_is_told_to_whoever_is_connected() {
    let server = Server::with(Limits { parting_time: Duration::from_millis(200), ..LIMITS }, false);
    let _silent = server.connect();
    assert_eq!(server.get("/healthz", "").1, "ok\n");
    server.finish();
}

#[test]
fn scrapers_at_the_same_time_share_a_look() {
    let server = Server::start();
    thread::scope(|scope| {
        let answers: Vec<_> = (0..16).map(|_| scope.spawn(|| server.get("/metrics", "").1)).collect();
        for answer in answers {
            assert!(answer.join().unwrap().contains("hasten_scan_duration_seconds "));
        }
    });
    server.finish();
}
