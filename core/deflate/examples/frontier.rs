//! Speed and size of the engines at all their levels.
//!
//! ```sh
//! cargo run --release -p hasten-deflate --example frontier -- [--size BYTES] [--history BYTES] [--window BITS] [--rounds N] [--only ENGINE:LEVEL,…] [--json FILE] FILE...
//! ```
//!
//! Cuts the files into pieces of a size, and has every engine compress all of them in turn, so that no branch predictor
//! learns one of them by heart. Rounds of all engines alternate; the least CPU time of a round counts. Each output is
//! decompressed and compared once. With `--only bucket:1,zlib:4` nothing else runs, as a profiler wants it.
//!
//! ```sh
//! cargo run --release -p hasten-deflate --example frontier -- --plot docs/results/deflate-frontier.json docs/images/deflate-frontier.svg
//! ```
//!
//! Draws what `--json` has written.

#[path = "../tests/engines/original.rs"]
mod original;
#[path = "frontier/plot.rs"]
mod plot;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::exit;
use std::time::Duration;

use hasten_deflate::engine::bucket::Bucket;
use hasten_deflate::engine::isal::Isal;
use hasten_deflate::engine::libdeflate::Libdeflate;
use hasten_deflate::engine::zlib::Zlib;
use hasten_deflate::engine::{Bits, Chunk, Engine, Settings, Written, bound};
use hasten_deflate::verify;

const PIECES_OF_A_FILE: usize = 6;

struct Options {
    size: usize,
    history: usize,
    window_bits: u8,
    rounds: usize,
    /// All, if it is empty.
    only: Vec<String>,
    json: Option<String>,
    files: Vec<String>,
}

fn options() -> Options {
    let mut options = Options {
        size: 100 << 10,
        history: 0,
        window_bits: 15,
        rounds: 9,
        only: Vec::new(),
        json: None,
        files: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| usage());
        let number = |value: String| value.parse().unwrap_or_else(|_| usage());
        match argument.as_str() {
            "--size" => options.size = number(value()),
            "--history" => options.history = number(value()),
            "--window" => options.window_bits = number(value()) as u8,
            "--rounds" => options.rounds = number(value()),
            "--only" => options.only = value().split(',').map(str::to_owned).collect(),
            "--json" => options.json = Some(value()),
            _ if argument.starts_with('-') => usage(),
            _ => options.files.push(argument),
        }
    }
    if options.files.is_empty() || options.size == 0 || !(9..=15).contains(&options.window_bits) {
        usage();
    }
    options.history = options.history.min(1 << options.window_bits);
    options
}

fn usage() -> ! {
    eprintln!(
        "usage: frontier [--size BYTES] [--history BYTES] [--window BITS] [--rounds N] [--only ENGINE:LEVEL,…] [--json FILE] FILE..."
    );
    exit(2);
}

struct Piece<'a> {
    file: usize,
    chunk: Chunk<'a>,
}

/// Pieces from all over each file; a file that is shorter is one.
fn pieces<'a>(files: &'a [Vec<u8>], options: &Options) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for (file, bytes) in files.iter().enumerate().filter(|(_, bytes)| bytes.len() > options.history) {
        let size = options.size.min(bytes.len() - options.history);
        let spare = bytes.len() - options.history - size;
        let count = PIECES_OF_A_FILE.min(1 + spare / size);
        for i in 0..count {
            let (history, rest) = bytes[spare * i / count..].split_at(options.history);
            let chunk =
                Chunk { before: Bits::NONE, history, input: &rest[..size], last: options.history == 0 };
            pieces.push(Piece { file, chunk });
        }
    }
    pieces
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Zlib,
    Isal,
    Libdeflate,
    Bucket,
    Portable,
}

impl Name {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Isal => "isal",
            Self::Libdeflate => "libdeflate",
            Self::Bucket => "bucket",
            Self::Portable => "bucket-portable",
        }
    }
}

type Candidate = (Name, u8);

fn candidates(only: &[String]) -> Vec<Candidate> {
    let levels = |name, levels: std::ops::RangeInclusive<u8>| levels.map(move |level| (name, level));
    let is_wanted = |(name, level): &Candidate| {
        only.is_empty() || only.iter().any(|wanted| *wanted == format!("{}:{level}", name.as_str()))
    };
    levels(Name::Zlib, 1..=9)
        .chain(levels(Name::Isal, 1..=1))
        .chain(levels(Name::Libdeflate, 2..=9))
        .chain(levels(Name::Bucket, 0..=Bucket::LEVELS - 1))
        .chain(levels(Name::Portable, 1..=2))
        .filter(is_wanted)
        .collect()
}

struct Engines {
    isal: Isal,
    libdeflate: Libdeflate,
    bucket: Bucket,
    portable: Bucket,
    zlib: Zlib,
}

impl Engines {
    fn new() -> Option<Self> {
        Some(Self {
            isal: Isal::new()?,
            libdeflate: Libdeflate::new(),
            bucket: Bucket::new()?,
            portable: Bucket::portable()?,
            zlib: Zlib::original()?,
        })
    }

    fn run(
        &mut self,
        (name, level): Candidate,
        window_bits: u8,
        chunk: &Chunk,
        out: &mut [u8],
    ) -> Option<Written> {
        let settings = Settings { level, window_bits, ..Settings::default() };
        match name {
            Name::Zlib => self.zlib.compress(&settings, chunk, out),
            Name::Isal => self.isal.compress(&settings, chunk, out),
            Name::Libdeflate => self.libdeflate.compress(&settings, chunk, out),
            Name::Bucket => self.bucket.compress_at(level, &settings, chunk, out),
            Name::Portable => self.portable.compress_at(level, &settings, chunk, out),
        }
    }
}

#[derive(Default)]
struct Outcome {
    time: Option<Duration>,
    sizes: BTreeMap<usize, usize>,
}

impl Outcome {
    fn total(&self) -> usize {
        self.sizes.values().sum()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [plot, from, to] = &arguments[..]
        && plot == "--plot"
    {
        let json = String::from_utf8(read(from)).unwrap_or_else(|_| usage());
        return write(to, &plot::svg(&plot::rows(&json)));
    }
    let options = options();
    original::load();
    let files: Vec<Vec<u8>> = options.files.iter().map(|path| read(path)).collect();
    let pieces = pieces(&files, &options);
    let results = measure(&pieces, &options);
    report(&pieces, &options, &results);
    if let Some(path) = &options.json {
        write(path, &json(&pieces, &options, &results));
    }
}

fn write(path: &str, text: &str) {
    if let Err(error) = fs::write(path, text) {
        eprintln!("cannot write {path}: {error}");
        exit(1);
    }
}

fn read(path: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| {
        eprintln!("cannot read {path}: {error}");
        exit(1);
    })
}

fn measure(pieces: &[Piece], options: &Options) -> BTreeMap<Candidate, Outcome> {
    let mut engines = Engines::new().expect("memory, and a zlib on this machine");
    let longest = pieces.iter().map(|piece| piece.chunk.input.len()).max().unwrap_or(0);
    let mut out = vec![0; bound(longest)];
    let mut results = BTreeMap::new();
    let settings = Settings { window_bits: options.window_bits, ..Settings::default() };
    for candidate in candidates(&options.only) {
        let mut sizes = BTreeMap::new();
        for piece in pieces {
            let written = engines.run(candidate, options.window_bits, &piece.chunk, &mut out);
            let written = written.unwrap_or_else(|| panic!("{candidate:?} refuses"));
            assert!(verify::matches(&settings, &piece.chunk, &out, &written), "{candidate:?} is wrong");
            *sizes.entry(piece.file).or_default() += written.bytes;
        }
        results.insert(candidate, Outcome { time: None, sizes });
    }
    for _ in 0..options.rounds {
        for (candidate, outcome) in &mut results {
            let start = cpu_time();
            for piece in pieces {
                engines.run(*candidate, options.window_bits, &piece.chunk, &mut out);
            }
            let time = cpu_time() - start;
            outcome.time = Some(outcome.time.map_or(time, |least| least.min(time)));
        }
    }
    results
}

fn cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn bytes(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.chunk.input.len()).sum()
}

/// MB per second of CPU time.
fn speed(pieces: &[Piece], outcome: &Outcome) -> f64 {
    bytes(pieces) as f64 / 1e6 / outcome.time.unwrap_or_default().as_secs_f64()
}

fn report(pieces: &[Piece], options: &Options, results: &BTreeMap<Candidate, Outcome>) {
    println!(
        "{} pieces, {} bytes; each engine against zlib's levels of about its size",
        pieces.len(),
        bytes(pieces)
    );
    for ((name, level), outcome) in results {
        let ratio = bytes(pieces) as f64 / outcome.total() as f64;
        let mut line =
            format!("{:>15} {level} {:8.1} MB/s {ratio:8.4} :", name.as_str(), speed(pieces, outcome));
        for zlib_level in 1..=9 {
            let Some(stock) = results.get(&(Name::Zlib, zlib_level)) else { continue };
            let sum = outcome.total() as f64 / stock.total() as f64;
            if *name == Name::Zlib || !(0.90..1.015).contains(&sum) {
                continue;
            }
            let growth = |file: &usize| outcome.sizes[file] as f64 / stock.sizes[file] as f64;
            let mut files: Vec<_> = outcome.sizes.keys().map(|file| (growth(file), *file)).collect();
            files.sort_by(|a, b| b.0.total_cmp(&a.0));
            let over = files.iter().filter(|(growth, _)| *growth > 1.03).count();
            let (worst, file) = files[0];
            let faster = speed(pieces, outcome) / speed(pieces, stock);
            let file = options.files[file].rsplit('/').next().unwrap_or_default();
            let _ = write!(
                line,
                "  z{zlib_level} {faster:.2}x {:+.1}% ({over} over, {:+.1}% {file})",
                (sum - 1.0) * 100.0,
                (worst - 1.0) * 100.0,
            );
        }
        println!("{line}");
    }
}

fn json(pieces: &[Piece], options: &Options, results: &BTreeMap<Candidate, Outcome>) -> String {
    let rows = results.iter().map(|((name, level), outcome)| {
        format!(
            "    {{ \"engine\": \"{}\", \"level\": {level}, \"mb_per_s\": {:.1}, \"ratio\": {:.4} }}",
            name.as_str(),
            speed(pieces, outcome),
            bytes(pieces) as f64 / outcome.total() as f64
        )
    });
    format!(
        "{{\n  \"size\": {},\n  \"history\": {},\n  \"window_bits\": {},\n  \"pieces\": {},\n  \"bytes\": {},\n  \"rows\": [\n{}\n  ]\n}}\n",
        options.size,
        options.history,
        options.window_bits,
        pieces.len(),
        bytes(pieces),
        rows.collect::<Vec<_>>().join(",\n")
    )
}
