//! `hasten completions`: a shell script that completes `hasten`'s commands and flags.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "\
Examples:
  hasten completions bash > /etc/bash_completion.d/hasten
  hasten completions zsh  > \"${fpath[1]}/_hasten\"
  hasten completions fish > ~/.config/fish/completions/hasten.fish
";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    // Not directly to standard output: clap panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::Args::command(), "hasten", &mut script);
    print(&String::from_utf8_lossy(&script)).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}
