//! `hasten bench node`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hasten_bench::BenchError;
use hasten_bench::node::{self, Matrix, NodeCase, Options, Paces, Runtime, Tuning, Workload};
use hasten_evidence::report::{Report, Saved};

use super::{Output, finish, list, own_program, texts, watch};
use crate::failure::Failure;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  hasten bench node --quick                             start-up, React, an API, build tools; three minutes
  hasten bench node                                     longer rounds, and Ghost if MariaDB is installed
  hasten bench node --workload faas-startup --node 20,22,24
  hasten bench node --tunings --node ./bin/node         each tuning alone on this binary
  hasten bench node --quick --json | jq '.rows[] | {workload, node, ratio: .cpu_ratio.value, verdict}'

The packages that the workloads need come from npm by lockfile, once, without install scripts, into hasten's cache
folder (HASTEN_CACHE_DIR, or ~/.cache/hasten). Nothing else is changed on this machine: servers and MariaDB run from
temporary directories, on loopback. Use a machine at rest; what disturbs the measurement is named in the result.

The exit code is 1 when any operation failed, and 130 after Ctrl-C; finished rows are kept.
";

/// Node.js: start-up, servers, build tools, and Ghost
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Runs public packages on the same Node.js twice, stock and behind `hasten run`, and compares the CPU time of a start or \
a request, memory and latency. The result is a table, and hasten-report.html and hasten-report.json beside it.")]
pub(super) struct NodeArgs {
    /// Without Ghost, in shorter rounds
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    output: Output,

    /// Only these workloads
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = workload_parser())]
    workload: Option<Vec<Workload>>,

    /// These Node.js programs, by path or by installed version, in place of the one in PATH
    #[arg(long, value_name = "PATH|VERSION", value_delimiter = ',')]
    node: Vec<String>,

    /// Measure tunings one by one, each against this Node.js as it is, in place of `hasten run`
    #[arg(long)]
    tunings: bool,
}

pub(super) fn run(args: &NodeArgs) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    let (report, saved) = measure(args, &interrupted)?;
    finish(&args.output, &report, &saved, &interrupted)
}

pub(super) fn measure(
    args: &NodeArgs,
    interrupted: &AtomicBool,
) -> Result<(Report<NodeCase>, Saved), Failure> {
    let options = Options {
        matrix: args.matrix()?,
        paces: if args.quick { Paces::quick() } else { Paces::full() },
        hasten: own_program()?,
        cache: cache_folder()?,
        out: args.output.out.clone(),
        command: args.command_line(),
    };
    Ok(node::run(&options, interrupted)?)
}

impl NodeArgs {
    /// The quick variant, as for `--quick`.
    pub(super) fn quick(out: PathBuf) -> Self {
        Self {
            quick: true,
            output: Output { json: false, out },
            workload: None,
            node: Vec::new(),
            tunings: false,
        }
    }

    fn matrix(&self) -> Result<Matrix, Failure> {
        let runtimes = match &self.node[..] {
            [] => vec![Runtime::of_path().map_err(BenchError::from)?],
            given => given
                .iter()
                .map(|given| Runtime::find(given))
                .collect::<Result<_, _>>()
                .map_err(BenchError::from)?,
        };
        let workloads = match &self.workload {
            Some(workloads) => {
                for &workload in workloads {
                    node::requirements(workload)?;
                }
                workloads.clone()
            }
            None if self.tunings => Matrix::TUNED.to_vec(),
            None if self.quick => Matrix::QUICK.to_vec(),
            None => installed(),
        };
        let tunings = if self.tunings { Tuning::ALL.to_vec() } else { Vec::new() };
        if let Some(other) =
            workloads.iter().find(|workload| self.tunings && !Matrix::TUNED.contains(workload))
        {
            return Err(Failure::new(
                format!("tunings are not measured on {other}"),
                format!("leave it out: --workload {}", Matrix::TUNED.map(Workload::as_str).join(",")),
            ));
        }
        Ok(Matrix { workloads, runtimes, tunings })
    }

    /// The command line that repeats this run.
    fn command_line(&self) -> String {
        let mut line = "hasten bench node".to_owned();
        for (set, flag) in [(self.quick, " --quick"), (self.tunings, " --tunings")] {
            if set {
                line += flag;
            }
        }
        let nodes = (!self.node.is_empty()).then(|| self.node.clone());
        line + &list("workload", texts(self.workload.as_deref())) + &list("node", nodes)
    }
}

/// All workloads except those with a missing program.
fn installed() -> Vec<Workload> {
    let wanted = |workload: &Workload| match node::requirements(*workload) {
        Err(missing) if workload.is_ghost() => {
            say(format!("{workload} is left out: {missing}; {}", missing.fix()));
            false
        }
        _ => true,
    };
    Workload::ALL.into_iter().filter(wanted).collect()
}

/// `$HASTEN_CACHE_DIR`, `$XDG_CACHE_HOME/hasten`, or `~/.cache/hasten`.
fn cache_folder() -> Result<PathBuf, Failure> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("HASTEN_CACHE_DIR")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("hasten")))
        .or_else(|| env::home_dir().map(|home| home.join(".cache/hasten")))
        .ok_or_else(|| Failure::new("there is no home directory", "name a folder: HASTEN_CACHE_DIR=/path"))
}

fn workload_parser() -> impl TypedValueParser<Value = Workload> {
    PossibleValuesParser::new(Workload::ALL.map(Workload::as_str)).try_map(|name| name.parse())
}
