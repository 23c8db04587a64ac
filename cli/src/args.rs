//! The one definition from which help, completions and the man page are made.

use clap::{Parser, Subcommand};

use crate::cmd;

const EXAMPLES: &str = "\
Examples:
  hasten run -- nginx                 start nginx with its TLS handshakes accelerated
  hasten run --dry-run -- nginx       say what would be done, and why
";

#[derive(Debug, Parser)]
#[command(name = "hasten", version, about, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(cmd::run::RunArgs),
}
