//! `hasten snapshot`: a core file of a Node.js process that goes on running.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use hasten_livecopy::{LiveError, Written, snapshot};

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "\
Examples:
  hasten snapshot 1234                      write core.1234.TIME.zst here
  hasten snapshot 1234 --out /var/tmp/a.zst
  hasten core core.1234.TIME.zst            read it

The process stands still while it forks: some 50 ms for each GB that it has in memory. The copy is read from outside,
packed with zstd, and ends. If memory runs short, the copy ends first.
The file holds everything that the process has in memory, passwords and keys included; only its owner may read it.
";

/// Write a core file of a running process, which goes on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotArgs {
    /// The process, by its number
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

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
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let out = args.out.clone().unwrap_or_else(|| format!("core.{}.{time}.zst", args.pid).into());
    let written = snapshot(args.pid, &out)?;
    let text = match args.json {
        true => json(args.pid, &out, &written),
        false => render(args.pid, &out, &written),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn json(pid: i32, out: &std::path::Path, written: &Written) -> String {
    let value = serde_json::json!({
        "pid": pid,
        "file": out,
        "file_bytes": written.file,
        "memory_bytes": written.memory,
        "pause_wall_ms": written.pause.wall.as_secs_f64() * 1e3,
        "pause_cpu_ms": written.pause.cpu.as_secs_f64() * 1e3,
        "write_ms": written.took.as_secs_f64() * 1e3,
    });
    format!("{value:#}\n")
}

fn render(pid: i32, out: &std::path::Path, written: &Written) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "{}: {:.1} MB, for {:.1} MB of memory\n\
         process {pid} stood still for {:.1} ms ({:.1} ms of CPU), and goes on; the file took {:.1} s\n\
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
