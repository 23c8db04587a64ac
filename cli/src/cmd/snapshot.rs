//! `hasten snapshot`: a core file of a Node.js process that goes on running.

mod stack;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use hasten_corefile::{Collectors, Live};
use hasten_livecopy::{LiveError, Written, snapshot};
use hasten_units::{Systemd, UnitError};

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "\
Examples:
  hasten snapshot 1234                      write core.1234.TIME.zst here
  hasten snapshot 1234 --out /var/tmp/a.zst
  hasten core core.1234.TIME.zst            read it
  hasten snapshot --stack 1234              only what it is doing now: no copy, no file
  hasten snapshot --on-oom 1234             wait, and write one before it runs out of memory
  hasten snapshot --on-oom --unit app --out /var/tmp --keep 2
                                            the same for a service, through its restarts

The process stands still while it forks: some 50 ms for each GB that it has in memory. The copy is read from outside,
packed with zstd, and ends. If memory runs short, the copy ends first.
The file holds everything that the process has in memory, passwords and keys included; only its owner may read it.
";

/// Write a core file of a running process, which goes on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotArgs {
    /// The process, by its number
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), required_unless_present = "unit")]
    pid: Option<i32>,

    /// The process of this service of systemd
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    unit: Option<String>,

    /// The file to write, which must not exist; with --on-oom the folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show the JavaScript stacks and write nothing
    #[arg(long, conflicts_with_all = ["out", "on_oom"])]
    stack: bool,

    /// Leave out strings and numbers that are arguments
    #[arg(long, requires = "stack")]
    redact: bool,

    /// Wait until the process runs short of memory, and write one then
    #[arg(long)]
    on_oom: bool,

    /// Files of one process that --on-oom leaves; the oldest goes first
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..), requires = "on_oom")]
    keep: u16,

    /// The limit of its heap in MB, if it is not that of its options
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..1 << 24), requires = "on_oom")]
    heap_limit: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

pub(crate) fn run(args: &SnapshotArgs) -> Result<ExitCode, Failure> {
    if args.on_oom {
        return watch::run(args);
    }
    let pid = process(args)?;
    if args.stack {
        return stack::run(pid, args);
    }
    let out = args.out.clone().unwrap_or_else(|| file_name(pid).into());
    let written = copy(pid, &out, collectors(pid).as_ref())?;
    let text = match args.json {
        true => json(pid, &out, &written),
        false => render(pid, &out, &written),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

/// What tells of a process's collections, where V8 does. Other programs, and builds that do not tell, have none.
fn collectors(pid: i32) -> Option<Collectors> {
    Live::open(pid, None).and_then(|live| live.collectors()).ok()
}

/// Between two collections, if they are told of; else at once.
fn copy(pid: i32, out: &Path, collectors: Option<&Collectors>) -> Result<Written, LiveError> {
    snapshot(pid, out, || collectors?.running())
}

/// The process that is meant: of a service, its main one.
fn process(args: &SnapshotArgs) -> Result<i32, Failure> {
    match (args.pid, &args.unit) {
        (Some(pid), _) => Ok(pid),
        (None, Some(unit)) => of_unit(unit)?.ok_or_else(|| {
            Failure::new(format!("{unit} has no process"), format!("start it: systemctl start {unit}"))
        }),
        (None, None) => Err(Failure::new("no process is named", "pass its number, or --unit NAME")),
    }
}

fn of_unit(unit: &str) -> Result<Option<i32>, Failure> {
    let failure = |error: UnitError| Failure::new(error.to_string(), error.fix());
    let unit = Systemd::of_host().and_then(|systemd| systemd.unit(unit)).map_err(failure)?;
    Ok(unit.process().and_then(|pid| i32::try_from(pid).ok()))
}

fn file_name(pid: i32) -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    format!("core.{pid}.{time}.zst")
}

fn json(pid: i32, out: &Path, written: &Written) -> String {
    let value = serde_json::json!({
        "pid": pid,
        "file": out,
        "file_bytes": written.file,
        "memory_bytes": written.memory,
        "pause_wall_ms": written.pause.wall.as_secs_f64() * 1e3,
        "pause_cpu_ms": written.pause.cpu.as_secs_f64() * 1e3,
        "stops": written.stops,
        "waited_ms": written.waited.as_secs_f64() * 1e3,
        "amid": written.amid,
        "write_ms": written.took.as_secs_f64() * 1e3,
    });
    format!("{value:#}\n")
}

fn render(pid: i32, out: &Path, written: &Written) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let amid = written.amid.map_or_else(String::new, |amid| {
        format!("it was in the middle of {amid}, and came to no rest: retained sizes may be missing\n")
    });
    format!(
        "{}: {:.1} MB, for {:.1} MB of memory\n\
         process {pid} stood still for {:.1} ms ({:.1} ms of CPU), and goes on; the file took {:.1} s\n{amid}\
         read it:  hasten core {}\n",
        out.display(),
        megabytes(written.file),
        megabytes(written.memory),
        written.pause.wall.as_secs_f64() * 1e3,
        written.pause.cpu.as_secs_f64() * 1e3,
        written.took.as_secs_f64(),
        out.display(),
    )
}
