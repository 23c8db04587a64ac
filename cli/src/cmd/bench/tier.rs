//! `hasten bench tier`.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use hasten_bench::tier::{self, Options, Report, Saved};

use super::{INTERRUPTED, Output, own_program, watch};
use crate::failure::Failure;
use crate::output::print;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  hasten bench tier                     what the division itself costs: both kinds are the same memory
  hasten bench tier --tier 0:2=1:3      with three of four bytes on node 2
  hasten bench tier --quick             in a minute, less precise

Redis comes from Debian's redis-server. Two of them have up to 300 MB each.

The exit code is 130 after Ctrl-C; finished rows are kept.
";

/// Redis on two kinds of memory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Runs Redis as it is and with `hasten run --tier`, with values of 64 B, 1 KiB, 16 KiB and all of them, one request at a time \
and 16, and compares the CPU time of a request; with throughput, latency, resident memory, and the share that is kept.")]
pub(super) struct TierArgs {
    /// Nodes and shares, as for `hasten run`
    #[arg(long, value_name = "NEAR:FAR=SHARE:SHARE", default_value = "0:0=1:3")]
    tier: String,

    /// Keys, at most: large values have fewer
    #[arg(long, value_name = "N", default_value_t = 150_000, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    keys: u32,

    /// Pairs of rounds for each row
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    pairs: u32,

    /// Seconds of a round
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// 50,000 keys, and four pairs of short rounds for each row
    #[arg(long, conflicts_with_all = ["keys", "pairs", "seconds"])]
    quick: bool,

    #[command(flatten)]
    output: Output,
}

pub(super) fn run(args: &TierArgs) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    let nodes = super::super::run::tier(&args.tier)?;
    tier::requirements()?;
    let (keys, pairs, round) = if args.quick {
        (50_000, 4, Duration::from_millis(400))
    } else {
        (args.keys, args.pairs as usize, Duration::from_secs(args.seconds.into()))
    };
    let options = Options {
        command: args.command_line(),
        tier: nodes.to_string(),
        keys,
        round,
        pairs,
        hasten: own_program()?,
        out: args.output.out.clone(),
    };
    let (report, saved) = tier::run(&options, &interrupted)?;
    args.print(&report, &saved)?;
    let was_interrupted = interrupted.load(Ordering::Relaxed);
    Ok(if was_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

impl TierArgs {
    /// The result goes to standard output; with JSON, nothing else does.
    fn print(&self, report: &Report, saved: &Saved) -> Result<(), Failure> {
        let path =
            format!("Data: {}", saved.json.canonicalize().unwrap_or_else(|_| saved.json.clone()).display());
        if self.output.json {
            print(&report.json()?).map_err(Failure::output)?;
            say(path);
            return Ok(());
        }
        print(&format!("{}\n{}\n{path}\n", report.table(), report.method)).map_err(Failure::output)
    }

    /// The command line that repeats this run.
    fn command_line(&self) -> String {
        if self.quick {
            return format!("hasten bench tier --tier {} --quick", self.tier);
        }
        format!(
            "hasten bench tier --tier {} --keys {} --pairs {} --seconds {}",
            self.tier, self.keys, self.pairs, self.seconds
        )
    }
}
