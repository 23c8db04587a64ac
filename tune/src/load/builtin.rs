//! The driver for users without a tool: requests on open connections, in a closed loop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::{LoadError, LoadResult, Received, Target};
use crate::http::Client;
use crate::measure::Latency;

/// A single request that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A pause after a failure, so that a dead server is not hammered.
const REST: Duration = Duration::from_millis(10);
const STACK: usize = 512 << 10;

#[derive(Clone, Debug)]
pub(super) struct Builtin {
    target: Target,
    connections: usize,
    duration: Duration,
}

impl Builtin {
    pub(super) fn new(url: &str, connections: usize, duration: Duration) -> Result<Self, LoadError> {
        let mut target = Target::new(url)?;
        // As every browser does: compression is part of a service's cost.
        target.headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
        Ok(Self { target, connections: connections.max(1), duration })
    }

    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    pub(super) fn describe(&self) -> String {
        let seconds = self.duration.as_secs_f64();
        format!("built-in driver, {} connections for {seconds} s, {}", self.connections, self.target)
    }

    pub(super) fn longer(&self) -> String {
        format!("--duration {}s", (2.0 * self.duration.as_secs_f64()).ceil())
    }

    pub(super) fn seconds(&self) -> f64 {
        self.duration.as_secs_f64()
    }

    pub(super) fn run(&self, deadline: Instant, stop: &AtomicBool) -> Result<LoadResult, LoadError> {
        let started = Instant::now();
        let end = started + self.duration;
        let seen = thread::scope(|scope| {
            let drive = || self.drive(end.min(deadline), stop);
            let threads: Vec<_> = (0..self.connections)
                .map(|_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, drive))
                .collect();
            let mut total = Ok(Seen::new());
            for thread in threads {
                let seen = thread.map(|thread| {
                    thread.join().unwrap_or_else(|_| Err("a thread of the driver panicked".to_owned()))
                });
                let seen = seen.unwrap_or_else(|error| Err(error.to_string()));
                total = total.and_then(|total: Seen| Ok(total.and(&seen?)));
            }
            total
        });
        let seen = seen.map_err(LoadError::Driver)?;
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        if end > deadline {
            return Err(LoadError::Deadline { printed: "(the built-in driver prints nothing)".to_owned() });
        }
        Ok(seen.result(started.elapsed()))
    }

    /// One connection. Every request is also answered, so that CPU time divided by requests is exact.
    fn drive(&self, end: Instant, stop: &AtomicBool) -> Result<Seen, String> {
        let mut client = Client::new(&self.target.url, &self.target.headers, TIMEOUT)
            .map_err(|error| error.to_string())?;
        let mut seen = Seen::new();
        let mut before = 0;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            let started = Instant::now();
            match client.fetch() {
                Ok(answer) if (200..300).contains(&answer.status()) => {
                    seen.right(started.elapsed(), client.received() - before);
                }
                Ok(answer) => seen.wrong(format!("status {}", answer.status())),
                Err(error) => {
                    seen.wrong(error.to_string());
                    thread::sleep(REST);
                }
            }
            before = client.received();
        }
        Ok(seen)
    }
}

struct Seen {
    requests: u64,
    failures: BTreeMap<String, u64>,
    /// In answers that were right.
    bytes: u64,
    /// Microseconds.
    latency: Histogram<u64>,
}

impl Seen {
    fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, 120_000_000, 3).expect("the bounds are valid");
        Self { requests: 0, failures: BTreeMap::new(), bytes: 0, latency }
    }

    fn right(&mut self, latency: Duration, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    fn wrong(&mut self, what: String) {
        *self.failures.entry(what).or_default() += 1;
    }

    fn and(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency += &other.latency;
        for (what, count) in &other.failures {
            *self.failures.entry(what.clone()).or_default() += count;
        }
        self
    }

    fn result(&self, elapsed: Duration) -> LoadResult {
        let at = |percent: f64| Some(self.latency.value_at_percentile(percent) as f64 / 1e3);
        let latency = Latency {
            mean: Some(self.latency.mean() / 1e3),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            max: at(100.0),
        };
        LoadResult {
            requests: Some(self.requests as f64),
            seconds: elapsed.as_secs_f64(),
            failed: self.failures.values().sum(),
            failures: self.failures.iter().map(|(what, count)| format!("{count} × {what}")).collect(),
            latency: (self.requests > 0).then_some(latency),
            custom: None,
            received: (self.requests > 0).then_some(Received { bytes: self.bytes as f64, rounding: 0.0 }),
        }
    }
}
