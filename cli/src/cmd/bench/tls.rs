//! `hasten bench tls`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{Group, Protocol};
use hasten_bench::server::{MissingProgram, ServerKind};
use hasten_bench::tls::{self, Matrix, Options, Pace, Tickets, TlsCase};
use hasten_evidence::report::{Report, Saved};
use hasten_openssl::{AWS_LC, Series};

use hasten_plan::{Plan, Side, Surroundings};
use hasten_probe::{Environment, Probe, Program};

use super::{Against, Output, finish, list, own_program, texts, watch};
use crate::choice::Choice;
use crate::failure::Failure;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  hasten bench tls --quick                              nginx on TLS 1.3, about a minute
  hasten bench tls                                      everything, HAProxy too if it is installed
  hasten bench tls --server envoy                       an official build of Envoy, on PATH
  hasten bench tls --server haproxy-aws-lc              another TLS library beside hasten: see docs/bench.md
  hasten bench tls --cert p-256 --concurrency 1,8,64    a matrix of your own
  hasten bench tls --against /opt/hasten-0.1            two builds of hasten
  hasten bench tls --quick --json | jq '.rows[] | {cert, concurrency, ratio: .cpu_ratio.value, verdict}'

Nothing is changed on this machine: the servers run from a temporary directory on loopback ports. Use a machine at
rest; what disturbs the measurement is named in the result.

The exit code is 1 when any operation failed, and 130 after Ctrl-C; finished rows are kept.
";

/// Full TLS handshakes against nginx, HAProxy and Envoy
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Starts the distribution's own servers twice, stock and behind `hasten run`, drives both in turn with full TLS \
handshakes, and compares the CPU time that a handshake costs them. The result is a table, and hasten-report.html and \
hasten-report.json beside it.")]
pub(super) struct TlsArgs {
    /// Only nginx on TLS 1.3 with 1 and 256 connections, in shorter rounds
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    against: Against,

    /// Only these servers; Envoy, and HAProxy on AWS-LC beside stock and accelerated HAProxy, only if named and on PATH
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = server_parser())]
    server: Option<Vec<ServerKind>>,

    /// Only these certificates
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cert_parser())]
    cert: Option<Vec<KeyKind>>,

    /// Only these protocols
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = protocol_parser())]
    protocol: Option<Vec<Protocol>>,

    /// Groups of the key exchange, x25519 if none is named; hybrids need TLS 1.3 and a server with OpenSSL 3.5 or later
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = group_parser())]
    group: Option<Vec<Group>>,

    /// Hide AVX-512 from OpenSSL and hasten, to measure what a CPU with AVX2 alone gains
    #[arg(long)]
    hide_avx512: bool,

    /// In TLS 1.3, only servers with or without session tickets
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = tickets_parser())]
    tickets: Option<Vec<Tickets>>,

    /// Only these numbers of connections
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = connections)]
    concurrency: Option<Vec<usize>>,
}

pub(super) fn run(args: &TlsArgs) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    let (report, saved) = measure(args, &interrupted)?;
    finish(&args.output, &report, &saved, &interrupted)
}

pub(super) fn measure(args: &TlsArgs, interrupted: &AtomicBool) -> Result<(Report<TlsCase>, Saved), Failure> {
    let options = Options {
        baseline: args.against.baseline()?,
        matrix: args.matrix()?,
        hide_avx512: args.hide_avx512,
        pace: if args.quick { Pace::quick() } else { Pace::full() },
        hasten: own_program()?,
        out: args.output.out.clone(),
        command: args.command_line(),
    };
    Ok(tls::run(&options, interrupted)?)
}

impl TlsArgs {
    /// The quick variant, as for `--quick`.
    pub(super) fn quick(out: PathBuf) -> Self {
        Self {
            quick: true,
            output: Output { json: false, out },
            against: Against { against: None },
            server: None,
            cert: None,
            protocol: None,
            group: None,
            hide_avx512: false,
            tickets: None,
            concurrency: None,
        }
    }

    fn matrix(&self) -> Result<Matrix, Failure> {
        let preset = if self.quick { Matrix::quick() } else { Matrix::full() };
        let servers = match &self.server {
            Some(servers) => servers.clone(),
            None => installed(preset.servers),
        };
        for server in servers.iter().flat_map(|server| [*server, server.accelerated()]) {
            server.program().map_err(|missing| Failure::new(missing.to_string(), missing.fix()))?;
            if server == ServerKind::HaproxyAwsLc {
                links_aws_lc(server)?;
            }
            if self.group.iter().flatten().any(|group| group.is_hybrid()) {
                has_hybrids(server)?;
            }
        }
        Ok(Matrix {
            servers: accelerated(servers)?,
            certs: self.cert.clone().unwrap_or(preset.certs),
            protocols: self.protocol.clone().unwrap_or(preset.protocols),
            groups: self.group.clone().unwrap_or(preset.groups),
            tickets: self.tickets.clone().unwrap_or(preset.tickets),
            concurrencies: self.concurrency.clone().unwrap_or(preset.concurrencies),
        })
    }

    /// The command line that repeats this run.
    fn command_line(&self) -> String {
        let mut line = "hasten bench tls".to_owned();
        if self.quick {
            line += " --quick";
        }
        line + &list("server", texts(self.server.as_deref()))
            + &list("cert", texts(self.cert.as_deref()))
            + &list("protocol", texts(self.protocol.as_deref()))
            + &list("group", texts(self.group.as_deref()))
            + if self.hide_avx512 { " --hide-avx512" } else { "" }
            + &list("tickets", texts(self.tickets.as_deref()))
            + &list("concurrency", texts(self.concurrency.as_deref()))
            + &self.against.flag()
    }
}

/// All servers of a preset except missing optional ones.
fn installed(servers: Vec<ServerKind>) -> Vec<ServerKind> {
    let wanted = |server: &ServerKind| match server.program() {
        Err(missing) if *server != ServerKind::Nginx => {
            say(format!("{missing} and is left out; {} to include it", missing.fix()));
            false
        }
        _ => true,
    };
    servers.into_iter().filter(wanted).collect()
}

/// The servers that `hasten run` would accelerate: any other would be compared with itself.
fn accelerated(servers: Vec<ServerKind>) -> Result<Vec<ServerKind>, Failure> {
    if Surroundings::current().disables("tls") {
        say("HASTEN_DISABLE switches tls off: both sides run as they are, and what differs is noise");
    }
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for server in servers {
        match must_be_on(server) {
            Ok(()) => on.push(server),
            Err(failure) => off.push(failure),
        }
    }
    if on.is_empty() && !off.is_empty() {
        return Err(off.swap_remove(0));
    }
    off.iter().for_each(Failure::tell);
    Ok(on)
}

/// Otherwise OpenSSL would be compared with itself.
fn links_aws_lc(server: ServerKind) -> Result<(), Failure> {
    let version = libssl(server)?.unwrap_or_else(|| "no libssl".to_owned());
    if version.starts_with(AWS_LC) {
        return Ok(());
    }
    Err(Failure::new(
        format!("{server} links {version}, not {AWS_LC}"),
        MissingProgram { program: server.to_string() }.fix(),
    ))
}

/// The version of the libssl that a server links, if it is known.
fn libssl(server: ServerKind) -> Result<Option<String>, Failure> {
    let path = server.program().map_err(|missing| Failure::new(missing.to_string(), missing.fix()))?;
    let program = Program::inspect(path.as_os_str(), &Environment::current()).map_err(Failure::lookup)?;
    Ok(program.library("libssl.so").and_then(|library| library.version.clone()))
}

/// Without the group, all handshakes would fail.
fn has_hybrids(server: ServerKind) -> Result<(), Failure> {
    let version = libssl(server)?;
    match version.filter(|version| Series::of_text(version).is_some_and(|series| !series.has_hybrids())) {
        None => Ok(()),
        Some(version) => Err(Failure::new(
            format!("{server} uses {version}, which has no hybrid groups"),
            "leave them out of --group, or measure where the server uses OpenSSL 3.5 or later".to_owned(),
        )),
    }
}

/// Uses the same plan as the `hasten run` that will start the server.
pub(super) fn must_be_on(server: ServerKind) -> Result<(), Failure> {
    let server = server.accelerated();
    let path = server.program().map_err(|missing| Failure::new(missing.to_string(), missing.fix()))?;
    let program = Program::inspect(path.as_os_str(), &Environment::current()).map_err(Failure::lookup)?;
    let config = Choice::of_environment()?;
    let plan = Plan::new(&Probe::new().cpu(), &program, &config, &Surroundings::current());
    let accelerator = if server == ServerKind::Envoy { "envoy" } else { "tls" };
    let Some(verdict) = plan.verdict(accelerator).filter(|verdict| !verdict.is_loaded()) else {
        return Ok(());
    };
    // A user who switches it off by hand wants to see what noise alone makes of two equal servers (docs/bench.md).
    if Surroundings::current().disables("tls") {
        return Ok(());
    }
    let why: Vec<&str> = verdict.reasons(Side::Against).map(|reason| reason.text.as_str()).collect();
    let fix = verdict.reasons(Side::Against).find_map(|reason| reason.fix.clone());
    Err(Failure::new(
        format!("{accelerator} is off for {server} here, so there is nothing to compare: {}", why.join("; ")),
        fix.unwrap_or_else(|| format!("see all reasons with `hasten check -- {server}`")),
    ))
}

fn server_parser() -> impl TypedValueParser<Value = ServerKind> {
    PossibleValuesParser::new(ServerKind::KNOWN.map(ServerKind::as_str)).try_map(|name| name.parse())
}

fn cert_parser() -> impl TypedValueParser<Value = KeyKind> {
    PossibleValuesParser::new(KeyKind::ALL.map(KeyKind::as_str)).try_map(|name| name.parse())
}

fn protocol_parser() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(["tls1.3", "tls1.2"]).try_map(|name| name.parse())
}

fn group_parser() -> impl TypedValueParser<Value = Group> {
    PossibleValuesParser::new(Group::ALL.map(Group::as_str)).try_map(|name| name.parse())
}

fn tickets_parser() -> impl TypedValueParser<Value = Tickets> {
    PossibleValuesParser::new(["on", "off"]).map(|name| if name == "on" { Tickets::On } else { Tickets::Off })
}

/// More than that needs more ports and descriptors than a loopback pair has.
pub(super) fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(connections @ 1..=4000) => Ok(connections),
        _ => Err("use a number from 1 to 4000".to_owned()),
    }
}
