//! How much time and memory `hasten gc` takes for a trace of a gigabyte.
//!
//! ```text
//! cargo run --release -p hasten-bench --example gc_read -- target/release/hasten --out target/results/hasten-report.json
//! cargo xtask results --add target/results/hasten-report.json
//! ```
//!
//! Each trace repeats real ones with an advancing clock; it lies in the system's cache, so no disk is measured. The
//! command is the one that people type, measured from its start to its last line.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use hasten_bench::affinity::Placement;
use hasten_bench::host;
use hasten_bench::wait::{Ended, wait};
use hasten_evidence::report::Host;
use hasten_evidence::statistics::median;
use serde::{Deserialize, Serialize};

/// The time limit for a gigabyte.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Parser)]
struct Options {
    /// The `hasten` to measure
    hasten: PathBuf,

    /// The size of each trace, unpacked, in megabytes of a million bytes
    #[arg(long, default_value_t = 1000)]
    megabytes: u64,

    /// How often each trace is read
    #[arg(long, default_value_t = 7)]
    runs: usize,

    /// Only traces whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    workload: &'static str,
    complete: bool,
    host: Host,
    megabytes: u64,
    runs: usize,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    trace: &'static str,
    lines: u64,
    collections: u64,
    /// Wall time over all runs: minimum, median, maximum.
    wall_s: [f64; 3],
    /// User and system time of both threads, in the same order.
    cpu_s: [f64; 3],
    /// The highest of all runs.
    peak_mb: f64,
}

/// The findings of `hasten gc --json`; nothing else is kept, because a process's peak also covers its children.
#[derive(Deserialize)]
struct Told {
    traces: [Summary; 1],
}

#[derive(Deserialize)]
struct Summary {
    lines: Lines,
    isolates: Vec<Heap>,
    rest: Option<Rest>,
}

#[derive(Debug, Deserialize)]
struct Lines {
    total: u64,
    unknown: u64,
}

#[derive(Deserialize)]
struct Heap {
    pauses: Pauses,
}

#[derive(Deserialize)]
struct Pauses {
    count: u64,
}

#[derive(Deserialize)]
struct Rest {
    collections: u64,
}

struct Kind {
    name: &'static str,
    fixture: &'static str,
    round: Round,
    is_packed: bool,
}

/// How a fixture is repeated.
#[derive(Clone, Copy)]
enum Round {
    /// The same process continues.
    GoesOn,
    /// Another process of the same program.
    BeginsAnew,
    /// Unchanged: a recording identifies its process.
    AsItIs,
    /// The process continues, and writes its own output between two lines of V8.
    Talks,
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../core/v8/tests/fixtures/", $name))
    };
}

const OUTPUT: &str =
    "2026-11-22T06:30:00.000Z INFO [http] GET /articles/17 200 12 ms, request 0x7f3a:0x11 of 10.0.0.7\n";
/// Lines of that output.
const OUTPUT_LINES: u64 = 20;

const KINDS: [Kind; 9] = [
    Kind::new("`--trace-gc`, Node 20", fixture!("v20.trace-gc.txt"), Round::GoesOn),
    Kind::new("`--trace-gc`, Node 24", fixture!("v24.trace-gc.txt"), Round::GoesOn),
    Kind::new("the same, packed by gzip", fixture!("v24.trace-gc.txt"), Round::GoesOn).packed(),
    Kind::new("the same, between a program's own lines", fixture!("v24.trace-gc.txt"), Round::Talks),
    Kind::new("the same, of processes of 36 collections", fixture!("v24.trace-gc.txt"), Round::BeginsAnew),
    Kind::new("`--trace-gc-verbose`, Node 22", fixture!("v22.trace-gc-verbose.txt"), Round::GoesOn),
    Kind::new("`--trace-gc-nvp`, Node 24", fixture!("v24.trace-gc-nvp.txt"), Round::GoesOn),
    Kind::new("`--trace-gc-nvp`, Node 26", fixture!("v26.trace-gc-nvp.txt"), Round::GoesOn),
    Kind::new("recordings, Node 24", fixture!("recorder-v24.busy.jsonl"), Round::AsItIs),
];

impl Kind {
    const fn new(name: &'static str, fixture: &'static str, round: Round) -> Self {
        Self { name, fixture, round, is_packed: false }
    }

    const fn packed(self) -> Self {
        Self { is_packed: true, ..self }
    }

    /// Writes the trace; returns its number of lines.
    fn make(&self, path: &Path, bytes: u64) -> io::Result<u64> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        if !self.is_packed {
            return self.write(file, bytes);
        }
        let mut packed = GzEncoder::new(file, Compression::fast());
        let lines = self.write(&mut packed, bytes)?;
        packed.finish()?.flush()?;
        Ok(lines)
    }

    fn write(&self, mut out: impl Write, bytes: u64) -> io::Result<u64> {
        let parts: Vec<Line> = self.fixture.lines().map(Line::of).collect();
        let span_ms = parts.iter().filter_map(|line| line.at_ms).max().unwrap_or(0) + 1;
        let (mut written, mut lines, mut text) = (0, 0, Vec::new());
        for round in 0.. {
            for line in &parts {
                text.clear();
                match self.round {
                    Round::GoesOn | Round::Talks => line.later(round * span_ms, &mut text)?,
                    Round::BeginsAnew => line.elsewhere(round, &mut text)?,
                    Round::AsItIs => text.extend_from_slice(line.text.as_bytes()),
                }
                text.push(b'\n');
                lines += 1;
                if let Round::Talks = self.round {
                    text.extend_from_slice(OUTPUT.repeat(OUTPUT_LINES as usize).as_bytes());
                    lines += OUTPUT_LINES;
                }
                out.write_all(&text)?;
                written += text.len() as u64;
                if written >= bytes {
                    out.flush()?;
                    return Ok(lines);
                }
            }
        }
        unreachable!("rounds do not end")
    }
}

/// `[pid:isolate]` and the time are located once.
struct Line {
    text: &'static str,
    at_ms: Option<u64>,
}

impl Line {
    fn of(text: &'static str) -> Self {
        let time = || text.split_once(" ms: ")?.0.rsplit_once(' ')?.1.parse().ok();
        Self { text, at_ms: time() }
    }

    /// As the same process would write it later; a line without a time is unchanged.
    fn later(&self, by_ms: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let parts = self.text.split_once("] ").zip(self.text.split_once(" ms: "));
        match (parts, self.at_ms) {
            (Some(((head, _), (_, tail))), Some(at_ms)) => {
                write!(out, "{head}] {:8} ms: {tail}", at_ms + by_ms)
            }
            _ => out.write_all(self.text.as_bytes()),
        }
    }

    /// As another process would write it. The system's numbers go up to 4 million.
    fn elsewhere(&self, process: u64, out: &mut Vec<u8>) -> io::Result<()> {
        match self.text.strip_prefix('[').and_then(|text| text.split_once(':')) {
            Some((_, rest)) => write!(out, "[{}:{rest}", 1000 + process % 4_000_000),
            None => out.write_all(self.text.as_bytes()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let dir = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.name.contains(&options.only)) {
        let path = dir.path().join("trace");
        let lines = kind.make(&path, options.megabytes * 1_000_000)?;
        let row = measure(&options, kind.name, lines, &path)?;
        let [least, median, most] = row.wall_s;
        eprintln!(
            "{}: {median:.2} s [{least:.2}, {most:.2}], {:.2} s of CPU time, {:.0} MB",
            row.trace, row.cpu_s[1], row.peak_mb
        );
        rows.push(row);
    }
    let mut host = host::facts(&[], &Placement::of_this_machine());
    host.0.retain(|(name, _)| *name != "placement");
    let report = Report {
        workload: "gc-read",
        complete: rows.len() == KINDS.len(),
        host,
        megabytes: options.megabytes,
        runs: options.runs,
        rows,
    };
    let json = serde_json::to_string_pretty(&report)? + "\n";
    match &options.out {
        Some(path) => fs::write(path, json)?,
        None => print!("{json}"),
    }
    Ok(())
}

fn measure(options: &Options, trace: &'static str, lines: u64, path: &Path) -> Result<Row, Box<dyn Error>> {
    // This run warms the cache.
    let json = path.with_extension("json");
    run(options, [OsStr::new("--json"), path.as_os_str()], &json)?;
    let Told { traces: [summary] } = serde_json::from_reader(io::BufReader::new(File::open(&json)?))?;
    if summary.lines.total != lines || summary.lines.unknown != 0 {
        return Err(format!("{trace}: {lines} lines were written, and read were {:?}", summary.lines).into());
    }
    let told = summary.isolates.iter().map(|heap| heap.pauses.count);
    let collections = told.sum::<u64>() + summary.rest.map_or(0, |rest| rest.collections);
    let (mut wall, mut cpu, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.runs {
        let start = Instant::now();
        let ended = run(options, [path.as_os_str()], &path.with_extension("txt"))?;
        wall.push(start.elapsed().as_secs_f64());
        cpu.push(ended.cpu.as_secs_f64());
        peak = peak.max(ended.peak_rss);
    }
    Ok(Row {
        trace,
        lines,
        collections,
        wall_s: spread(&wall),
        cpu_s: spread(&cpu),
        peak_mb: peak as f64 / 1e6,
    })
}

fn run<'a>(
    options: &Options,
    arguments: impl IntoIterator<Item = &'a OsStr>,
    output: &Path,
) -> Result<Ended, Box<dyn Error>> {
    let mut child = Command::new(&options.hasten)
        .arg("gc")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(File::create(output)?)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", options.hasten.display()))?;
    match wait(&mut child, LIMIT, &|| false)? {
        Some(ended) if ended.status.success() => Ok(ended),
        Some(ended) => Err(format!("hasten gc ended with {}", ended.status).into()),
        None => Err(format!("hasten gc took more than {} s", LIMIT.as_secs()).into()),
    }
}

fn spread(values: &[f64]) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    [least, median(values), most]
}
