//! Reading the command line, and what is said where it is wrong or asks for help.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::failure::Failure;
use crate::output::read_or_not;

/// What the words ask for; if nothing is left to do, how the process ends.
pub(crate) fn parse(words: &[OsString]) -> Result<Args, ExitCode> {
    Args::try_parse_from(words).map_err(|error| end(&error))
}

fn end(error: &clap::Error) -> ExitCode {
    let printed = read_or_not(error.print().and_then(|()| io::stdout().flush()));
    match printed {
        // Help and version are what was asked for; an error that nobody can read is still one.
        Err(full) if !error.use_stderr() => Failure::output(full).report(),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX)),
    }
}
