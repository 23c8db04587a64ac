//! The one definition from which help, completions and the man page are made.

use clap::{Parser, Subcommand};

use crate::cmd;

const EXAMPLES: &str = "\
Examples:
  hasten check -- nginx               what would be done to nginx, and why
  hasten run -- nginx                 start nginx with its TLS handshakes accelerated
";

#[derive(Debug, Parser)]
#[command(name = "hasten", version, about, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(cmd::check::CheckArgs),
    Run(cmd::run::RunArgs),
    Top(cmd::top::TopArgs),
    Completions(cmd::completions::CompletionsArgs),
    #[command(hide = true)]
    Man(cmd::man::ManArgs),
}
