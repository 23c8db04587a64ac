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
    let command = Args::parse().command;
    // `run` must survive to start its command, and `bench` drives sockets.
    if !matches!(command, Command::Run(_) | Command::Bench(_)) {
        hasten_exec::die_on_broken_pipe();
    }
    let outcome = match command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Completions(args) => Ok(cmd::completions::run(&args)),
        Command::Man(args) => cmd::man::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
