//! Where the CPU time of a handshake, or of a compressed response, goes: nginx, stock and accelerated, sampled with
//! perf under load.
//!
//! ```text
//! cargo run --release -p hasten-bench --example profile -- tls target/release/hasten > docs/results/profile-tls.json
//! cargo run --release -p hasten-bench --example profile -- gzip target/release/hasten > docs/results/profile-gzip.json
//! ```
//!
//! Needs perf (`apt-get install linux-perf`) and the right to sample another process (root, or
//! `kernel.perf_event_paranoid` of 1 or less). `cargo xtask results` turns the output into the tables of
//! docs/performance.md.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Outcome, requests};
use hasten_bench::gzip::Site;
use hasten_bench::server::{Launcher, Server, ServerKind, ServerSpec};
use serde::Serialize;

const SECONDS: u64 = 6;
/// Connections of the load: enough for full batches, and for the worker always to have a request.
const HANDSHAKING: usize = 256;
const REQUESTING: usize = 16;
const PAGE: usize = 100 << 10;

const USAGE: &str = "usage: profile tls|gzip PATH_OF_HASTEN";

/// Engine names in symbols; anything else in one of our libraries counts as ours.
const LANES: [&str; 10] =
    ["mbx", "ifma", "internal_", "hasten_crypto", "EXP52", "AMS", "fe52", "ams", "amm", "zero_mb8"];
const STREAMS: [&str; 6] =
    ["hasten_deflate", "hasten_gzip", "hasten_hook", "hasten_telemetry", "deflate", "core::"];

#[derive(Serialize)]
struct Profile {
    concurrency: usize,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    /// The certificate, or the compression level.
    case: String,
    side: String,
    server_cpu_us_per_op: f64,
    /// Microseconds per operation, by where they are spent.
    parts: BTreeMap<&'static str, f64>,
}

type Part = fn(&str, &str) -> &'static str;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let workload = arguments.next().ok_or(USAGE)?;
    let hasten = Launcher::Hasten { exe: PathBuf::from(arguments.next().ok_or(USAGE)?) };
    let sides = [("stock", Launcher::Stock), ("hasten", hasten)];
    let profile = match workload.to_str() {
        Some("tls") => handshakes(&sides)?,
        Some("gzip") => responses(&sides)?,
        _ => return Err(USAGE.into()),
    };
    println!("{}", serde_json::to_string_pretty(&profile)?);
    Ok(())
}

fn handshakes(sides: &[(&str, Launcher)]) -> Result<Profile, Box<dyn Error>> {
    let mut rows = Vec::new();
    for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384] {
        for (side, launcher) in sides {
            let dir = tempfile::tempdir()?;
            let certificate = Certificate::create(dir.path(), kind)?;
            let spec = ServerSpec::new(ServerKind::Nginx, certificate);
            let server = spec.launcher(launcher.clone()).cpu(Some(0)).start()?;
            let drive = |duration| {
                let (concurrency, cpus) = (HANDSHAKING, vec![1]);
                drive::run(
                    server.target(),
                    &drive::Load { concurrency, duration, cpus, ..drive::Load::default() },
                )
            };
            rows.push(row(kind.as_str(), side, &server, &drive, part_of_handshake)?);
        }
    }
    Ok(Profile { concurrency: HANDSHAKING, rows })
}

fn responses(sides: &[(&str, Launcher)]) -> Result<Profile, Box<dyn Error>> {
    let mut rows = Vec::new();
    for level in [1, 6] {
        for (side, launcher) in sides {
            let site = Site::start(level, PAGE, launcher.clone(), Some(0))?;
            let drive = |duration| {
                let (concurrency, timeout) = (REQUESTING, Duration::from_secs(10));
                requests::run(
                    &site.target(),
                    &requests::Load { concurrency, threads: 1, duration, timeout, cpus: vec![1] },
                )
            };
            rows.push(row(&format!("level {level}"), side, site.server(), &drive, part_of_response)?);
        }
    }
    Ok(Profile { concurrency: REQUESTING, rows })
}

fn row(
    case: &str,
    side: &str,
    server: &Server,
    drive: &dyn Fn(Duration) -> io::Result<Outcome>,
    part: Part,
) -> Result<Row, Box<dyn Error>> {
    eprintln!("profiling nginx with {case}, {side}");
    drive(Duration::from_secs(1))?;

    let dir = tempfile::tempdir()?;
    let samples = dir.path().join("perf.data");
    let recording = record(server, &samples)?;
    let before = server.cpu_times();
    let outcome = drive(Duration::from_secs(SECONDS + 1))?;
    thread::sleep(Duration::from_millis(5));
    let cpu = server.cpu_times().since(&before);
    recording.wait_with_output()?;
    if outcome.failures.total() > 0 {
        return Err(format!("failed operations: {}", outcome.failures).into());
    }

    let total = cpu.as_secs_f64() * 1e6 / outcome.ops as f64;
    let parts = shares(&samples, part)?.into_iter().map(|(part, share)| (part, share * total)).collect();
    Ok(Row { case: case.to_owned(), side: side.to_owned(), server_cpu_us_per_op: total, parts })
}

fn record(server: &Server, samples: &Path) -> Result<Child, Box<dyn Error>> {
    let worker = server.workers().first().ok_or("nginx has no worker")?.to_string();
    let child = Command::new("perf")
        .args(["record", "--quiet", "--event", "cpu-clock", "--freq", "4000", "--pid", &worker, "--output"])
        .arg(samples)
        .args(["--", "sleep", &SECONDS.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    child.map_err(|error| format!("perf: {error}; apt-get install linux-perf").into())
}

/// The shares of all samples, which add up to one.
fn shares(samples: &Path, part: Part) -> Result<BTreeMap<&'static str, f64>, Box<dyn Error>> {
    let report = Command::new("perf")
        .args(["report", "--stdio", "--sort", "dso,symbol", "--field-separator", "\t", "--input"])
        .arg(samples)
        .stderr(Stdio::null())
        .output()?;
    let mut shares = BTreeMap::new();
    for line in String::from_utf8_lossy(&report.stdout).lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t').map(str::trim);
        let (Some(percent), Some(object), Some(symbol)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Ok(percent) = percent.trim_end_matches('%').parse::<f64>() else { continue };
        *shares.entry(part(object, symbol)).or_default() += percent;
    }
    let total: f64 = shares.values().sum();
    if total == 0.0 {
        return Err("perf took no samples: run as root, or set kernel.perf_event_paranoid to 1".into());
    }
    shares.values_mut().for_each(|share| *share /= total);
    Ok(shares)
}

fn part_of_handshake(object: &str, symbol: &str) -> &'static str {
    match object {
        "libhasten_tls.so" if LANES.iter().any(|name| symbol.contains(name)) => "hasten: lanes",
        "libhasten_tls.so" if symbol.contains("hasten_tls") || symbol.contains("SSL") => "hasten: hooks",
        "libhasten_tls.so" => "hasten: lanes",
        _ => part_of_host(object),
    }
}

fn part_of_response(object: &str, symbol: &str) -> &'static str {
    let name = symbol.trim_start_matches("[.] ");
    match object {
        // libdeflate's and ISA-L's functions have C names, ours Rust names, and the hooks zlib's.
        "libhasten_gzip.so" if name.contains("crc") || name.contains("adler") => "hasten: checksum",
        "libhasten_gzip.so"
            if name == "deflate" || STREAMS.iter().any(|ours| name.contains(ours) && name.contains("::")) =>
        {
            "hasten: streams"
        }
        "libhasten_gzip.so" => "hasten: engine",
        _ => part_of_host(object),
    }
}

fn part_of_host(object: &str) -> &'static str {
    match object {
        _ if object.starts_with("[kernel") => "kernel",
        "libcrypto.so.3" => "libcrypto",
        "libssl.so.3" => "libssl",
        "libc.so.6" => "libc",
        "nginx" => "nginx",
        _ if object.starts_with("libz.so") => "libz",
        _ => "other",
    }
}
