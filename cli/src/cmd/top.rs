//! `hasten top`: what accelerated processes are doing now.

pub(in crate::cmd) mod format;
mod json;
mod once;
mod sampler;
mod screen;
pub(in crate::cmd) mod state;
mod view;

#[cfg(test)]
mod fixture;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use hasten_telemetry::ProcessError;

use self::sampler::{Missing, Sampler};
use self::state::State;
use crate::denied;
use crate::failure::Failure;
use crate::output::{has_colours, is_dumb, print};

const EXAMPLES: &str = "\
Examples:
  hasten top                          live view of everything accelerated on this host
  hasten top 1234                     only the program that process 1234 belongs to
  hasten top --once                   measure for a second, print tables, exit
  hasten top --once --interval 10     the same over ten seconds
  hasten top --json | jq '.programs[].cpu_saved.cores'

Keys:
  up/down or k/j  choose a program      p  pause      ?  help      q  quit

The exit code is 1 when no accelerated process is found.
";

/// Watch accelerated processes: handshakes, compression, CPU saved, warnings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Show only the program that this process belongs to
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// Measure for one interval, print tables and exit
    #[arg(long)]
    once: bool,

    /// Measure for one interval, print JSON and exit
    #[arg(long)]
    json: bool,

    /// Time between two samples
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    interval: Duration,
}

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    Ok(top(args)?)
}

const START: &str = "start a server with `hasten run -- nginx`";

/// For a user who has just started an accelerated application and sees none.
const NODE: &str = "Node.js programs have no counters: `hasten gc record --list` shows them";

#[derive(Debug, thiserror::Error)]
enum TopError {
    #[error("no accelerated process was found{}{}", standby(*.standing_by), denied::note(*.denied))]
    NoneFound { denied: usize, standing_by: usize },
    #[error("{}", denied::NO_PROC)]
    NoProc,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("the live view needs a terminal, and standard output is none")]
    NoTerminal,
    #[error("the live view redraws the terminal, and TERM=dumb says that this one cannot")]
    DumbTerminal,
    #[error("the terminal cannot be used: {0}")]
    Terminal(io::Error),
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl TopError {
    fn fix(&self) -> String {
        match self {
            Self::NoneFound { denied: 0, standing_by: 0 } => format!("{START}; {NODE}"),
            Self::NoneFound { denied: 0, .. } => {
                format!("look again when there was work for it, or {START}; {NODE}")
            }
            Self::NoneFound { .. } => format!("run `sudo hasten top` ({}), or {START}; {NODE}", denied::ROOT),
            Self::NoProc => denied::MOUNT_PROC.to_owned(),
            Self::Process(error) => error.fix(),
            Self::NoTerminal | Self::DumbTerminal => {
                "use `hasten top --once` or `hasten top --json`".to_owned()
            }
            Self::Terminal(_) => "set TERM to your terminal's type, or use `hasten top --once`".to_owned(),
            Self::Output(_) => "check the file or the device behind it".to_owned(),
        }
    }
}

impl From<TopError> for Failure {
    fn from(error: TopError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

fn top(args: &TopArgs) -> Result<ExitCode, TopError> {
    if !denied::has_proc() {
        return Err(TopError::NoProc);
    }
    let mut sampler = Sampler::new(args.pid)?;
    if args.once || args.json {
        return print_once(args, &mut sampler);
    }
    if !io::stdout().is_terminal() {
        return Err(TopError::NoTerminal);
    }
    if is_dumb() {
        return Err(TopError::DumbTerminal);
    }
    if sampler.is_empty() {
        return Err(none_found(sampler.missing()));
    }
    screen::run(&mut sampler, args.interval, has_colours()).map_err(TopError::Terminal)?;
    Ok(ExitCode::SUCCESS)
}

fn print_once(args: &TopArgs, sampler: &mut Sampler) -> Result<ExitCode, TopError> {
    let mut state = State::default();
    if !sampler.is_empty() {
        state.update(Instant::now(), sampler.sample());
        sleep(args.interval);
        state.update(Instant::now(), sampler.sample());
    }
    let text = match args.json {
        true => json::render(&state, sampler.missing()),
        false => once::render(&state, has_colours()),
    };
    // JSON is a document even when it is empty; tables would be nothing.
    if args.json || !state.programs().is_empty() {
        print(&text).map_err(TopError::Output)?;
    }
    match state.programs().is_empty() {
        true => Err(none_found(sampler.missing())),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Processes at work without a page deserve more words than idle ones.
fn none_found(missing: &Missing) -> TopError {
    match missing.failed.first() {
        Some(failed) => failed.error().into(),
        None => TopError::NoneFound { denied: missing.denied, standing_by: missing.standing_by },
    }
}

fn standby(standing_by: usize) -> String {
    match standing_by {
        0 => String::new(),
        1 => "; 1 process stands by, with nothing to accelerate so far".to_owned(),
        _ => format!("; {standing_by} processes stand by, with nothing to accelerate so far"),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "must be a number of seconds, such as 1 or 0.5".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be between 0.1 and 3600 seconds".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_sensible_number_of_seconds() {
        assert_eq!(parse_interval("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "x", "0", "-1", "0.01", "1e9", "NaN", "inf"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn finding_nothing_says_who_was_not_asked_and_what_to_do() {
        let nobody = TopError::NoneFound { denied: 0, standing_by: 0 };
        assert_eq!(nobody.to_string(), "no accelerated process was found");
        assert!(nobody.fix().contains("hasten run -- nginx") && !nobody.fix().contains("sudo"));
        let denied = TopError::NoneFound { denied: 12, standing_by: 0 };
        assert!(denied.to_string().ends_with("(12 processes may not be inspected by this user)"), "{denied}");
        assert!(denied.fix().contains("sudo hasten top"));
    }

    #[test]
    fn finding_nobody_at_work_says_who_stands_by_and_who_could_make_no_page() {
        let mut missing = Missing { standing_by: 2, ..Missing::default() };
        let nobody = none_found(&missing);
        assert!(nobody.to_string().contains("; 2 processes stand by"), "{nobody}");
        assert!(nobody.fix().contains("look again"), "{}", nobody.fix());
        missing.failed.push(hasten_telemetry::Unseen { pid: 7, program: "nginx".to_owned() });
        let failed = none_found(&missing);
        assert_eq!(
            failed.to_string(),
            "process 7 (nginx) is accelerated but could not make its counter page"
        );
        assert!(failed.fix().contains("memfd_create"), "{}", failed.fix());
    }
}
