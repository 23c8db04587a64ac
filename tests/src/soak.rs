//! Endurance: nginx, HAProxy and Envoy under mixed clients, reloaded and killed for as long as anyone wants to wait.
//!
//! The stock servers run beside the accelerated ones, under the same clients and the same [`schedule`]. [`ledger`]
//! defines what a client may lose, [`findings`] what is held against a server. `docs/reliability.md` says it in prose.

pub mod connection;
pub mod corpus;
pub mod heap;
pub mod ledger;
pub mod random;
pub mod samples;
pub mod schedule;
pub mod slope;
pub mod station;
pub mod visitor;

mod actor;
pub mod findings;
pub mod page;
pub mod report;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hasten_bench::server::Server;

use self::corpus::Corpus;
use self::samples::Sample;
use self::schedule::{SERVERS, Schedule};
use self::station::{Clock, Station};
use self::visitor::Visitor;
use crate::Side;
use crate::pki::Pki;

const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

/// The number of clients per server.
const VISITORS: usize = 12;

/// How long a server may take to end its old workers once all clients are gone.
const END_LIMIT: Duration = Duration::from_secs(90);

/// Consecutive looks, a second apart, without a change: HAProxy gives up half of its idle connections every five
/// seconds.
const STILL: u32 = 8;

/// Servers under endurance; dropping it ends them.
pub struct Soak {
    pub stations: Vec<Station>,
    pub corpus: Corpus,
    _origin: Server,
    _pki: Pki,
}

/// Observations of one server.
pub struct Record {
    /// Before the first client and after the last.
    pub before: Sample,
    pub after: Sample,
    pub samples: Vec<Sample>,
}

impl Soak {
    #[must_use]
    pub fn start(sides: &[Side]) -> Self {
        let (pki, corpus) = (Pki::new(), Corpus::new());
        let origin = station::origin(&corpus);
        let mut stations = Vec::new();
        for kind in SERVERS {
            for side in sides {
                stations.push(Station::start(kind, *side, &pki, &corpus, origin.address()));
            }
        }
        Self { stations, corpus, _origin: origin, _pki: pki }
    }

    /// Follows the schedule to its end, or until `stop` is true. Returns the observations of each server.
    pub fn run(&self, schedule: &Schedule, stop: &AtomicBool) -> Vec<Record> {
        let before = settle(&self.stations, stop);
        let clock = Clock(Instant::now());
        let samples: Vec<Mutex<Vec<Sample>>> = self.stations.iter().map(|_| Mutex::default()).collect();
        let leave = &AtomicBool::new(false);
        thread::scope(|scope| {
            for (station, samples) in self.stations.iter().zip(&samples) {
                scope.spawn(move || {
                    let _leave = Raise(leave);
                    actor::act(station, schedule, clock, leave);
                    wait_for(schedule.phases.steady, clock, leave);
                });
                for visitor in 0..VISITORS {
                    // The same clients on both sides.
                    let seed = schedule.seed ^ ((station.kind as u64) << 32) ^ (visitor as u64 + 1);
                    scope.spawn(move || {
                        let _leave = Raise(leave);
                        Visitor::new(station, &self.corpus, clock, seed).stay_until(leave);
                    });
                }
                scope.spawn(move || sample(station, samples, clock, leave));
            }
            self.watch(schedule, clock, stop, leave);
        });
        let after = settle(&self.stations, stop);
        let seen = before.into_iter().zip(samples).zip(after);
        seen.map(|((before, samples), after)| {
            let samples = samples.into_inner().unwrap_or_else(PoisonError::into_inner);
            Record { before, after, samples }
        })
        .collect()
    }

    /// Reports progress, and passes on the request to stop.
    fn watch(&self, schedule: &Schedule, clock: Clock, stop: &AtomicBool, leave: &AtomicBool) {
        let mut next = PROGRESS_EVERY;
        while !leave.load(Relaxed) {
            thread::sleep(Duration::from_millis(50));
            if stop.load(Relaxed) {
                leave.store(true, Relaxed);
            }
            if clock.now() >= next {
                next += PROGRESS_EVERY;
                eprintln!("{}", self.progress(schedule, clock));
            }
        }
    }

    fn progress(&self, schedule: &Schedule, clock: Clock) -> String {
        let total = schedule.phases.steady.as_secs();
        let mut line = format!("{:>4} of {total} s", clock.now().as_secs());
        for station in &self.stations {
            let sample = Sample::of(station, clock);
            let (_, losses) = station.losses();
            line += &format!(
                " | {}: {} answers, {} lost, {} MiB, {} fds",
                station.name(),
                sample.answers,
                losses.len(),
                sample.sum(|holding| holding.proportional_kib) >> 10,
                sample.descriptors(),
            );
        }
        line
    }
}

/// Set when a thread ends, even by a panic: the others do not continue without it.
struct Raise<'flag>(&'flag AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn wait_for(end: Duration, clock: Clock, leave: &AtomicBool) {
    while clock.now() < end && !leave.load(Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}

fn sample(station: &Station, samples: &Mutex<Vec<Sample>>, clock: Clock, leave: &AtomicBool) {
    let mut next = Duration::ZERO;
    while !leave.load(Relaxed) {
        if clock.now() >= next {
            next += SAMPLE_EVERY;
            let sample = Sample::of(station, clock);
            samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until old workers have ended and all connections abandoned by clients are closed, unless interrupted.
fn settle(stations: &[Station], stop: &AtomicBool) -> Vec<Sample> {
    let clock = Clock(Instant::now());
    let look = || stations.iter().map(|station| Sample::of(station, clock)).collect::<Vec<_>>();
    let (mut last, mut still) = (look(), 0);
    loop {
        thread::sleep(SAMPLE_EVERY);
        let now = look();
        let is_still = now.iter().zip(&last).all(|(now, last)| now.descriptors() >= last.descriptors());
        let are_usual = now.iter().zip(stations).all(|(now, station)| left_over(now, station) == 0);
        still = if is_still && are_usual { still + 1 } else { 0 };
        if still >= STILL || clock.now() > END_LIMIT || stop.load(Relaxed) {
            return now;
        }
        last = now;
    }
}

/// Workers beyond the usual number of a server without old workers.
fn left_over(sample: &Sample, station: &Station) -> usize {
    sample.workers().len().saturating_sub(station.usual_workers())
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
