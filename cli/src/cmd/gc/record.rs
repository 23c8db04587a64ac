//! `hasten gc record`: records the collections of a running process, over the control channel of hasten's Node.js
//! plugin.

mod client;
mod error;
mod list;
mod process;
mod progress;
mod runtime;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hasten_bench::interrupt;

use self::client::{Client, Outcome};
use self::error::RecordError;
use self::progress::Progress;
use self::target::Target;
use crate::denied;
use crate::failure::Failure;
use crate::output::print;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  hasten gc record 1234 --for 180s          three minutes of process 1234
  hasten gc record 1234 --out gc.jsonl      where the file shall be
  hasten gc record 1234 --cpu --for 30s     with a CPU profile of the same time
  hasten gc record --list                   processes that can be recorded

The program goes on as it is: nothing is restarted. Of its CPU time, at most half a per cent is taken in a recording of a minute or
more; one of a few seconds may take more than that. Ctrl-C ends a recording early and keeps what there is. The process must have been started by `hasten run -- node app.js`, or with
`node -r hasten/register app.js`.

A CPU profile costs more than that: V8 stops the program at its start for as long as it takes to walk the heap, and interrupts it for each
sample. It ends with this command, however that ends.
";

/// Record the garbage collections of a running Node.js process
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// The process
    #[arg(
        value_name = "PID",
        required_unless_present = "list",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pid: Option<u32>,

    /// How long: 180s, 3m or 1h
    #[arg(long = "for", value_name = "TIME", default_value = "180s", value_parser = parse_duration)]
    duration: Duration,

    /// Where the recording shall be; without it, it stays in the runtime folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Take a CPU profile of the main thread and of worker threads as well: which functions run, for how long
    #[arg(long)]
    cpu: bool,

    /// The time from one sample of the CPU profile to the next: 100us to 100ms
    #[arg(long, value_name = "TIME", requires = "cpu", default_value = "1ms", value_parser = parse_interval)]
    cpu_interval: Duration,

    /// List the processes that can be recorded
    #[arg(long, conflicts_with_all = ["pid", "duration", "out", "cpu", "cpu_interval"])]
    list: bool,
}

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    if !denied::has_proc() {
        return Err(RecordError::NoProc.into());
    }
    Ok(match args.pid {
        Some(pid) => record(args, pid)?,
        None => list::print()?,
    })
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

fn record(args: &RecordArgs, pid: u32) -> Result<ExitCode, RecordError> {
    let interrupted = interrupt::flag().map_err(RecordError::Signals)?;
    // Before the recording, not after hours of it.
    let target = args.out.as_deref().map(Target::open).transpose()?;
    let mut client = Client::connect(pid)?;
    let process = client.info()?;
    let recording = client.record(args.duration, args.cpu.then_some(args.cpu_interval))?;
    let mut progress = Progress::start(&process, args.duration);
    let outcome = client.follow(&recording, args.duration, &interrupted, |state| progress.update(state))?;
    progress.finish();
    let file = match target {
        Some(target) => target.fill(&recording)?,
        None => recording,
    };
    report(&outcome, args.cpu, &file)?;
    Ok(ExitCode::SUCCESS)
}

fn report(outcome: &Outcome, has_profile: bool, file: &std::path::Path) -> Result<(), RecordError> {
    if let Some(remark) = outcome.remark() {
        say(remark);
    }
    let events = outcome.events;
    let samples = outcome
        .samples
        .filter(|_| has_profile)
        .map(|samples| format!(" and {samples} samples"))
        .unwrap_or_default();
    say(format!(
        "{events} {}{samples} recorded; read them with",
        if events == 1 { "event" } else { "events" }
    ));
    print(&format!("hasten gc {}\n", shell_word(&file.display().to_string()))).map_err(RecordError::Stdout)
}

/// A number with its unit; in seconds without one.
fn parse_duration(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("use a number with s, m or h, such as 180s, 3m or 1h".to_owned()),
    };
    let number: f64 =
        digits.parse().map_err(|_| "use a number with s, m or h, such as 180s, 3m or 1h".to_owned())?;
    match number * scale {
        seconds @ 1.0..=DAY => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("must be between 1s and 24h".to_owned()),
    }
}

/// A number with its unit.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "use a number with us or ms, such as 500us or 1ms";
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let scale = match &text[digits.len()..] {
        "us" | "µs" | "μs" => 1.0,
        "ms" => 1e3,
        _ => return Err(WRONG.to_owned()),
    };
    let number: f64 = digits.parse().map_err(|_| WRONG.to_owned())?;
    match (number * scale).round() {
        microseconds @ 100.0..=100_000.0 => Ok(Duration::from_micros(microseconds as u64)),
        _ => Err("must be between 100us and 100ms".to_owned()),
    }
}

/// Quoted for pasting into a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_that_people_use() {
        for (text, seconds) in
            [("180s", 180), ("180", 180), ("3m", 180), ("3min", 180), ("1h", 3600), ("1.5m", 90)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "s", "x", "0s", "-1s", "25h", "3 m", "1d", "NaN", "inf", "1h30m", "é"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_interval_has_a_unit_and_limits() {
        for (text, microseconds) in
            [("100us", 100), ("1ms", 1000), ("0.5ms", 500), ("250µs", 250), ("100ms", 100_000)]
        {
            assert_eq!(parse_interval(text), Ok(Duration::from_micros(microseconds)), "{text}");
        }
        for bad in ["", "1", "us", "99us", "101ms", "1s", "-1ms", "NaNms", "infms", "1 ms", "é"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("/run/user/0/hasten/gc/1-2.jsonl"), "/run/user/0/hasten/gc/1-2.jsonl");
        assert_eq!(shell_word("it's here"), r"'it'\''s here'");
    }
}
