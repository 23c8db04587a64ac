//! Which engine, at which of its levels, replaces which level of zlib.
//!
//! ```sh
//! cargo run --release -p hasten-deflate --example measure_streams -- [--continued] FILE...
//! ```
//!
//! Compresses pieces of the files, at several sizes, with every engine and level, interleaved; the least CPU time of
//! many rounds counts. For each level of this machine's zlib, it lists the candidates whose output is at most 1 %
//! larger in total and 3 % for any file, fastest first. With `--continued`, pieces have a window of history and do not
//! end their stream, as in the middle of a long one.

#[path = "../tests/engines/original.rs"]
mod original;

use std::collections::BTreeMap;
use std::fs;
use std::process::exit;
use std::time::Duration;

use hasten_deflate::engine::bucket::Bucket;
use hasten_deflate::engine::isal::Isal;
use hasten_deflate::engine::libdeflate::Libdeflate;
use hasten_deflate::engine::zlib::Zlib;
use hasten_deflate::engine::{Bits, Chunk, Engine, EngineKind, Settings, bound};

const SIZES: [usize; 10] =
    [128, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 32 << 10, 100 << 10, 250 << 10, 1 << 20];
const WINDOW: usize = 32 << 10;
const PIECES_OF_A_FILE: usize = 6;
const ROUNDS: usize = 7;
/// A measurement takes at least this long.
const SAMPLE: Duration = Duration::from_micros(300);

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_continued = arguments.first().is_some_and(|argument| argument == "--continued");
    if is_continued {
        arguments.remove(0);
    }
    if arguments.is_empty() {
        eprintln!("usage: measure_streams [--continued] FILE...");
        exit(2);
    }
    original::load();
    let files: Vec<Vec<u8>> = arguments.iter().map(|path| read(path)).collect();
    println!(
        "{:>8} {:>5} {:>6}  speed and size (worst file) against zlib at this level",
        "bytes", "zlib", "MB/s"
    );
    for size in SIZES {
        let pieces = pieces(&files, size, is_continued);
        if pieces.is_empty() {
            continue;
        }
        let results = measure(&pieces);
        (1..=9).for_each(|level| report(size, pieces.len(), level, &results));
    }
}

fn read(path: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| {
        eprintln!("cannot read {path}: {error}");
        exit(1);
    })
}

struct Piece<'a> {
    file: usize,
    chunk: Chunk<'a>,
}

/// Pieces from all over each file that is large enough.
fn pieces(files: &[Vec<u8>], size: usize, is_continued: bool) -> Vec<Piece<'_>> {
    let history = if is_continued { WINDOW } else { 0 };
    let mut pieces = Vec::new();
    for (file, bytes) in files.iter().enumerate().filter(|(_, bytes)| bytes.len() >= history + size) {
        let spare = bytes.len() - history - size;
        let count = PIECES_OF_A_FILE.min(1 + spare / size);
        for i in 0..count {
            let (history, rest) = bytes[spare * i / count..].split_at(history);
            let chunk = Chunk { before: Bits::NONE, history, input: &rest[..size], last: !is_continued };
            pieces.push(Piece { file, chunk });
        }
    }
    pieces
}

/// An engine at one of its own levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    kind: EngineKind,
    level: u8,
}

impl Candidate {
    fn all() -> Vec<Self> {
        let levels = |kind| match kind {
            EngineKind::Isal => 1..=3,
            EngineKind::Bucket => 0..=Bucket::LEVELS - 1,
            EngineKind::Libdeflate => 1..=9,
            EngineKind::ZlibRs | EngineKind::Original => 1..=9,
        };
        EngineKind::ALL
            .into_iter()
            .flat_map(|kind| levels(kind).map(move |level| Self { kind, level }))
            .collect()
    }
}

struct Engines {
    isal: Isal,
    libdeflate: Libdeflate,
    bucket: Bucket,
    zlib_rs: Zlib,
    original: Zlib,
}

impl Engines {
    fn run(&mut self, candidate: Candidate, chunk: &Chunk, out: &mut [u8]) -> Option<usize> {
        let settings = Settings { level: candidate.level, ..Settings::default() };
        let zlib = |engine: &mut Zlib, out: &mut [u8]| engine.compress(&settings, chunk, out);
        let written = match candidate.kind {
            EngineKind::Isal => self.isal.compress_at(candidate.level.into(), &settings, chunk, out),
            EngineKind::Libdeflate => self.libdeflate.compress(&settings, chunk, out),
            EngineKind::Bucket => self.bucket.compress_at(candidate.level, &settings, chunk, out),
            EngineKind::ZlibRs => zlib(&mut self.zlib_rs, out),
            EngineKind::Original => zlib(&mut self.original, out),
        };
        written.map(|written| written.bytes)
    }
}

#[derive(Default)]
struct Outcome {
    time: Option<Duration>,
    sizes: BTreeMap<usize, usize>,
}

type Results = BTreeMap<Candidate, Outcome>;

fn measure(pieces: &[Piece]) -> Results {
    let original = Zlib::original().expect("loaded by main");
    let mut engines = Engines {
        isal: Isal::new().expect("memory"),
        libdeflate: Libdeflate::new(),
        bucket: Bucket::new().expect("memory"),
        zlib_rs: Zlib::zlib_rs().expect("memory"),
        original,
    };
    let mut out = vec![0; bound(pieces[0].chunk.input.len())];
    let mut results = Results::new();
    for candidate in Candidate::all() {
        let mut sizes = BTreeMap::new();
        for piece in pieces {
            if let Some(size) = engines.run(candidate, &piece.chunk, &mut out) {
                *sizes.entry(piece.file).or_default() += size;
            }
        }
        if !sizes.is_empty() {
            results.insert(candidate, Outcome { time: None, sizes });
        }
    }
    for _ in 0..ROUNDS {
        for (candidate, outcome) in &mut results {
            let time = time(|| {
                for piece in pieces {
                    engines.run(*candidate, &piece.chunk, &mut out);
                }
            });
            outcome.time = Some(outcome.time.map_or(time, |least| least.min(time)));
        }
    }
    results
}

/// CPU time of one call, averaged over as many as make a sample.
fn time(mut work: impl FnMut()) -> Duration {
    let start = cpu_time();
    let mut calls = 0;
    loop {
        work();
        calls += 1;
        let spent = cpu_time() - start;
        if spent >= SAMPLE {
            return spent / calls;
        }
    }
}

fn cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn report(size: usize, pieces: usize, level: u8, results: &Results) {
    let baseline = &results[&Candidate { kind: EngineKind::Original, level }];
    let (Some(stock), total) = (baseline.time, baseline.sizes.values().sum::<usize>()) else { return };
    let mut rows: Vec<_> = results
        .iter()
        .filter(|(candidate, _)| candidate.kind != EngineKind::Original)
        .filter_map(|(candidate, outcome)| {
            let sum = outcome.sizes.values().sum::<usize>() as f64 / total as f64;
            let worst = outcome.sizes.iter().map(|(file, size)| *size as f64 / baseline.sizes[file] as f64);
            let worst = worst.fold(0.0, f64::max);
            let speed = stock.as_secs_f64() / outcome.time?.as_secs_f64();
            (sum <= 1.01 && worst <= 1.03).then_some((speed, candidate, sum, worst))
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows = rows.iter().take(4).map(|(speed, candidate, sum, worst)| {
        format!("{}-{} {speed:.2}x {sum:.3} ({worst:.3})", candidate.kind, candidate.level)
    });
    let rate = (size * pieces) as f64 / 1e6 / stock.as_secs_f64();
    println!("{size:>8} {level:>5} {rate:>6.1}  {}", rows.collect::<Vec<_>>().join("   "));
}
