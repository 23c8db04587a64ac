//! The `hasten` command: parsing and wiring only.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod failure;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Run(args) => cmd::run::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
