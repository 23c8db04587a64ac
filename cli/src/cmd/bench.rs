//! `hasten bench`: stock against accelerated, measured on this machine.

mod all;
mod envoy;
mod gzip;
mod node;
mod storage;
mod tier;
mod tls;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand};
use hasten_bench::baseline::{Baseline, Build};
use hasten_bench::{BenchError, interrupt};
use hasten_evidence::report::{Case, Report, Saved, Style};
use hasten_evidence::verdict::Verdict;

use crate::failure::{Failure, own_program};
use crate::output::{has_colours, print};
use crate::render::say;

/// As a shell reports a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Measure stock against accelerated programs on this machine
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, long_about = "\
Measures stock against accelerated programs on this machine. Without a workload, all of them one after the other as \
with --quick: the result is one page and one JSON with everything, and a report of each workload in a directory below. \
A workload whose programs are missing is left out and named, with what installs them.")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Option<Workload>,

    #[command(flatten)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  hasten bench                                          all workloads, about six minutes
  hasten bench --out /tmp/bench                         with the reports in a directory of your choice
  hasten bench tls                                      everything of one workload

The exit code is 1 when any operation failed or nothing could be measured, and 130 after Ctrl-C; what is finished is
kept.
";

#[derive(Debug, Subcommand)]
enum Workload {
    Tls(tls::TlsArgs),
    Gzip(gzip::GzipArgs),
    Node(node::NodeArgs),
    Envoy(envoy::EnvoyArgs),
    #[command(name = "readcache")]
    ReadCache(storage::ReadCacheArgs),
    Wal(storage::WalArgs),
    Tier(tier::TierArgs),
    #[command(name = hasten_bench::gzip::WORKER, hide = true)]
    GzipWorker(gzip::WorkerArgs),
}

/// What the accelerated side is compared with.
#[derive(Debug, Args)]
struct Against {
    /// Compare with another build of hasten instead of the stock program: its `hasten` and libraries are in DIR
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
}

impl Against {
    fn baseline(&self) -> Result<Baseline, Failure> {
        let Some(directory) = &self.against else { return Ok(Baseline::Stock) };
        Build::new(directory.clone()).map(Baseline::Build).map_err(|missing| {
            Failure::new(
                format!("--against {}: {missing}", directory.display()),
                "name a directory with `hasten`, libhasten_tls.so and libhasten_gzip.so, as `make build` fills target/release",
            )
        })
    }

    /// As typed on the command line.
    fn flag(&self) -> String {
        let directory = self.against.as_deref();
        directory.map(|directory| format!(" --against {}", directory.display())).unwrap_or_default()
    }
}

/// Where the result goes, and in which form.
#[derive(Debug, Args)]
struct Output {
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Directory of the report
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.workload {
        None => all::run(&args.output),
        Some(Workload::Tls(args)) => tls::run(args),
        Some(Workload::Gzip(args)) => gzip::run(args),
        Some(Workload::Node(args)) => node::run(args),
        Some(Workload::Envoy(args)) => envoy::run(args),
        Some(Workload::ReadCache(args)) => storage::read_cache(args),
        Some(Workload::Wal(args)) => storage::wal(args),
        Some(Workload::Tier(args)) => tier::run(args),
        Some(Workload::GzipWorker(args)) => gzip::work(args),
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

/// A flag for Ctrl-C, to be checked between two rounds.
fn watch() -> Result<Arc<AtomicBool>, Failure> {
    interrupt::flag().map_err(|error| Failure::new(format!("cannot watch for Ctrl-C: {error}"), "try again"))
}

/// Prints the result and reports success or failure as the exit code.
fn finish<C: Case>(
    output: &Output,
    report: &Report<C>,
    saved: &Saved,
    interrupted: &AtomicBool,
) -> Result<ExitCode, Failure> {
    output.print(report, saved)?;
    let failed = report.rows.iter().any(|row| row.verdict == Verdict::Failed);
    Ok(match () {
        () if interrupted.load(Ordering::Relaxed) => ExitCode::from(INTERRUPTED),
        () if failed => ExitCode::FAILURE,
        () => ExitCode::SUCCESS,
    })
}

impl Output {
    /// The result goes to standard output; with JSON, nothing else does.
    fn print<C: Case>(&self, report: &Report<C>, saved: &Saved) -> Result<(), Failure> {
        if self.json {
            print(&report.json().map_err(BenchError::from)?).map_err(Failure::output)?;
            say(paths(saved));
            return Ok(());
        }
        let mut text = format!("{}\n{}.\n\n{}\n", report.headline(), report.tally(), report.table(style()));
        text += &format!("{}\n\nThree commands to try next:\n", paths(saved));
        let width =
            report.text.next.iter().map(|(command, _)| command.len()).max().unwrap_or_default().max(26);
        for (command, why) in &report.text.next {
            text += &format!("  {command:<width$} {why}\n");
        }
        print(&text).map_err(Failure::output)
    }
}

fn paths(saved: &Saved) -> String {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    format!("Report: {}\nData:   {}", absolute(&saved.html).display(), absolute(&saved.json).display())
}

/// A pipe gets the full width.
pub(crate) fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.or_else(|| terminal.then(terminal_width).flatten());
    Style { color: has_colours(), width }
}

fn terminal_width() -> Option<u16> {
    // A terminal that does not know its size says 0.
    comfy_table::Table::new().width().filter(|&width| width > 0)
}

fn texts<T: ToString>(values: Option<&[T]>) -> Option<Vec<String>> {
    values.map(|values| values.iter().map(T::to_string).collect())
}

/// ` --flag value,value`, or nothing.
fn list(flag: &str, values: Option<Vec<String>>) -> String {
    values.map(|values| format!(" --{flag} {}", values.join(","))).unwrap_or_default()
}
