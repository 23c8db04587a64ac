//! A server under test, and what must hold for it whatever a test does.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Deref;
use std::thread;
use std::time::Duration;

use hasten_bench::drive::{Load, Outcome};
use hasten_bench::server::{Launcher, Server, ServerSpec};
use hasten_telemetry::{Algorithm, Counters, Event, PageHandle, Snapshot};
use rustix::process::{Pid, Signal, kill_process};

use crate::footprint::Footprint;
use crate::traffic::Traffic;
use crate::{hello, lanes, product, wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Stock,
    Accelerated,
}

/// A running server. Tests end it with [`finish`](Self::finish), which checks how it fared.
#[derive(Debug)]
pub struct Subject {
    server: Server,
    side: Side,
}

impl Deref for Subject {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// Does the same to both servers. The outcomes must be equal, and the accelerated one must not complain about
/// anything that the stock one does not.
pub fn same_as_stock<T: PartialEq + Debug>(spec: &ServerSpec, edge: impl Fn(&Subject) -> T) -> T {
    let stock = Subject::start(spec, Side::Stock);
    let expected = edge(&stock);
    let usual = stock.end();
    let accelerated = Subject::start(spec, Side::Accelerated);
    let outcome = edge(&accelerated);
    assert_eq!(outcome, expected, "accelerated (left) and stock differ\n{}", accelerated.log());
    let alarms = accelerated.end();
    let new: Vec<_> = alarms.difference(&usual).collect();
    assert!(new.is_empty(), "the stock server does not say {new:#?}");
    outcome
}

/// Enough connections for batches to form even when the machine is busy with other tests.
#[must_use]
pub fn crowd() -> Load {
    Load { concurrency: 64, timeout: Duration::from_secs(20), ..Load::default() }
}

impl Subject {
    #[must_use]
    pub fn start(spec: &ServerSpec, side: Side) -> Self {
        let launcher = match side {
            Side::Stock => Launcher::Stock,
            Side::Accelerated => product::launcher(),
        };
        let mut spec = spec.clone().launcher(launcher);
        if let Some((name, value)) = lanes::variable()
            && side == Side::Accelerated
            && !spec.sets("HASTEN_CPU_DISABLE_IFMA")
        {
            spec = spec.env(name, value);
        }
        let server = spec.start();
        let server = server.unwrap_or_else(|error| panic!("{error}\n{}", error.fix()));
        // The socket listens before there are workers; the first client served has seen one.
        let _ = hello::react(server.address(), b"");
        Self { server, side }
    }

    #[must_use]
    pub fn accelerated(spec: &ServerSpec) -> Self {
        Self::start(spec, Side::Accelerated)
    }

    #[must_use]
    pub fn is_accelerated(&self) -> bool {
        self.side == Side::Accelerated
    }

    /// The processes that serve: workers, or the one process there is.
    #[must_use]
    pub fn serving(&self) -> Vec<u32> {
        let workers = self.workers();
        if workers.is_empty() { vec![self.pid()] } else { workers }
    }

    /// Stops the serving processes meanwhile, so that they find everything at once when they continue.
    pub fn while_paused<T>(&self, act: impl FnOnce() -> T) -> T {
        let serving = self.serving();
        let tell = |signal| serving.iter().for_each(|process| send(*process, signal));
        tell(Signal::STOP);
        let result = act();
        tell(Signal::CONT);
        result
    }

    /// The first serving process's resources, once it has started to serve and has no clients.
    #[must_use]
    pub fn idle(&self) -> Footprint {
        let mut last = None;
        wait::for_some("the server to fall idle", || {
            thread::sleep(Duration::from_millis(100));
            let now = Footprint::of(self.serving()[0]);
            let before = last.replace(now);
            before.filter(|before| before.descriptors == now.descriptors).map(|_| now)
        })
    }

    /// Everything that was counted since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        counters_of(self.pid())
    }

    /// How many threads, in any process, counted what the test is interested in.
    #[must_use]
    pub fn writers_that(&self, are_counted: impl Fn(&Counters) -> bool) -> usize {
        let writers = pages(self.pid()).into_iter().flat_map(|page| page.writers);
        writers.filter(|writer| are_counted(&writer.counters)).count()
    }

    /// Runs `edge` while well-behaved clients keep the accelerated server busy.
    ///
    /// Batches form before, while and after; not one of these clients may notice anything.
    pub fn under_load<T>(&self, edge: impl FnOnce() -> T) -> T {
        self.under(&crowd(), edge)
    }

    /// As [`under_load`](Self::under_load), with a load chosen by the test.
    pub fn under<T>(&self, load: &Load, edge: impl FnOnce() -> T) -> T {
        if !self.is_accelerated() {
            return edge();
        }
        let traffic = Traffic::start(self.target(), load);
        self.wait_for_batches();
        let result = edge();
        self.wait_for_batches();
        let outcome = traffic.stop();
        assert_perfect(&outcome, &self.log());
        result
    }

    /// Waits until more handshakes have been suspended and more batches have run.
    fn wait_for_batches(&self) {
        let before = self.counters();
        wait::until("handshakes that are suspended and batched", || {
            let new = self.counters().since(&before);
            new[Event::Suspended] > 0 && batched(&new) > 0
        });
    }

    /// Ends the server, which must not have complained about anything.
    pub fn finish(self) {
        let alarms = self.end();
        assert!(alarms.is_empty(), "the server complains: {alarms:#?}");
    }

    /// Ends the server as its administrator would; returns its complaints, without numbers.
    #[must_use]
    pub fn end(mut self) -> BTreeSet<String> {
        if self.server.exit_status().unwrap().is_none() {
            self.signal(Signal::TERM).unwrap();
        }
        let server = &mut self.server;
        wait::until("the server to end", || server.exit_status().unwrap().is_some());
        alarms(&self.log())
    }
}

/// Sends a signal to any process.
pub fn send(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process.cast_signed()).expect("a process number");
    kill_process(pid, signal).unwrap_or_else(|error| panic!("cannot signal {process}: {error}"));
}

/// Every client was served, and none noticed anything.
pub fn assert_perfect(outcome: &Outcome, log: &str) {
    assert!(outcome.ops > 0, "no client was served\n{log}");
    assert_eq!(outcome.failures.total(), 0, "of {}: {}\n{log}", outcome.ops, outcome.failures);
}

/// The counters of the process tree that a process belongs to.
#[must_use]
pub fn counters_of(process: u32) -> Counters {
    let mut total = Counters::default();
    pages(process).iter().for_each(|page| total += &page.total());
    total
}

/// Operations that were suspended and went through a batch. Pools are always filled in batches. On a CPU without lanes, those
/// that waited in vain, or were done one at a time.
#[must_use]
pub fn batched(counters: &Counters) -> u64 {
    let in_lanes = WAITING.iter().map(|algorithm| counters[*algorithm].batched).sum();
    if lanes::exist() { in_lanes } else { counters[Event::Resumed] + singly(counters) }
}

fn singly(counters: &Counters) -> u64 {
    WAITING.iter().map(|algorithm| counters[*algorithm].single).sum()
}

/// Operations that a handshake waits for and that were not the host library's: in a batch, or one at a time where that
/// is cheaper, which depends on the CPU.
#[must_use]
pub fn accelerated(counters: &Counters) -> u64 {
    if lanes::exist() { batched(counters) + singly(counters) } else { batched(counters) }
}

const WAITING: [Algorithm; 6] = [
    Algorithm::Rsa2048Sign,
    Algorithm::Rsa3072Sign,
    Algorithm::Rsa4096Sign,
    Algorithm::X25519Derive,
    Algorithm::P256Derive,
    Algorithm::P384Derive,
];

fn pages(process: u32) -> Vec<Snapshot> {
    let pages = hasten_telemetry::pages_of(process);
    let pages = pages.unwrap_or_else(|error| panic!("no counters of {process}: {error}"));
    let read =
        |page: &PageHandle| page.read().unwrap_or_else(|error| panic!("counters of {process}: {error}"));
    pages.iter().map(read).collect()
}

/// Lines that alarm an administrator: grave levels, crashes, and the C library's messages before it aborts.
#[must_use]
pub fn alarms(log: &str) -> BTreeSet<String> {
    const WORDS: [&str; 11] = [
        "[alert]",
        "[crit]",
        "[emerg]",
        "[ALERT]",
        "exited on signal",
        "core dumped",
        "panicked",
        "corrupted",
        "double free",
        "smashing",
        "FATAL",
    ];
    // What HAProxy's master says about a worker that it told to end.
    let is_usual = |line: &str| line.contains("exited with code 143 (Terminated)");
    let grave = |line: &&str| WORDS.iter().any(|word| line.contains(word)) && !is_usual(line);
    log.lines().filter(grave).map(without_numbers).collect()
}

/// The message from its level on; times, processes and ports would make every line unique.
fn without_numbers(line: &str) -> String {
    let message = line.find('[').map_or(line, |at| &line[at..]);
    let words = message.split(|c: char| c.is_ascii_digit()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("0")
}
