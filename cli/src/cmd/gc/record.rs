//! `hasten gc record`: collections of a running process.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

/// Record the garbage collections of a running Node.js process
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
}

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    Err(Failure::new(
        format!("process {} has no recorder", args.pid),
        "start it with `node --trace-gc app.js > gc.log`",
    ))
}
