//! What reading a core file costs: seconds of CPU, and memory at most, with and without the pages of the file.
//!
//! `scripts/core-heap.sh /tmp/core` makes a file with 16 million objects; then
//! `cargo run --release -p hasten-corefile --example cost -- /tmp/core NODE [OUT.heapsnapshot]`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hasten_corefile::{Core, Options};

/// The file's pages can be dropped at any time; the anonymous ones cannot.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim_start_matches(':').trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [core, node, rest @ ..] = &*arguments else {
        eprintln!("usage: cost CORE NODE [OUT.heapsnapshot]");
        return ExitCode::FAILURE;
    };
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
        Options { node: Some(node), heapsnapshot: rest.first().map(Path::new), ..Options::default() };
    let report = Core::report(core, &options);
    let (wall, cpu) = (since.elapsed().as_secs_f64(), cpu());
    done.store(true, Ordering::Relaxed);
    _ = watch.join();
    match report {
        Ok(report) => {
            let heap = &report.heap;
            println!(
                "{} objects, {} alive, {} MB used",
                heap.objects,
                heap.live_objects,
                heap.used_bytes / 1_000_000
            );
            if let Some(why) = report.refused {
                println!("refused: {why}");
            }
            println!(
                "{cpu:.2} s of CPU, {wall:.2} s; at most {} MB, {} MB of them without the file",
                memory("VmHWM") / 1000,
                most.load(Ordering::Relaxed) / 1000
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
