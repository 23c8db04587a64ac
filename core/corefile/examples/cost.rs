//! What reading a core file costs: seconds of CPU and by the clock, and memory at most, with and without the pages of the file. Each run is a
//! process of its own, that of a report and that of an export in turns.
//!
//! `scripts/core-heap.sh /tmp/core` makes a file with 18 million objects; then
//! `cargo run --release -p hasten-corefile --example cost -- /tmp/core NODE OUT.json`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hasten_corefile::{Core, Options};
use serde_json::{Value, json};

const RUNS: usize = 5;
/// A run within the process that is measured: its argument says which.
const ONCE: &str = "--once";

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match &*arguments {
        [first, core, node, export @ ..] if first == Path::new(ONCE) => once(core, node, export.first()),
        [core, node, out] => compare(core, node, out),
        _ => Err("usage: cost CORE NODE OUT.json".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(core: &Path, node: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("out.heapsnapshot");
    let mut rows = [row("`hasten core`, with retained sizes"), row("`hasten core --heapsnapshot`")];
    for _ in 0..RUNS {
        for (row, export) in rows.iter_mut().zip([None, Some(&export)]) {
            let told = child(core, node, export)?;
            for (name, value) in told["heap"].as_object().into_iter().flatten() {
                row[name] = value.clone();
            }
            row["file_bytes"] = std::fs::metadata(core)?.len().into();
            let written = export.map_or(Ok(0), |export| std::fs::metadata(export).map(|file| file.len()))?;
            row["written_bytes"] = written.into();
            row["runs"].as_array_mut().expect("a list").push(told["run"].clone());
        }
    }
    let report = json!({ "workload": "core-cost", "complete": true, "host": host(), "rows": rows });
    std::fs::write(out, format!("{report:#}\n"))?;
    Ok(())
}

fn row(what: &str) -> Value {
    json!({ "what": what, "runs": [] })
}

fn child(core: &Path, node: &Path, export: Option<&PathBuf>) -> Result<Value, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg(ONCE).args([core, node]).args(export).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let told: Value = serde_json::from_slice(&output.stdout)?;
    eprintln!("{}", told["run"]);
    Ok(told)
}

fn once(core: &Path, node: &Path, export: Option<&PathBuf>) -> Result<(), Box<dyn Error>> {
    let (done, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = {
        let (done, most) = (Arc::clone(&done), Arc::clone(&most));
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(memory("RssAnon"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let since = Instant::now();
    let options =
        Options { node: Some(node), heapsnapshot: export.map(PathBuf::as_path), ..Options::default() };
    let report = Core::report(core, &options);
    let (wall_s, cpu_s) = (since.elapsed().as_secs_f64(), cpu());
    done.store(true, Ordering::Relaxed);
    _ = watch.join();
    let report = report?;
    if let Some(why) = report.refused {
        return Err(format!("refused: {why}").into());
    }
    let heap = &report.heap;
    let heap = json!({ "objects": heap.objects, "used_bytes": heap.used_bytes });
    let run = json!({
        "cpu_s": cpu_s, "wall_s": wall_s, "peak_bytes": memory("VmHWM"), "own_bytes": most.load(Ordering::Relaxed),
    });
    println!("{}", json!({ "heap": heap, "run": run }));
    Ok(())
}

/// The file's pages can be dropped at any time; the anonymous ones cannot.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|rest| rest.trim_start_matches(':').trim().split(' ').next()?.parse().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn host() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "cpu": model.map_or("unknown", |(_, model)| model),
        "cores": cores.to_string(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").split(' ').next().unwrap_or_default(),
        "date": date(),
    })
}

/// Of today, by the machine's own program.
fn date() -> String {
    let output = Command::new("date").args(["-u", "+%FT%TZ"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
