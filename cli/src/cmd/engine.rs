//! `hasten engine`: shows the engines of programs, and takes one out of service while they run.

pub(in crate::cmd) mod json;
mod list;
pub(in crate::cmd) mod programs;
mod switch;

use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Subcommand};
use hasten_plan::suggestion;
use hasten_telemetry::{Engine, ProcessError};

use crate::denied;
use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  hasten engine list                  engines of everything accelerated on this host
  hasten engine disable isal          take ISA-L out of service in every program, at once
  hasten engine disable all 1234      leave all work of one program to the original libraries
  hasten engine enable all            put everything back

What a disabled engine would have done goes to the next one, in the end to the original library. New workers
inherit the setting; a program that is started anew begins with every engine in service.
";

const LIST_EXAMPLES: &str = "\
Examples:
  hasten engine list
  hasten engine list 1234
  hasten engine list --json | jq '.programs[].engines[] | {name, state}'

The exit code is 1 when no accelerated process is found.
";

const DISABLE_EXAMPLES: &str = "\
Examples:
  hasten engine disable isal
  hasten engine disable multibuffer 1234
  hasten engine disable all

Processes see it with their next operation: the command waits for those that are at work. The exit code is 1 when
no program has the engine, or one could not be reached.
";

const ENABLE_EXAMPLES: &str = "\
Examples:
  hasten engine enable isal
  hasten engine enable all 1234

A breaker that is open stays so: it tries the engine again by itself.
";

/// List engines, or take one out of service in running programs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EngineArgs {
    #[command(subcommand)]
    command: EngineCommand,
}

#[derive(Debug, Subcommand)]
enum EngineCommand {
    /// Show the engines of accelerated programs, their state and what they did
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Take an engine out of service in running programs
    #[command(after_help = DISABLE_EXAMPLES)]
    Disable(SwitchArgs),
    /// Put an engine back into service in running programs
    #[command(after_help = ENABLE_EXAMPLES)]
    Enable(SwitchArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only the program that this process belongs to
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SwitchArgs {
    /// The engine, or `all`
    #[arg(value_name = "NAME", value_parser = EngineName)]
    name: Wanted,

    /// Only in the program that this process belongs to, all its workers included
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// How long to wait for processes that are at work to see it
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_wait)]
    wait: Duration,
}

pub(crate) fn run(args: &EngineArgs) -> Result<ExitCode, Failure> {
    Ok(match &args.command {
        EngineCommand::List(args) => list::run(args),
        EngineCommand::Disable(args) => switch::run(args, true),
        EngineCommand::Enable(args) => switch::run(args, false),
    }?)
}

/// Which engines are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    One(Engine),
}

impl Wanted {
    const ALL: &'static str = "all";

    fn parse(text: &str) -> Option<Self> {
        let one = || Engine::from_name(text).map(Self::One);
        if text == Self::ALL { Some(Self::All) } else { one() }
    }

    fn includes(self, engine: Engine) -> bool {
        matches!(self, Self::All) || self == Self::One(engine)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::All => Self::ALL,
            Self::One(engine) => engine.as_str(),
        }
    }
}

/// A wrong name gets the nearest as a suggestion.
#[derive(Clone, Debug)]
struct EngineName;

impl EngineName {
    fn names() -> impl Iterator<Item = &'static str> {
        Engine::ALL.into_iter().map(Engine::as_str).chain([Wanted::ALL])
    }
}

impl TypedValueParser for EngineName {
    type Value = Wanted;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Wanted, clap::Error> {
        let value = value.to_string_lossy();
        Wanted::parse(&value).ok_or_else(|| {
            let fix = suggestion(&value, &Self::names().collect::<Vec<_>>());
            let message = format!("no engine is named `{value}`; {fix}\n");
            clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names().map(PossibleValue::new)))
    }
}

#[derive(Debug, thiserror::Error)]
enum EngineError {
    #[error("no accelerated process was found{}", denied::note(*.denied))]
    NoneFound { denied: usize },
    #[error("{}", denied::NO_PROC)]
    NoProc,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{program}, process {pid}, does not have the engine `{engine}`")]
    NotThere { program: String, pid: u32, engine: &'static str, has: Vec<&'static str> },
    #[error("no accelerated program has the engine `{engine}`{}", denied::note(*.denied))]
    Nowhere { engine: &'static str, denied: usize, has: Vec<&'static str> },
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl EngineError {
    fn fix(&self) -> String {
        match self {
            Self::NoneFound { denied: 0 } => "start a server with `hasten run -- nginx`".to_owned(),
            Self::NoneFound { .. } | Self::Nowhere { denied: 1.., .. } => {
                "run it with sudo, or start a server with `hasten run -- nginx`".to_owned()
            }
            Self::NoProc => denied::MOUNT_PROC.to_owned(),
            Self::Process(ProcessError::Denied { .. }) => denied::CURE.to_owned(),
            Self::Process(error) => error.fix(),
            Self::NotThere { has, .. } | Self::Nowhere { has, .. } if has.is_empty() => {
                "`hasten check` says what this host lacks".to_owned()
            }
            Self::NotThere { has, .. } => format!("it has {}", has.join(", ")),
            Self::Nowhere { has, .. } => format!("there is {}", has.join(", ")),
            Self::Output(_) => "check the file or the device behind it".to_owned(),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "must be a number of seconds, such as 2 or 0.5".to_owned())?;
    match (0.0..=60.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("must be between 0 and 60 seconds".to_owned()),
    }
}

fn print(text: &str) -> Result<(), EngineError> {
    output::print(text).map_err(EngineError::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_engine_or_all_of_them() {
        assert_eq!(Wanted::parse("zlib-rs"), Some(Wanted::One(Engine::ZlibRs)));
        assert_eq!(Wanted::parse("all"), Some(Wanted::All));
        assert_eq!(Wanted::parse("ISAL"), None);
        assert!(Wanted::All.includes(Engine::Qpl) && !Wanted::One(Engine::Isal).includes(Engine::Qpl));
    }

    #[test]
    fn errors_name_a_cure() {
        let nowhere =
            |denied, has: &[&'static str]| EngineError::Nowhere { engine: "qat", denied, has: has.to_vec() };
        assert!(nowhere(0, &["isal", "zlib-rs"]).fix().contains("isal, zlib-rs"));
        assert!(nowhere(0, &[]).fix().contains("hasten check"));
        assert!(nowhere(3, &["isal"]).fix().contains("sudo"));
        assert!(nowhere(3, &[]).to_string().ends_with("(3 processes may not be inspected by this user)"));
        let denied = EngineError::Process(ProcessError::Denied { pid: 7 });
        assert!(denied.fix().contains("sudo") && !denied.fix().contains("top"), "{}", denied.fix());
        assert!(parse_wait("0").is_ok() && parse_wait("-1").is_err() && parse_wait("x").is_err());
    }
}
