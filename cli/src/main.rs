//! The `hasten` command: parsing and wiring only.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod failure;
mod render;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::Completions(args) => Ok(cmd::completions::run(&args)),
        Command::Man(args) => cmd::man::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
