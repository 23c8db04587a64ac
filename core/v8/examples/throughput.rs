//! How fast traces are read: generates one, reads it, and prints MB/s and the peak of resident memory.
//!
//! ```sh
//! cargo run --release -p hasten-v8 --example throughput -- --megabytes 1024
//! cargo run --release -p hasten-v8 --example throughput -- --megabytes 1024 --format nvp
//! ```
//!
//! The trace is a fixture over and over, with later times in each round, made while it is read: neither a disk nor a
//! second copy in memory is measured. The time that this takes is measured by itself, and subtracted.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use hasten_v8::parse;

const FORMATS: [(&str, &str); 6] = [
    ("plain", include_str!("../tests/fixtures/v20.trace-gc.txt")),
    ("plain-24", include_str!("../tests/fixtures/v24.trace-gc.txt")),
    ("nvp", include_str!("../tests/fixtures/v24.trace-gc-nvp.txt")),
    ("json", include_str!("../tests/fixtures/v26.trace-gc-nvp.txt")),
    ("verbose", include_str!("../tests/fixtures/v22.trace-gc-verbose.txt")),
    (
        "output",
        "2026-11-22T06:30:00.000Z INFO [http] GET /articles/17 200 12 ms, request 0x7f3a:0x11 of 10.0.0.7\n",
    ),
];

fn main() {
    let (megabytes, format) = options();
    let (_, fixture) = FORMATS.into_iter().find(|(name, _)| *name == format).unwrap_or_else(|| {
        eprintln!("--format takes {}", FORMATS.map(|(name, _)| name).join(", "));
        std::process::exit(2);
    });
    let bytes = megabytes << 20;
    let making = time(|| drop(io::copy(&mut Trace::new(fixture, bytes), &mut io::sink())));
    let mut summary = None;
    let reading = time(|| summary = parse::read(Trace::new(fixture, bytes), "generated", &mut |_| {}).ok());
    let Some(summary) = summary else { return };
    let collections: u64 = summary.isolates.iter().map(|isolate| isolate.pauses.count).sum();
    let seconds = reading.saturating_sub(making).as_secs_f64();
    println!(
        "{format}: {} MB, {} lines, {} unknown, {collections} collections in {seconds:.2} s: {:.0} MB/s, peak {:.1} MB",
        summary.lines.bytes / 1_000_000,
        summary.lines.total,
        summary.lines.unknown,
        summary.lines.bytes as f64 / 1e6 / seconds,
        peak_kilobytes() as f64 / 1024.0
    );
}

fn options() -> (u64, String) {
    let mut megabytes = 1024;
    let mut format = "plain".to_owned();
    let mut arguments = std::env::args().skip(1);
    while let (Some(option), value) = (arguments.next(), arguments.next()) {
        match (option.as_str(), value) {
            ("--megabytes", Some(value)) => megabytes = value.parse().unwrap_or(megabytes),
            ("--format", Some(value)) => format = value,
            _ => eprintln!("--megabytes N, --format NAME"),
        }
    }
    (megabytes, format)
}

/// User and system time of this process, not of its neighbours.
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    let cpu = cpu();
    work();
    match (cpu, self::cpu()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed(),
    }
}

/// From /proc, in ticks of 10 ms.
fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = [11, 12].into_iter().filter_map(|field| fields.get(field)?.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// A fixture, round after round. Times have ten digits, as V8 aligns them to the right.
struct Trace {
    rounds: Vec<(Vec<u8>, Option<u64>)>,
    line: usize,
    round: u64,
    span_ms: u64,
    left: u64,
    pending: Vec<u8>,
    given: usize,
}

impl Trace {
    fn new(fixture: &str, bytes: u64) -> Self {
        let lines: Vec<_> = fixture.lines().map(|line| (line.as_bytes().to_vec(), time_of(line))).collect();
        let span_ms = lines.iter().filter_map(|(_, at_ms)| *at_ms).max().unwrap_or(0) + 1;
        Self { rounds: lines, line: 0, round: 0, span_ms, left: bytes, pending: Vec::new(), given: 0 }
    }

    fn next_line(&mut self) {
        let (line, at_ms) = &self.rounds[self.line];
        self.pending.clear();
        self.given = 0;
        match at_ms {
            Some(at_ms) => {
                let end = line.iter().position(|byte| *byte == b']').unwrap_or(0) + 2;
                self.pending.extend_from_slice(&line[..end]);
                let mut digits = *b"          ";
                let mut rest = at_ms + self.round * self.span_ms;
                for digit in digits.iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                    if rest == 0 {
                        break;
                    }
                }
                self.pending.extend_from_slice(&digits);
                let ms = line.windows(5).position(|word| word == b" ms: ").unwrap_or(end);
                self.pending.extend_from_slice(&line[ms..]);
            }
            None => self.pending.extend_from_slice(line),
        }
        self.pending.push(b'\n');
        self.line += 1;
        if self.line == self.rounds.len() {
            self.line = 0;
            self.round += 1;
        }
    }
}

impl Read for Trace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length < buffer.len() && self.left > 0 {
            if self.given == self.pending.len() {
                self.next_line();
            }
            let rest = &self.pending[self.given..];
            let part = rest.len().min(buffer.len() - length);
            buffer[length..length + part].copy_from_slice(&rest[..part]);
            self.given += part;
            length += part;
            self.left = self.left.saturating_sub(part as u64);
        }
        Ok(length)
    }
}

fn time_of(line: &str) -> Option<u64> {
    let (prefix, _) = line.split_once(" ms: ")?;
    prefix.rsplit_once(' ')?.1.parse().ok()
}
