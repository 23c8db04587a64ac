//! The `hasten` command: parsing and wiring only.

#![forbid(unsafe_code)]
// The macros panic if they cannot write: `output::print` and `render::say` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod choice;
mod cmd;
mod denied;
mod failure;
mod output;
mod render;
mod usage;

use std::process::ExitCode;

use crate::args::Command;

fn main() -> ExitCode {
    let command = match usage::parse(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(args) => args.command,
        Err(ended) => return ended,
    };
    // Before anything else: undo what a killed `hasten tune` has left.
    for replayed in hasten_tune::journal::replay() {
        render::say(format_args!("hasten: {replayed}"));
    }
    let outcome = match command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Enable(args) => cmd::enable::run(&args),
        Command::Disable(args) => cmd::disable::run(&args),
        Command::Status(args) => cmd::status::run(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Engine(args) => cmd::engine::run(&args),
        Command::Selftest(args) => cmd::selftest::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Gc(args) => cmd::gc::run(&args),
        Command::Core(args) => cmd::core::run(&args),
        Command::Snapshot(args) => cmd::snapshot::run(&args),
        Command::Tune(args) => cmd::tune::run(&args),
        Command::Wal(args) => cmd::wal::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
