//! Every way in which a compressed answer can be wrong must be counted under its own name.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use hasten_bench::drive::requests::{self, Content, Load, Target};
use hasten_bench::drive::{FailureKind, Outcome};

const BODY: &[u8] = b"a body that is longer when it is not compressed, not compressed, not compressed";

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn answer(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{encoding}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    [head.as_bytes(), body, b"\r\n0\r\n\r\n"].concat()
}

fn compressed(body: &[u8]) -> Vec<u8> {
    answer("Content-Encoding: gzip\r\n", &gzip(body))
}

/// Answers every request on every connection the same way; ends with the process.
fn serve(answer: Vec<u8>, close: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), answer.clone());
            thread::spawn(move || converse(stream, &answer, close));
        }
    });
    address
}

fn converse(mut stream: TcpStream, answer: &[u8], close: bool) -> Option<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|&count| count > 0)?;
        request.extend_from_slice(&buffer[..count]);
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            stream.write_all(answer).ok()?;
            if close {
                return None;
            }
        }
    }
}

fn drive(address: SocketAddr) -> Outcome {
    let content = Content::new(BODY.to_vec());
    let target = Target { address, path: "/", content: &content };
    let load = Load {
        concurrency: 4,
        threads: 2,
        duration: Duration::from_millis(300),
        timeout: Duration::from_millis(200),
        cpus: Vec::new(),
    };
    requests::run(&target, &load).unwrap()
}

fn only(outcome: &Outcome, kind: FailureKind) {
    assert!(outcome.failures.count(kind) > 0, "{}", outcome.failures);
    assert_eq!(outcome.failures.total(), outcome.failures.count(kind), "{}", outcome.failures);
    assert_eq!(outcome.ops, 0);
}

#[test]
fn right_answers_are_counted_with_their_bytes() {
    let answer = compressed(BODY);
    let length = answer.len() as u64;
    let outcome = drive(serve(answer, false));
    assert_eq!(outcome.failures.total(), 0, "{}", outcome.failures);
    // Connections stay open: more answers than connections.
    assert!(outcome.ops > 8, "{} answers", outcome.ops);
    assert_eq!(outcome.received, outcome.ops * length);
    assert_eq!(outcome.content, outcome.ops * BODY.len() as u64);
    assert_eq!(outcome.latency.len(), outcome.ops);
}

#[test]
fn what_is_not_compressed_is_an_encoding_failure() {
    only(&drive(serve(answer("", BODY), false)), FailureKind::Encoding);
}

#[test]
fn another_body_and_a_damaged_one_are_body_failures() {
    only(&drive(serve(compressed(b"another body"), false)), FailureKind::Body);
    let mut damaged = gzip(BODY);
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 1;
    only(&drive(serve(answer("Content-Encoding: gzip\r\n", &damaged), false)), FailureKind::Body);
}

#[test]
fn more_than_one_answer_to_a_request_is_a_body_failure() {
    only(
        &drive(serve([compressed(BODY), b"HTTP/1.1 200 OK\r\n".to_vec()].concat(), false)),
        FailureKind::Body,
    );
}

#[test]
fn an_error_page_is_a_status_failure() {
    let page = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    only(&drive(serve(page.to_vec(), false)), FailureKind::Status);
}

#[test]
fn an_answer_that_breaks_off_is_closed_early() {
    let mut answer = compressed(BODY);
    answer.truncate(answer.len() - 8);
    only(&drive(serve(answer, true)), FailureKind::ClosedEarly);
}

#[test]
fn an_answer_that_never_ends_is_a_timeout() {
    let mut answer = compressed(BODY);
    answer.truncate(answer.len() - 8);
    only(&drive(serve(answer, false)), FailureKind::Timeout);
}

#[test]
fn nobody_there_is_a_connect_failure() {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    only(&drive(address), FailureKind::Connect);
}
