//! `hasten gc`: what garbage collection costs a Node.js program, and what would make it cost less.

mod record;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Read traces of V8's garbage collection: pauses, heap, leaks, advice
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_required = true)]
pub(crate) struct GcArgs {
    #[command(subcommand)]
    command: Option<GcCommand>,
}

#[derive(Debug, Subcommand)]
enum GcCommand {
    Record(record::RecordArgs),
}

pub(crate) fn run(args: &GcArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(GcCommand::Record(args)) => record::run(args),
        None => unreachable!("clap asks for a subcommand"),
    }
}
