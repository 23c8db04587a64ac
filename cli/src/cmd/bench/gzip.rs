//! `hasten bench gzip`.

use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hasten_bench::gzip::{self, Engine, GzipCase, Matrix, Options, Paces};
use hasten_bench::server::ServerKind;
use hasten_evidence::report::{Report, Saved};
use hasten_plan::{Config, Decision, Surroundings, host_verdicts};
use hasten_probe::Probe;

use super::{Against, Output, finish, list, own_program, texts, watch};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  hasten bench gzip --quick                             levels 1, 6 and 9, about two minutes
  hasten bench gzip                                     every level, engine and size
  hasten bench gzip --part nginx --size 100KB --level 1,6
  hasten bench gzip --part library --engine hasten,zlib-ng
  hasten bench gzip --quick --json | jq '.rows[] | {engine, server, level, ratio: .cpu_ratio.value, wire_bytes_ratio}'

The corpus is made of files of the distribution and generated ones. Nothing is changed on this machine. Use a machine
at rest; what disturbs the measurement is named in the result.

The exit code is 1 when any operation failed, and 130 after Ctrl-C; finished rows are kept.
";

/// Compression: zlib and what stands in for it, and nginx with gzip on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Compresses a corpus with the original zlib, with hasten's library preloaded, and with other engines, and lets a stock \
and an accelerated nginx compress pages; compares CPU time and size. The result is a table, and hasten-report.html \
with a plot of speed and compression and hasten-report.json beside it.")]
pub(super) struct GzipArgs {
    /// Only levels 1, 6 and 9, and 10 KB and 100 KB from nginx at levels 1 and 6, in shorter rounds
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    against: Against,

    /// Only the libraries, or only nginx
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ["library", "nginx"])]
    part: Option<Vec<String>>,

    /// Only these libraries
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = engine_parser())]
    engine: Option<Vec<Engine>>,

    /// Only these levels
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=9))]
    level: Option<Vec<u8>>,

    /// Only these sizes of what nginx sends
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size_parser())]
    size: Option<Vec<Size>>,
}

/// What `bench gzip` starts to run one engine in
#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    #[arg(value_parser = worker_parser())]
    engine: Engine,
}

/// A size of a body with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) &'static str, pub(super) usize);

const SIZES: [Size; 4] =
    [Size("1KB", 1 << 10), Size("10KB", 10 << 10), Size("100KB", 100 << 10), Size("1MB", 1 << 20)];

pub(super) fn run(args: &GzipArgs) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    let (report, saved) = measure(args, &interrupted)?;
    finish(&args.output, &report, &saved, &interrupted)
}

pub(super) fn measure(
    args: &GzipArgs,
    interrupted: &AtomicBool,
) -> Result<(Report<GzipCase>, Saved), Failure> {
    let options = Options {
        baseline: args.against.baseline()?,
        matrix: args.matrix()?,
        paces: if args.quick { Paces::quick() } else { Paces::full() },
        hasten: own_program()?,
        library: library(),
        out: args.output.out.clone(),
        command: args.command_line(),
    };
    Ok(gzip::run(&options, interrupted)?)
}

pub(super) fn work(args: &WorkerArgs) -> Result<ExitCode, Failure> {
    let worked = gzip::worker::serve(args.engine, BufReader::new(io::stdin()), io::stdout());
    worked.map_err(|error| Failure::new(error.to_string(), "run `hasten bench gzip`, which starts it"))?;
    Ok(ExitCode::SUCCESS)
}

impl GzipArgs {
    /// The quick variant, as for `--quick`.
    pub(super) fn quick(out: PathBuf) -> Self {
        Self {
            quick: true,
            output: Output { json: false, out },
            against: Against { against: None },
            part: None,
            engine: None,
            level: None,
            size: None,
        }
    }

    fn matrix(&self) -> Result<Matrix, Failure> {
        let preset = if self.quick { Matrix::quick() } else { Matrix::full() };
        let wants = |part: &str| self.part.as_ref().is_none_or(|parts| parts.iter().any(|one| one == part));
        let mut matrix = Matrix {
            engines: self.engine.clone().unwrap_or(if self.against.against.is_some() {
                vec![Engine::Hasten]
            } else {
                preset.engines
            }),
            library_levels: self.level.clone().unwrap_or(preset.library_levels),
            sizes: self.size.as_ref().map_or(preset.sizes, |sizes| sizes.iter().map(|size| size.1).collect()),
            server_levels: self.level.clone().unwrap_or(preset.server_levels),
        };
        if !wants("library") {
            matrix.engines.clear();
        }
        if !wants("nginx") {
            matrix.sizes.clear();
        } else {
            ServerKind::Nginx
                .program()
                .map_err(|missing| Failure::new(missing.to_string(), missing.fix()))?;
        }
        Ok(matrix)
    }

    /// The command line that repeats this run.
    fn command_line(&self) -> String {
        let mut line = "hasten bench gzip".to_owned();
        if self.quick {
            line += " --quick";
        }
        let sizes = self.size.as_ref().map(|sizes| sizes.iter().map(|size| size.0.to_owned()).collect());
        line + &list("part", self.part.clone())
            + &list("engine", texts(self.engine.as_deref()))
            + &list("level", texts(self.level.as_deref()))
            + &list("size", sizes)
            + &self.against.flag()
    }
}

/// What `hasten run` would preload; `None` if this host or its administrator prevents it.
fn library() -> Option<PathBuf> {
    let config = Config::load(None).unwrap_or_default();
    let verdicts = host_verdicts(&Probe::new().cpu(), &config, &Surroundings::current());
    let ours = verdicts.into_iter().find(|verdict| verdict.name == "gzip");
    ours.filter(|verdict| verdict.decision != Decision::Skip).and_then(|verdict| verdict.library)
}

fn engine_parser() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::COMPARED.map(Engine::as_str)).try_map(|name| name.parse())
}

fn worker_parser() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.map(Engine::as_str)).try_map(|name| name.parse())
}

pub(super) fn size_parser() -> impl TypedValueParser<Value = Size> {
    PossibleValuesParser::new(SIZES.map(|size| size.0)).try_map(|name| {
        SIZES.into_iter().find(|size| size.0 == name).ok_or_else(|| format!("unknown size {name}"))
    })
}
