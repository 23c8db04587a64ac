//! Where the CPU time of a handshake goes: nginx, stock and accelerated, sampled with perf under load.
//!
//! ```text
//! cargo run --release -p hasten-bench --example profile -- target/release/hasten > docs/results/profile.json
//! ```
//!
//! Needs perf (`apt-get install linux-perf`) and the right to sample another process (root, or
//! `kernel.perf_event_paranoid` of 1 or less). `cargo xtask results` makes the table of docs/performance.md of it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Load};
use hasten_bench::server::{Launcher, Server, ServerKind, ServerSpec};
use serde::Serialize;

const SECONDS: u64 = 6;
const CONNECTIONS: usize = 256;

#[derive(Serialize)]
struct Profile {
    concurrency: usize,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    cert: String,
    side: String,
    server_cpu_us_per_op: f64,
    /// Microseconds of a handshake, by where they are spent.
    parts: BTreeMap<&'static str, f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let exe = PathBuf::from(env::args_os().nth(1).ok_or("usage: profile PATH_OF_HASTEN")?);
    let mut rows = Vec::new();
    for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384] {
        for (side, launcher) in
            [("stock", Launcher::Stock), ("hasten", Launcher::Hasten { exe: exe.clone() })]
        {
            eprintln!("profiling nginx with {}, {side}", kind.as_str());
            rows.push(profile(kind, side, launcher)?);
        }
    }
    println!("{}", serde_json::to_string_pretty(&Profile { concurrency: CONNECTIONS, rows })?);
    Ok(())
}

fn profile(kind: KeyKind, side: &str, launcher: Launcher) -> Result<Row, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let certificate = Certificate::create(dir.path(), kind)?;
    let server = ServerSpec::new(ServerKind::Nginx, certificate).launcher(launcher).cpu(Some(0)).start()?;
    let load = |seconds| Load {
        concurrency: CONNECTIONS,
        duration: Duration::from_secs(seconds),
        cpus: vec![1],
        ..Load::default()
    };
    drive::run(server.target(), &load(1))?;

    let samples = dir.path().join("perf.data");
    let recording = record(&server, &samples)?;
    let before = server.cpu_times();
    let outcome = drive::run(server.target(), &load(SECONDS + 1))?;
    thread::sleep(Duration::from_millis(5));
    let cpu = server.cpu_times().since(&before);
    recording.wait_with_output()?;
    if outcome.failures.total() > 0 {
        return Err(format!("failed operations: {}", outcome.failures).into());
    }

    let total = cpu.as_secs_f64() * 1e6 / outcome.ops as f64;
    let shares = shares(&samples)?;
    let parts = shares.into_iter().map(|(part, share)| (part, share * total)).collect();
    Ok(Row { cert: kind.as_str().to_owned(), side: side.to_owned(), server_cpu_us_per_op: total, parts })
}

fn record(server: &Server, samples: &std::path::Path) -> Result<std::process::Child, Box<dyn Error>> {
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
fn shares(samples: &std::path::Path) -> Result<BTreeMap<&'static str, f64>, Box<dyn Error>> {
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

fn part(object: &str, symbol: &str) -> &'static str {
    let engine =
        ["mbx", "ifma", "internal_", "hasten_crypto", "EXP52", "AMS", "fe52", "ams", "amm", "zero_mb8"];
    match object {
        _ if object.starts_with("[kernel") => "kernel",
        "libcrypto.so.3" => "libcrypto",
        "libssl.so.3" => "libssl",
        "libc.so.6" => "libc",
        "nginx" => "nginx",
        "libhasten_tls.so" if engine.iter().any(|name| symbol.contains(name)) => "hasten: lanes",
        "libhasten_tls.so" if symbol.contains("hasten_tls") || symbol.contains("SSL") => "hasten: hooks",
        "libhasten_tls.so" => "hasten: lanes",
        _ => "other",
    }
}
