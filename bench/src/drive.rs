//! The load driver: full TLS handshakes, one request each, in a closed loop.
//!
//! It shares the machine with the server under test, so it must be cheap: epoll without a runtime, the
//! certificate compared with the expected one instead of building a chain, signatures verified after the clock
//! has stopped. It sacrifices nothing that could hide a fault of the server: every signature must verify, every
//! answer must be complete and exact.

mod answer;
mod client;
mod connect;
mod dialogue;
mod event_loop;
mod failure;
mod handshake;
mod handshakes;
pub mod requests;
mod threads;
mod verifier;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use rustls::pki_types::CertificateDer;

pub use self::client::{Cipher, Group, Protocol};
pub use self::failure::{FailureKind, Failures};

use self::client::ClientTls;
use self::dialogue::Dialogue;
use self::event_loop::{Drive, EventLoop};
use self::handshakes::Handshakes;
use self::requests::Content;

/// The server, and what makes an answer correct.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    /// The leaf certificate that the server must present; `None` accepts the first one and pins it.
    pub certificate: Option<CertificateDer<'static>>,
    /// The exact body of the answer; `None` accepts any complete one.
    pub body: Option<Vec<u8>>,
}

/// How hard and how long to drive, and with which parameters.
#[derive(Clone, Debug)]
pub struct Load {
    pub concurrency: usize,
    pub threads: usize,
    pub duration: Duration,
    pub protocol: Protocol,
    pub group: Group,
    /// `None` offers all suites of the protocol and leaves the choice to the server.
    pub cipher: Option<Cipher>,
    /// A single operation that takes longer has failed.
    pub timeout: Duration,
    /// The CPUs of the driver's threads, used in turn; empty to leave them where they are.
    pub cpus: Vec<usize>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            concurrency: 1,
            threads: 1,
            duration: Duration::from_secs(1),
            protocol: Protocol::Tls13,
            group: Group::X25519,
            cipher: None,
            timeout: Duration::from_secs(10),
            cpus: Vec::new(),
        }
    }
}

/// The results of one run of the driver.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Operations that were correct in every respect.
    pub ops: u64,
    /// From the first connect to the end of the last operation.
    pub elapsed: Duration,
    /// Microseconds from connect to the last byte of the answer.
    pub latency: Histogram<u64>,
    pub failures: Failures,
    /// Bytes received for correct answers; counted only where they are compared.
    pub received: u64,
    /// The decoded size of those bytes.
    pub content: u64,
    /// The cost of the driver's own threads; near `elapsed`, the driver and not the server is the limit.
    pub driver_cpu: Duration,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            ops: 0,
            elapsed: Duration::ZERO,
            latency: new_histogram(),
            failures: Failures::default(),
            received: 0,
            content: 0,
            driver_cpu: Duration::ZERO,
        }
    }
}

impl Outcome {
    #[must_use]
    pub fn ops_per_s(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.ops as f64 / self.elapsed.as_secs_f64() }
    }

    /// Adds a later round against the same server.
    pub fn append(&mut self, later: &Self) {
        self.merge(later);
        self.elapsed += later.elapsed;
    }

    /// Adds another thread's results from the same time.
    fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.latency += &other.latency;
        self.failures.merge(&other.failures);
        self.received += other.received;
        self.content += other.content;
        self.driver_cpu += other.driver_cpu;
    }

    /// Counts a correct operation.
    fn book(&mut self, latency: Duration) {
        self.ops += 1;
        self.latency.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }
}

/// Drives `target` until the time is up and every operation that was started has ended.
///
/// Every operation is paid for within the run, so server CPU time divided by [`Outcome::ops`] is exact.
pub fn run(target: &Target, load: &Load) -> io::Result<Outcome> {
    converse(target, Dialogue::Question { body: target.body.as_deref() }, load)
}

/// The same, but on each connection the page at `path` is fetched, compressed, and sent back.
pub fn round_trips(target: &Target, path: &str, content: &Content, load: &Load) -> io::Result<Outcome> {
    converse(target, Dialogue::RoundTrip { path, content }, load)
}

fn converse(target: &Target, dialogue: Dialogue, load: &Load) -> io::Result<Outcome> {
    let tls = ClientTls::new(target, load);
    let loops = event_loops(target, dialogue, load, &tls)?;
    let mut total = threads::run(loops, &|| tls.warm_up(), &EventLoop::run)?;
    // An operation with a wrong signature was counted as correct when its answer arrived.
    let wrong = tls.wrong_signatures();
    total.ops = total.ops.saturating_sub(wrong.total());
    total.failures.merge(&wrong);
    Ok(total)
}

/// Splits the connections among the threads.
fn event_loops<'a>(
    target: &'a Target,
    dialogue: Dialogue<'a>,
    load: &Load,
    tls: &ClientTls,
) -> io::Result<Vec<EventLoop<Handshakes<'a>>>> {
    let shares = threads::shares(load.concurrency, load.threads);
    let event_loop = |(thread, connections)| {
        let drive = Drive::new(load.duration, load.timeout, &load.cpus, thread);
        EventLoop::new(Handshakes::new(target, dialogue, tls), drive, connections)
    };
    shares.enumerate().map(event_loop).collect()
}

/// One microsecond to two minutes, three significant digits.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 120_000_000, 3).expect("the bounds are valid")
}
