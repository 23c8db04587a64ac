//! The one definition from which help, completions and the man page are made.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Parser, Subcommand};
use hasten_plan::{accelerator, suggestion};

use crate::cmd;

const EXAMPLES: &str = "\
Examples:
  hasten check -- nginx               what would be done to nginx, and why
  hasten run -- nginx                 start nginx with TLS and gzip accelerated
  hasten top                          watch what it gains
  hasten engine disable all           leave all work to the original libraries, at once
  hasten bench tls --quick            measure the gain on this machine, in about a minute
  hasten bench gzip --quick           the same for compression
  hasten tune --url http://127.0.0.1:3000/ -- node app.js
                                      find and prove settings that make it cheaper
  hasten gc gc.log                    what garbage collection costs, and what to do about it
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
    Export(cmd::export::ExportArgs),
    Engine(cmd::engine::EngineArgs),
    Selftest(cmd::selftest::SelftestArgs),
    Bench(cmd::bench::BenchArgs),
    Gc(cmd::gc::GcArgs),
    Tune(Box<cmd::tune::TuneArgs>),
    Completions(cmd::completions::CompletionsArgs),
    #[command(hide = true)]
    Man(cmd::man::ManArgs),
}

/// The name of an accelerator, or nothing; a wrong one is answered with the nearest.
#[derive(Debug, Clone)]
pub(crate) struct AcceleratorName;

impl TypedValueParser for AcceleratorName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let value = value.to_string_lossy();
        if value.is_empty() || accelerator::names().any(|name| name == value) {
            return Ok(value.into_owned());
        }
        let fix = suggestion(&value, &accelerator::names().collect::<Vec<_>>());
        let message = format!("no accelerator is named `{value}`; {fix}\n");
        Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(accelerator::names().map(PossibleValue::new)))
    }
}
