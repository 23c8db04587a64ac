//! The load driver: full TLS handshakes, one request each, in a closed loop.
//!
//! It shares the machine with the server under test, so it must be cheap: epoll without a runtime, and the
//! certificate is compared with the expected one instead of building a chain. It gives up nothing that could hide a
//! fault of the server: the handshake signature must verify, the answer must be complete and exact.

mod client;
mod connection;
mod event_loop;
mod failure;
mod response;

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustls::pki_types::CertificateDer;

pub use self::client::{Cipher, Group, Protocol};
pub use self::failure::{FailureKind, Failures};

use self::client::ClientTls;
use self::event_loop::EventLoop;

/// Which server, and what a correct answer is.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    /// The leaf certificate that the server must present; `None` accepts the first one and pins it.
    pub certificate: Option<CertificateDer<'static>>,
    /// The exact body of the answer; `None` accepts any complete one.
    pub body: Option<Vec<u8>>,
}

/// How hard, how long and with which parameters to drive.
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
    /// The CPU of the driver's threads.
    pub cpu: Option<usize>,
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
            cpu: None,
        }
    }
}

/// What a run of the driver saw.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Operations that were right in every respect.
    pub ops: u64,
    /// From the first connect to the end of the last operation.
    pub elapsed: Duration,
    /// Microseconds from connect to the last byte of the answer.
    pub latency: Histogram<u64>,
    pub failures: Failures,
    /// What the driver's own threads cost; near `elapsed` the driver, not the server, is the limit.
    pub driver_cpu: Duration,
}

impl Outcome {
    fn empty() -> Self {
        Self {
            ops: 0,
            elapsed: Duration::ZERO,
            latency: new_histogram(),
            failures: Failures::default(),
            driver_cpu: Duration::ZERO,
        }
    }

    #[must_use]
    pub fn ops_per_s(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.ops as f64 / self.elapsed.as_secs_f64() }
    }

    /// Adds what another thread, or another round against the same server, saw.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.latency += &other.latency;
        self.failures.merge(&other.failures);
        self.driver_cpu += other.driver_cpu;
    }
}

/// Drives `target` until the time is up and every operation that was started has ended.
///
/// Every operation is paid for within the run, so server CPU time divided by [`Outcome::ops`] is exact.
pub fn run(target: &Target, load: &Load) -> io::Result<Outcome> {
    let tls = ClientTls::new(target, load);
    let started = Instant::now();
    let threads = load.threads.clamp(1, load.concurrency.max(1));
    let loops = (0..threads)
        .map(|index| {
            let share = load.concurrency / threads + usize::from(index < load.concurrency % threads);
            EventLoop::new(target, load, &tls, share)
        })
        .collect::<io::Result<Vec<_>>>()?;

    let mut total = Outcome::empty();
    thread::scope(|scope| {
        let handles: Vec<_> = loops.into_iter().map(|driver| scope.spawn(move || driver.run())).collect();
        for handle in handles {
            let outcome = handle.join().map_err(|_| io::Error::other("a driver thread panicked"))??;
            total.merge(&outcome);
        }
        Ok::<_, io::Error>(())
    })?;
    total.elapsed = started.elapsed();
    Ok(total)
}

/// One microsecond to two minutes, three significant digits.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 120_000_000, 3).expect("the bounds are valid")
}
