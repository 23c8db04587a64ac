//! `hasten bench`: stock against accelerated, measured on this machine.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::Protocol;
use hasten_bench::interrupt;
use hasten_bench::server::ServerKind;
use hasten_bench::tls::{self, BenchError, Matrix, Options, Pace, TlsCase};
use hasten_evidence::report::{Report, Saved, Style};
use hasten_evidence::verdict::Verdict;

use crate::failure::Failure;

/// As a shell reports a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Measure stock against accelerated servers on this machine
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    Tls(TlsArgs),
}

const EXAMPLES: &str = "\
Examples:
  hasten bench tls --quick                              nginx on TLS 1.3, about a minute
  hasten bench tls                                      everything, HAProxy too if it is installed
  hasten bench tls --cert p-256 --concurrency 1,8,64    a matrix of your own
  hasten bench tls --quick --json | jq '.rows[] | {cert, concurrency, ratio: .cpu_ratio.value, verdict}'

Nothing is changed on this machine: the servers run from a temporary directory on loopback ports. Use a machine at
rest; what disturbs the measurement is named in the result.

The exit code is 1 when any operation failed, and 130 after Ctrl-C; finished rows are kept.
";

/// Full TLS handshakes against nginx and HAProxy
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Starts the distribution's own servers twice, stock and behind `hasten run`, drives both in turn with full TLS \
handshakes, and compares the CPU time that a handshake costs them. The result is a table, and hasten-report.html and \
hasten-report.json beside it.")]
struct TlsArgs {
    /// Only nginx on TLS 1.3 with 1 and 256 connections, in shorter rounds
    #[arg(long)]
    quick: bool,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Directory of the report
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// Only these servers
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = server_parser())]
    server: Option<Vec<ServerKind>>,

    /// Only these certificates
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cert_parser())]
    cert: Option<Vec<KeyKind>>,

    /// Only these protocols
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = protocol_parser())]
    protocol: Option<Vec<Protocol>>,

    /// Only these numbers of connections
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = connections)]
    concurrency: Option<Vec<usize>>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.workload {
        Workload::Tls(args) => tls(args),
    }
}

fn tls(args: &TlsArgs) -> Result<ExitCode, Failure> {
    let hasten = std::env::current_exe().map_err(|error| {
        Failure::new(format!("cannot find my own program: {error}"), "call it by its full path")
    })?;
    let interrupted = interrupt::flag()
        .map_err(|error| Failure::new(format!("cannot watch for Ctrl-C: {error}"), "try again"))?;
    let options = Options {
        matrix: args.matrix()?,
        pace: if args.quick { Pace::quick() } else { Pace::full() },
        hasten,
        out: args.out.clone(),
        command: args.command_line(),
    };
    let (report, saved) = tls::run(&options, &interrupted)?;
    args.print(&report, &saved)?;
    let failed = report.rows.iter().any(|row| row.verdict == Verdict::Failed);
    Ok(match () {
        () if interrupted.load(Ordering::Relaxed) => ExitCode::from(INTERRUPTED),
        () if failed => ExitCode::FAILURE,
        () => ExitCode::SUCCESS,
    })
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

impl TlsArgs {
    fn matrix(&self) -> Result<Matrix, Failure> {
        let preset = if self.quick { Matrix::quick() } else { Matrix::full() };
        let servers = match &self.server {
            Some(servers) => servers.clone(),
            None => installed(preset.servers),
        };
        for server in &servers {
            server.program().map_err(|missing| Failure::new(missing.to_string(), missing.fix()))?;
        }
        Ok(Matrix {
            servers,
            certs: self.cert.clone().unwrap_or(preset.certs),
            protocols: self.protocol.clone().unwrap_or(preset.protocols),
            concurrencies: self.concurrency.clone().unwrap_or(preset.concurrencies),
        })
    }

    /// What the reader types to repeat this run.
    fn command_line(&self) -> String {
        let mut line = "hasten bench tls".to_owned();
        if self.quick {
            line += " --quick";
        }
        let mut list = |flag: &str, values: Option<Vec<String>>| {
            if let Some(values) = values {
                line += &format!(" --{flag} {}", values.join(","));
            }
        };
        list("server", texts(self.server.as_deref()));
        list("cert", texts(self.cert.as_deref()));
        list("protocol", texts(self.protocol.as_deref()));
        list("concurrency", texts(self.concurrency.as_deref()));
        line
    }

    /// The result goes to standard output, and nothing but the result if it is JSON.
    fn print(&self, report: &Report<TlsCase>, saved: &Saved) -> Result<(), Failure> {
        if self.json {
            print!("{}", report.json().map_err(BenchError::from)?);
            eprintln!("{}", paths(saved));
            return Ok(());
        }
        println!("{}\n{}.\n", report.headline(), report.tally());
        println!("{}", report.table(style()));
        println!("{}\n\nThree commands to try next:", paths(saved));
        for (command, why) in &report.text.next {
            println!("  {command:<26} {why}");
        }
        Ok(())
    }
}

/// All servers of a preset but the optional ones that are missing.
fn installed(servers: Vec<ServerKind>) -> Vec<ServerKind> {
    let wanted = |server: &ServerKind| match server.program() {
        Err(missing) if *server != ServerKind::Nginx => {
            eprintln!("{missing} and is left out; {} to include it", missing.fix());
            false
        }
        _ => true,
    };
    servers.into_iter().filter(wanted).collect()
}

fn paths(saved: &Saved) -> String {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    format!("Report: {}\nData:   {}", absolute(&saved.html).display(), absolute(&saved.json).display())
}

/// Colours only on a terminal, and never with `NO_COLOR`; a pipe gets the full width.
fn style() -> Style {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let terminal = std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.or_else(|| terminal.then(terminal_width).flatten());
    Style { color: terminal && !forbidden, width }
}

fn terminal_width() -> Option<u16> {
    // A terminal that does not know its size says 0.
    comfy_table::Table::new().width().filter(|&width| width > 0)
}

fn texts<T: ToString>(values: Option<&[T]>) -> Option<Vec<String>> {
    values.map(|values| values.iter().map(T::to_string).collect())
}

fn server_parser() -> impl TypedValueParser<Value = ServerKind> {
    PossibleValuesParser::new(ServerKind::ALL.map(ServerKind::as_str)).try_map(|name| name.parse())
}

fn cert_parser() -> impl TypedValueParser<Value = KeyKind> {
    PossibleValuesParser::new(KeyKind::ALL.map(KeyKind::as_str)).try_map(|name| name.parse())
}

fn protocol_parser() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(["tls1.3", "tls1.2"]).try_map(|name| name.parse())
}

/// More than that needs more ports and descriptors than a loopback pair has.
fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(connections @ 1..=4000) => Ok(connections),
        _ => Err("use a number from 1 to 4000".to_owned()),
    }
}
