//! The `hasten` command: parsing and wiring only.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod denied;
mod failure;
mod render;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let command = Args::parse().command;
    // Not `run`, which goes on to start its command, nor what drives sockets or handles it by itself.
    if matches!(command, Command::Check(_) | Command::Completions(_) | Command::Man(_)) {
        hasten_exec::die_on_broken_pipe();
    }
    // Before anything else: what a `hasten tune` that was killed has left.
    for replayed in hasten_tune::journal::replay() {
        render::say(format_args!("hasten: {replayed}"));
    }
    let outcome = match command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Engine(args) => cmd::engine::run(&args),
        Command::Selftest(args) => cmd::selftest::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Gc(args) => cmd::gc::run(&args),
        Command::Tune(args) => cmd::tune::run(&args),
        Command::Completions(args) => Ok(cmd::completions::run(&args)),
        Command::Man(args) => cmd::man::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
