//! Waits for a process to run short of memory, and writes a core file before it ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hasten_livecopy::{Watch, Written, keep_newest};

use super::{SnapshotArgs, collectors, copy, file_name, of_unit, process};
use crate::failure::Failure;
use crate::output::print;

/// After a file, the next one waits so long: it would show the same.
const REST: Duration = Duration::from_secs(300);
/// After a try that failed.
const AGAIN: Duration = Duration::from_secs(10);
/// Its heaps are looked for ahead: a process that is short of memory may end meanwhile. They come when it starts, and with
/// workers later.
const HEAPS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often a service without a process is asked for.
const ABSENT: Duration = Duration::from_secs(2);

pub(super) fn run(args: &SnapshotArgs) -> Result<ExitCode, Failure> {
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
    if !folder.is_dir() {
        return Err(Failure::new(format!("{} is no folder", folder.display()), "pass a folder: --out DIR"));
    }
    let mut pid = Some(process(args)?);
    loop {
        if let Some(pid) = pid {
            hasten_livecopy::check(pid)?;
            follow(pid, &folder, args)?;
        }
        // A service starts again, as another process.
        let Some(unit) = &args.unit else { return Ok(ExitCode::SUCCESS) };
        sleep(ABSENT);
        pid = of_unit(unit)?;
    }
}

/// Until the process ends.
fn follow(pid: i32, folder: &Path, args: &SnapshotArgs) -> Result<(), Failure> {
    let mut watch = Watch::of(pid, args.heap_limit.map(|megabytes| megabytes << 20));
    say(args, &started(pid, &watch))?;
    let mut next = Instant::now();
    let (mut heaps, mut looked, mut again) = (collectors(pid), Instant::now(), HEAPS.0);
    while watch.is_alive() {
        let alarm = watch.alarm();
        if alarm.is_none() && looked.elapsed() >= again {
            (heaps, looked, again) = (collectors(pid), Instant::now(), (again * 2).min(HEAPS.1));
        }
        if let Some(why) = alarm.filter(|_| Instant::now() >= next) {
            let out = folder.join(file_name(pid));
            let taken = copy(pid, &out, heaps.as_ref());
            next = Instant::now() + if taken.is_ok() { REST } else { AGAIN };
            match taken {
                Ok(written) => say(args, &told(pid, &out, &why, &written))?,
                // It goes on watching: what stood in the way may pass.
                Err(error) => say(args, &failed(pid, &why, &error.to_string(), &error.fix()))?,
            }
            let removed = keep_newest(folder, &format!("core.{pid}."), args.keep.into());
            removed.map_err(|error| {
                Failure::new(format!("cannot clear {}: {error}", folder.display()), "check its permissions")
            })?;
        }
        sleep(watch.again());
    }
    say(
        args,
        &Line {
            json: serde_json::json!({"event": "ended", "pid": pid}),
            text: format!("process {pid} ended"),
        },
    )
}

/// What is said, for people and as a line of JSON.
struct Line {
    json: serde_json::Value,
    text: String,
}

fn say(args: &SnapshotArgs, line: &Line) -> Result<(), Failure> {
    let text = if args.json { line.json.to_string() } else { line.text.clone() };
    print(&(text + "\n")).map_err(Failure::output)
}

fn started(pid: i32, watch: &Watch) -> Line {
    let limit = watch.heap_limit();
    let heap = limit.map_or_else(String::new, |bytes| format!("; its heap's limit is {} MB", bytes >> 20));
    Line {
        json: serde_json::json!({"event": "watching", "pid": pid, "heap_limit_bytes": limit}),
        text: format!("watching process {pid}{heap}"),
    }
}

fn told(pid: i32, out: &Path, why: &str, written: &Written) -> Line {
    let pause = written.pause.wall.as_secs_f64() * 1e3;
    let json = serde_json::json!({
        "event": "written",
        "pid": pid,
        "file": out,
        "why": why,
        "file_bytes": written.file,
        "pause_wall_ms": pause,
        "amid": written.amid,
    });
    let size = written.file as f64 / 1e6;
    let amid = written.amid.map_or_else(String::new, |amid| format!(", in the middle of {amid}"));
    let text = format!(
        "{why}: {}, {size:.1} MB, after {pause:.1} ms of pause{amid}\nread it:  hasten core {}",
        out.display(),
        out.display()
    );
    Line { json, text }
}

fn failed(pid: i32, why: &str, error: &str, fix: &str) -> Line {
    Line {
        json: serde_json::json!({"event": "failed", "pid": pid, "why": why, "error": error, "fix": fix}),
        text: format!("{why}, but there is no file: {error}\n  fix: {fix}"),
    }
}
