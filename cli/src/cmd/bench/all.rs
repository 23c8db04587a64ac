//! `hasten bench` without a workload: all of them, quickly, on one page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use hasten_bench::BenchError;
use hasten_bench::node::{self, Matrix, Runtime};
use hasten_bench::server::{ServerError, ServerKind};
use hasten_evidence::report::{Case, LeftOut, Overview, Part, Report, Saved};

use super::{INTERRUPTED, Output, gzip, paths, style, tls, watch};
use crate::failure::Failure;
use crate::output;
use crate::render::say;

/// A workload: its name, whether its programs are installed, and how it is measured into a directory.
struct Workload {
    name: &'static str,
    requirements: fn() -> Result<(), Failure>,
    measure: fn(PathBuf, &AtomicBool) -> Result<Part, Failure>,
}

const ALL: [Workload; 3] = [
    Workload {
        name: "tls",
        requirements: nginx_with_tls,
        measure: |out, interrupted| part(tls::measure(&tls::TlsArgs::quick(out), interrupted)?, "tls"),
    },
    Workload {
        name: "gzip",
        requirements: nginx,
        measure: |out, interrupted| part(gzip::measure(&gzip::GzipArgs::quick(out), interrupted)?, "gzip"),
    },
    Workload {
        name: "node",
        requirements: node_and_npm,
        measure: |out, interrupted| {
            part(super::node::measure(&super::node::NodeArgs::quick(out), interrupted)?, "node")
        },
    },
];

pub(super) fn run(output: &Output) -> Result<ExitCode, Failure> {
    let interrupted = watch()?;
    let mut overview = Overview { command: "hasten bench".to_owned(), ..Overview::default() };
    let mut broken = false;
    for workload in ALL.iter().take_while(|_| !interrupted.load(Ordering::Relaxed)) {
        if let Err(missing) = (workload.requirements)() {
            overview.left_out.push(left_out(workload, missing));
            continue;
        }
        say(format!("hasten bench {} --quick", workload.name));
        match (workload.measure)(output.out.join(workload.name), &interrupted) {
            Ok(part) => overview.parts.push(part),
            Err(failure) => {
                broken = true;
                failure.report();
                overview.left_out.push(left_out(workload, failure));
            }
        }
    }
    let was_interrupted = interrupted.load(Ordering::Relaxed);
    overview.complete = !was_interrupted;
    let saved = overview.save(&output.out).map_err(BenchError::from)?;
    print(output, &overview, &saved)?;
    Ok(match () {
        () if was_interrupted => ExitCode::from(INTERRUPTED),
        () if broken || overview.has_failures() || overview.parts.is_empty() => ExitCode::FAILURE,
        () => ExitCode::SUCCESS,
    })
}

fn part<C: Case>((report, _): (Report<C>, Saved), directory: &str) -> Result<Part, Failure> {
    let page = Path::new(directory).join("hasten-report.html");
    Ok(Part::of(&report, &page, style()).map_err(BenchError::from)?)
}

fn left_out(workload: &Workload, failure: Failure) -> LeftOut {
    let (why, fix) = failure.into_words();
    LeftOut { workload: workload.name.to_owned(), why, fix }
}

fn nginx() -> Result<(), Failure> {
    ServerKind::Nginx.program().map_err(ServerError::from).map_err(BenchError::from)?;
    Ok(())
}

fn nginx_with_tls() -> Result<(), Failure> {
    nginx()?;
    tls::must_be_on(ServerKind::Nginx)
}

fn node_and_npm() -> Result<(), Failure> {
    Runtime::of_path().map_err(BenchError::from)?;
    Ok(Matrix::QUICK.into_iter().try_for_each(node::requirements)?)
}

/// The result goes to standard output; with JSON, nothing else does.
fn print(wanted: &Output, overview: &Overview, saved: &Saved) -> Result<(), Failure> {
    if wanted.json {
        output::print(&overview.json().map_err(BenchError::from)?).map_err(Failure::output)?;
        say(paths(saved));
        return Ok(());
    }
    let text = format!("{}.\n\n{}\n{}\n", overview.headline(), overview.terminal(), paths(saved));
    output::print(&text).map_err(Failure::output)
}
