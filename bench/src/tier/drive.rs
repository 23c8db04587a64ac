//! The load: some connections of one thread, each with a number of requests under way.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Case, Operation, Values};
use crate::error::BenchError;

/// Clients at a time.
const CLIENTS: usize = 16;
/// Requests at a time while the keys are made.
const FILL: usize = 64;
/// Longer than any answer takes.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
const MOST_NANOSECONDS: u64 = 60_000_000_000;
const LARGEST: usize = 16 << 10;
const LETTERS: u32 = 26;

/// What a round has brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) ops: u64,
    pub(crate) elapsed: Duration,
    /// From the first byte of some requests to the last of their answers.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
}

impl Outcome {
    pub(crate) fn us_per_op(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.ops.max(1) as f64
    }
}

pub(super) struct Driver {
    values: Values,
    keys: u32,
    clients: Vec<Client>,
    /// A value of each letter.
    letters: Vec<Vec<u8>>,
    random: u64,
}

struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    sent: usize,
    /// What the answer has to be, and how much of it has come.
    expected: Vec<u8>,
    received: usize,
    began: Instant,
}

impl Driver {
    pub(super) fn new(address: SocketAddr, values: Values, keys: u32) -> Result<Self, BenchError> {
        let client = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let (request, expected) = (Vec::new(), Vec::new());
            Ok(Client { stream, request, sent: 0, expected, received: 0, began: Instant::now() })
        };
        let clients =
            (0..CLIENTS).map(|_| client()).collect::<io::Result<_>>().map_err(BenchError::Driver)?;
        let letters = (b'a'..).take(LETTERS as usize).map(|letter| vec![letter; LARGEST]).collect();
        Ok(Self { values, keys, clients, letters, random: 0x9e37_79b9_7f4a_7c15 })
    }

    /// Stores each key once.
    pub(super) fn fill(&mut self) -> Result<(), BenchError> {
        let mut next = 0;
        let keys = self.keys;
        let batch = move || {
            let some: Vec<u32> = (next..keys).take(FILL).collect();
            next += some.len() as u32;
            some
        };
        self.run(Operation::Set, batch).map(|_| ())
    }

    /// Requests of random keys for a time; those under way are finished.
    pub(super) fn round(&mut self, case: Case, length: Duration) -> Result<Outcome, BenchError> {
        let end = Instant::now() + length;
        let (keys, mut random) = (self.keys, self.random);
        let batch = || {
            if Instant::now() >= end {
                return Vec::new();
            }
            let mut key = || {
                // Marsaglia's xorshift.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random % u64::from(keys)) as u32
            };
            (0..case.pipeline).map(|_| key()).collect()
        };
        let outcome = self.run(case.operation, batch);
        self.random = random;
        outcome
    }

    /// Sends what `batch` gives to whichever client is idle, until it gives nothing and all answers have come.
    fn run(
        &mut self,
        operation: Operation,
        mut batch: impl FnMut() -> Vec<u32>,
    ) -> Result<Outcome, BenchError> {
        let began = Instant::now();
        // Without a maximum, `saturating_record` would take every value for two nanoseconds.
        let mut latency = Histogram::<u64>::new_with_max(MOST_NANOSECONDS, 3).expect("three digits");
        let (mut ops, mut active) = (0, 0);
        for i in 0..self.clients.len() {
            let keys = batch();
            active += usize::from(self.begin(i, operation, &keys)?);
            ops += keys.len() as u64;
        }
        while active > 0 {
            for i in self.ready()? {
                if !self.clients[i].go_on()? {
                    continue;
                }
                latency.saturating_record(self.clients[i].began.elapsed().as_nanos() as u64);
                let keys = batch();
                active -= usize::from(!self.begin(i, operation, &keys)?);
                ops += keys.len() as u64;
            }
        }
        let us = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
        let elapsed = began.elapsed();
        Ok(Outcome { ops, elapsed, p50_us: us(0.5), p99_us: us(0.99), p999_us: us(0.999) })
    }

    /// Whether there is something to do.
    fn begin(&mut self, client: usize, operation: Operation, keys: &[u32]) -> Result<bool, BenchError> {
        let client = &mut self.clients[client];
        client.request.clear();
        client.expected.clear();
        (client.sent, client.received) = (0, 0);
        for key in keys {
            let value = &self.letters[(key % LETTERS) as usize][..self.values.size(*key)];
            match operation {
                Operation::Set => {
                    let head = format!("*3\r\n$3\r\nSET\r\n$14\r\nkey:{key:010}\r\n${}\r\n", value.len());
                    client.request.extend(head.as_bytes());
                    client.request.extend(value);
                    client.request.extend(b"\r\n");
                    client.expected.extend(b"+OK\r\n");
                }
                Operation::Get => {
                    client.request.extend(format!("*2\r\n$3\r\nGET\r\n$14\r\nkey:{key:010}\r\n").as_bytes());
                    client.expected.extend(format!("${}\r\n", value.len()).as_bytes());
                    client.expected.extend(value);
                    client.expected.extend(b"\r\n");
                }
            }
        }
        client.began = Instant::now();
        client.send()?;
        Ok(!keys.is_empty())
    }

    /// The clients that can go on.
    fn ready(&self) -> Result<Vec<usize>, BenchError> {
        let busy: Vec<usize> =
            (0..self.clients.len()).filter(|i| !self.clients[*i].expected.is_empty()).collect();
        let mut polled: Vec<PollFd<'_>> = busy
            .iter()
            .map(|i| {
                let client = &self.clients[*i];
                let writes = client.sent < client.request.len();
                PollFd::new(
                    &client.stream,
                    if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN },
                )
            })
            .collect();
        match poll(&mut polled, Some(&PATIENCE)) {
            Ok(0) => Err(BenchError::RedisAnswer("nothing for half a minute".to_owned())),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(BenchError::Driver(error.into())),
            Ok(_) => {
                let ready = busy.iter().zip(&polled).filter(|(_, one)| !one.revents().is_empty());
                Ok(ready.map(|(i, _)| *i).collect())
            }
        }
    }
}

impl Client {
    fn send(&mut self) -> Result<(), BenchError> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::RedisAnswer(error.to_string())),
            }
        }
        Ok(())
    }

    /// Whether all answers are there, and right.
    fn go_on(&mut self) -> Result<bool, BenchError> {
        self.send()?;
        let mut buffer = [0; 64 << 10];
        while self.received < self.expected.len() {
            let got = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(BenchError::RedisAnswer("it closed a connection".to_owned())),
                Ok(got) => &buffer[..got],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(BenchError::RedisAnswer(error.to_string())),
            };
            let expected = &self.expected[self.received..];
            if got.len() > expected.len() || *got != expected[..got.len()] {
                let text = String::from_utf8_lossy(&got[..got.len().min(80)]).into_owned();
                return Err(BenchError::RedisAnswer(format!("not what was stored: {text:?}")));
            }
            self.received += got.len();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::super::ALL;
    use super::*;

    /// A server that answers each read with the same.
    fn server(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let (mut stream, mut buffer) = (stream, [0; 4096]);
                    while stream.read(&mut buffer).is_ok_and(|got| got > 0)
                        && stream.write_all(answer).is_ok()
                    {}
                });
            }
        });
        address
    }

    fn case(operation: Operation) -> Case {
        Case { values: ALL[0], operation, pipeline: 1 }
    }

    #[test]
    fn right_answers_are_counted_and_wrong_ones_end_the_run() {
        let mut driver = Driver::new(server(b"+OK\r\n"), ALL[0], 100).unwrap();
        let outcome = driver.round(case(Operation::Set), Duration::from_millis(50)).unwrap();
        assert!(outcome.ops > 16 && outcome.p50_us > 1.0 && outcome.p999_us >= outcome.p50_us, "{outcome:?}");
        let error = driver.round(case(Operation::Get), Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("not what was stored"), "{error}");
        let mut driver = Driver::new(server(b"-OOM command not allowed\r\n"), ALL[0], 100).unwrap();
        let error = driver.fill().unwrap_err().to_string();
        assert!(error.contains("OOM"), "{error}");
    }
}
