//! The Node.js workloads: stock against `hasten run` on the same Node.js binary.
//!
//! Workloads that are processes are started repeatedly; workloads that are servers drive two that run side by side,
//! after a warm-up whose trace yields the second one's options. Rounds go A B B A …, as everywhere.

mod advice;
mod app;
mod case;
mod error;
mod ghost;
mod http;
mod install;
mod matrix;
mod programs;
mod recipe;
mod runtime;
mod server;
mod subject;
mod tuning;

use std::path::PathBuf;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use hasten_evidence::report::{Case, Host, Report, Saved, Text};
use hasten_evidence::warning::Warning;

use crate::affinity::Placement;
use crate::error::BenchError;
use crate::host;
use crate::progress::Progress;
use crate::server::ServerKind;

pub use self::app::App;
pub use self::case::{NodeCase, UnknownWorkload, Workload};
pub use self::error::NodeError;
pub use self::install::install;
pub use self::matrix::{Matrix, Paces};
pub use self::runtime::{Runtime, Version};
pub use self::tuning::Tuning;

use self::subject::Prepared;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub matrix: Matrix,
    pub paces: Paces,
    /// The `hasten` command that starts the accelerated side.
    pub hasten: PathBuf,
    /// Where installed workloads are kept: hasten's cache folder.
    pub cache: PathBuf,
    /// Where the report goes.
    pub out: PathBuf,
    /// The command line that repeats this run.
    pub command: String,
}

/// Whether everything that `workload` needs besides Node.js is installed.
pub fn requirements(workload: Workload) -> Result<(), BenchError> {
    runtime::npm()?;
    if workload.is_ghost() {
        ghost::requirements()?;
        ServerKind::Nginx.program().map_err(crate::server::ServerError::from)?;
    }
    Ok(())
}

/// Runs all rows, or as many as finish before `interrupted`; the report is saved after each.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<(Report<NodeCase>, Saved), BenchError> {
    let placement = Placement::of_this_machine();
    let stopped = || interrupted.load(Ordering::Relaxed);
    let (cases, left_out) = options.matrix.cases(crate::affinity::allowed().len());
    if cases.is_empty() {
        let node = options.matrix.runtimes.first().map(|runtime| runtime.version.to_string());
        return Err(NodeError::GhostVersion { node: node.unwrap_or_default() }.into());
    }
    let mut report = empty_report(options, &placement);
    report.warnings.extend(left_out.into_iter().map(|(what, why)| Warning::Missing { what, why }));
    let mut saved = report.save(&options.out)?;
    install_all(options, &stopped)?;

    let estimate = cases.iter().map(|(case, _)| options.paces.estimate(case.workload)).sum();
    let mut progress = Progress::start(cases.len(), estimate);
    let (mut finished, count) = (0, cases.len());
    for (case, runtime) in cases {
        if stopped() {
            break;
        }
        progress.row(&case.title());
        let preparation =
            subject::Preparation { options, runtime: &runtime, placement: &placement, stopped: &stopped };
        let row = match preparation.prepare(case) {
            Ok(Prepared::Subject(subject, warning)) => {
                add_once(&mut report.warnings, warning);
                subject.row(&options.paces, &progress, &stopped)?
            }
            Ok(Prepared::NothingToMeasure(warning)) => {
                add_once(&mut report.warnings, Some(warning));
                finished += 1;
                continue;
            }
            Err(BenchError::Node(NodeError::Stopped)) => None,
            Err(error) => return Err(error),
        };
        let Some(row) = row else { break };
        progress.finish_rows(slice::from_ref(&row));
        report.rows.push(row);
        finished += 1;
        saved = report.save(&options.out)?;
    }
    progress.finish();
    report.complete = finished == count;
    saved = report.save(&options.out).unwrap_or(saved);
    Ok((report, saved))
}

/// Before anything is measured, so that the estimate holds.
fn install_all(options: &Options, stopped: &dyn Fn() -> bool) -> Result<(), BenchError> {
    let Some(runtime) = options.matrix.runtimes.first() else { return Ok(()) };
    for &workload in &options.matrix.workloads {
        match install(&App::of(workload), &options.cache, runtime, stopped) {
            Err(NodeError::Stopped) => break,
            installed => installed?,
        };
    }
    Ok(())
}

fn add_once(warnings: &mut Vec<Warning>, warning: Option<Warning>) {
    warnings.extend(warning.filter(|warning| !warnings.contains(warning)));
}

const METHOD: &str = "The same Node.js binary on both sides, NODE_ENV=production, on any CPU. faas-startup and \
    web-tooling: an operation is a process from start to end, CPU is its user and system time, and the second side's \
    start-up cache was recorded before. react-ssr and json-api: an operation is one request on one of 16 or 64 \
    connections that stay open, in a closed loop; CPU is the scheduler's time of all threads, kernel included; the \
    second side has the options that the advice for a trace of this load names, if any. Ghost: the front page through \
    nginx, compressed on connections that stay open (http) or with a TLS handshake for each (https); CPU is that of \
    Ghost and nginx, and both share one MariaDB. Every answer must be the expected one. Rounds alternate A B B A. The \
    interval is a BCa bootstrap of the trimmed mean of the pairs' logarithmic ratios.";

const TUNINGS: &str = "Each tuning alone, against the same Node.js binary without it; of short-builtin-calls, which \
    is on by default, the first side has it off. Otherwise: ";

fn empty_report(options: &Options, placement: &Placement) -> Report<NodeCase> {
    let tunings = !options.matrix.tunings.is_empty();
    let next = [
        ("hasten run -- node app.js", "Start your own program accelerated; nothing else changes"),
        ("hasten check -- node", "See what applies to this Node.js, and why"),
        ("hasten gc record PID --for 60s", "Record a server's garbage collections, and get advice"),
    ];
    Report {
        host: facts(options, placement),
        workload: if tunings { "node-tunings" } else { "node" },
        text: Text {
            title: if tunings { "Node.js, tuning by tuning" } else { "Node.js" }.to_owned(),
            unit: "operation".to_owned(),
            method: if tunings { format!("{TUNINGS}{METHOD}") } else { METHOD.to_owned() },
            reproduce: vec![options.command.clone()],
            next: next.map(|(command, why)| (command.to_owned(), why.to_owned())).to_vec(),
        },
        complete: false,
        rows: Vec::new(),
        warnings: placement.shared_core.then_some(Warning::SharedCore).into_iter().collect(),
    }
}

fn facts(options: &Options, placement: &Placement) -> Host {
    let ghost = options.matrix.workloads.iter().any(|workload| workload.is_ghost());
    let servers = if ghost { &[ServerKind::Nginx][..] } else { &[] };
    let Host(mut facts) = host::facts(servers, placement);
    let place = facts.iter().position(|(name, _)| *name == "hasten").unwrap_or(facts.len());
    let versions: Vec<_> =
        options.matrix.runtimes.iter().map(|runtime| runtime.version.to_string()).collect();
    facts.insert(place, ("node", versions.join(", ")));
    let drivers: Vec<_> = placement.driver.iter().map(ToString::to_string).collect();
    for (name, value) in &mut facts {
        if *name == "placement" && !drivers.is_empty() {
            *value = format!("Node.js on any CPU, driver on CPU {}", drivers.join(", "));
        }
    }
    Host(facts)
}
