//! `cargo xtask`: checks of the repository as a whole, and generated files.

#![forbid(unsafe_code)]

mod envoy;
mod error;
mod hooks;
mod layering;
mod notices;
mod profile;
mod results;
mod slowest;
mod source;
mod symbols;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::workspace::Workspace;

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", about = "Checks and generated files of the repository")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check that dependencies point one way, that only probe knows servers, and that unsafe stays where it belongs
    Layering,
    /// Compare what the preload libraries export and link with the golden lists
    Symbols {
        /// Accept what is there now as the golden lists
        #[arg(long)]
        bless: bool,
    },
    /// Write docs/hooks.md from the hook tables inside the preload libraries
    Hooks {
        /// Only check that it is up to date
        #[arg(long)]
        check: bool,
    },
    /// Write the measured tables of the documents from docs/results
    Results(results::ResultsArgs),
    /// Run all tests, several programs at a time
    Test(test::TestArgs),
    /// Print the ten slowest tests of a run
    Slowest(slowest::SlowestArgs),
    /// Write the table of known builds of Envoy from the builds
    Envoy(envoy::EnvoyArgs),
    /// Print the licences of everything that is linked into what we ship
    Notices,
}

fn main() -> ExitCode {
    let task = Args::parse().task;
    match Workspace::load().and_then(|workspace| run(&task, &workspace)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task, workspace: &Workspace) -> Result<(), Error> {
    match task {
        Task::Layering => layering::check(workspace),
        Task::Symbols { bless } => symbols::run(workspace, *bless),
        Task::Hooks { check } => hooks::run(workspace, *check),
        Task::Results(args) => results::run(workspace, args),
        Task::Test(args) => test::run(args),
        Task::Slowest(args) => slowest::run(args),
        Task::Envoy(args) => envoy::run(workspace, args),
        Task::Notices => notices::print(workspace),
    }
}
