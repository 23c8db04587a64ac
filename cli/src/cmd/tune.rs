//! `hasten tune`: which settings make a service cheaper under its own load, with proof.

mod knobs;
mod output;
mod progress;
mod resume;
mod setup;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, Parser};
use hasten_bench::interrupt;
use hasten_tune::session::{self, Findings, Halt, Record};
use hasten_tune::trial::TrialError;
use serde_json::Value;

use self::progress::Progress;
use self::setup::Setup;
use crate::failure::Failure;
use crate::render::say;

/// As a shell reports a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// The session ended without proving anything or ruling it out: it was too short, or the machine too noisy.
const UNDECIDED: u8 = 3;

const EXAMPLES: &str = "\
Examples:
  hasten tune --load 'wrk -t1 -c64 -d5s http://127.0.0.1:3000/' -- node app.js
  hasten tune --url http://127.0.0.1:8080/ -- nginx -c /etc/nginx/nginx.conf -g 'daemon off;'
  hasten tune --load 'redis-benchmark -q -n 200000 -t get' --budget 30m -- redis-server
  hasten tune --url http://127.0.0.1:3000/ --knob 'pool=env:POOL_SIZE=4,16' -- node app.js
  hasten tune --unit nginx --url http://127.0.0.1/     the command, user and environment of a stopped unit
  hasten tune --url … --objective 'cpu_us * rss_mb' --max-p99 20ms -- node app.js
  hasten tune --list-knobs -- node app.js        what would be tried, and what not, and why
  hasten tune --resume hasten-tune               go on where Ctrl-C ended it
  hasten run --config hasten-tune/hasten.toml -- node app.js

Exit codes:
  0    something was proven to help, or what was tried does not help
  1    it could not go on; why, and what to do, is on standard error
  2    the command line is wrong
  3    it could not tell: the time was too short, or the machine too noisy
  127  the service's program or the load tool is not there
  130  interrupted; --resume goes on if anything was measured
";

/// Find the settings that make a service cheaper under its own load, and prove it
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = "hasten tune [OPTIONS] (--load CMD | --url URL) (--unit UNIT | -- COMMAND [ARGUMENT]...)", long_about = "\
Starts COMMAND again and again, as it is and with candidates, drives it with the load, and measures. Ends with a profile, \
hasten.toml, that holds what was proven to help and nothing else, with a report, and with the command to use it. COMMAND has \
to stay in the foreground or leave its processes running, and to end on SIGTERM. Any crash, failed request, changed \
answer, new line of error in the log or broken limit disqualifies a candidate. Nothing is changed outside of COMMAND \
without --allow-system.")]
pub(crate) struct TuneArgs {
    /// What drives the service: wrk, ab, h2load, autocannon, oha, k6, redis-benchmark, memtier_benchmark, db_bench, or
    /// any other with --metric-regex or a line of JSON
    #[arg(long, value_name = "CMD", help_heading = "Load")]
    load: Option<String>,

    /// Drive this page with the built-in driver; beside --load, the page whose answers are compared
    #[arg(long, value_name = "URL", help_heading = "Load")]
    url: Option<String>,

    /// Connections of the built-in driver
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = "Load")]
    connections: usize,

    /// How long the built-in driver drives the service each time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration, help_heading = "Load")]
    duration: Duration,

    /// Requests before each measurement that do not count, for so long [default: until the service as it is costs no
    /// less for each request than later, at least 1s]
    #[arg(long, value_name = "TIME", value_parser = units::pause, help_heading = "Load")]
    warm_up: Option<Duration>,

    /// Where the number is in the load's output: a regular expression with a group
    #[arg(long, value_name = "REGEX", help_heading = "Load")]
    metric_regex: Option<String>,

    /// When the service is ready: a URL that answers, or a command that succeeds [default: a port is open]
    #[arg(long, value_name = "CMD|URL", help_heading = "Load")]
    ready: Option<String>,

    /// How long a start may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration, help_heading = "Load")]
    ready_timeout: Duration,

    /// What is to become less: cpu (for each request), throughput, p99, memory, or an expression of cpu_us, throughput,
    /// mean_ms, p50_ms, p90_ms, p99_ms, rss_mb and metric with + - * / ( ), whose lower value is better
    #[arg(long, value_name = "WHAT", default_value = "cpu", help_heading = "Goal")]
    objective: String,

    /// No candidate may use more memory
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Goal")]
    max_rss: Option<u64>,

    /// No candidate may be slower
    #[arg(long, value_name = "TIME", value_parser = units::milliseconds, help_heading = "Goal")]
    max_p99: Option<f64>,

    /// How much larger a setting may make the answers, in bytes on the wire for each request; `any` for no limit
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = units::growth, help_heading = "Goal")]
    max_bytes: f64,

    /// The smallest effect that is worth having
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = units::share, help_heading = "Goal")]
    effect: f64,

    /// How long the whole session may take [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Goal")]
    budget: Option<Duration>,

    /// Try these knobs only
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Knobs")]
    only: Option<Vec<String>>,

    /// Leave these knobs alone
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Knobs")]
    without: Vec<String>,

    /// A knob of your own, an environment variable: NAME=env:VARIABLE=VALUE,VALUE
    #[arg(long, value_name = "KNOB", help_heading = "Knobs")]
    knob: Vec<String>,

    /// Show all knobs, with what they try here or why nothing
    #[arg(long, help_heading = "Knobs")]
    list_knobs: bool,

    /// Also change settings of the whole machine; each is put back, even after kill -9
    #[arg(long, help_heading = "Knobs")]
    allow_system: bool,

    /// Tune the service of a systemd unit, by name or file, in place of COMMAND
    #[arg(long, value_name = "UNIT", conflicts_with = "command", help_heading = "Session")]
    unit: Option<String>,

    /// Directory of session, profile and reports
    #[arg(long, value_name = "DIR", default_value = "hasten-tune", help_heading = "Session")]
    out: PathBuf,

    /// Go on with a session that was stopped
    #[arg(long, value_name = "DIR", conflicts_with = "out", help_heading = "Session")]
    resume: Option<PathBuf>,

    /// With --resume: go on although the program, its files, the directory or hasten have changed
    #[arg(long, requires = "resume", help_heading = "Session")]
    despite_changes: bool,

    /// What the order of measurements is drawn from [default: the time; the report has it]
    #[arg(long, value_name = "N", help_heading = "Session")]
    seed: Option<u64>,

    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = "Session")]
    json: bool,

    /// End what the process at the other end of standard input has started, should it be killed
    #[arg(long, hide = true)]
    keep_watch: bool,

    /// The service, as its owner starts it
    // Without `allow_hyphen_values`: a misspelt option in front of it is no command.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// To read the arguments of a session that goes on.
#[derive(Debug, Parser)]
struct Stored {
    #[command(flatten)]
    args: TuneArgs,
}

pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode, Failure> {
    match &args.resume {
        _ if args.keep_watch => Ok(keep_watch()),
        Some(folder) => go_on(args, folder),
        None if args.list_knobs => knobs::list(&setup::knobs(args)?.choices, args.json),
        None => begin(args),
    }
}

/// For the process that has started this one.
fn keep_watch() -> ExitCode {
    for done in hasten_tune::keeper::keep(std::io::stdin().lock()) {
        say(format!("hasten: {done}"));
    }
    ExitCode::SUCCESS
}

fn begin(args: &TuneArgs) -> Result<ExitCode, Failure> {
    let seed = args.seed.unwrap_or_else(setup::seed_of_the_time);
    let setup = Setup::new(args, seed)?;
    // Made late: a run that is refused leaves an existing session untouched.
    let record = || {
        make_room(&args.out)?;
        let path = args.out.join("session.json");
        Record::create(&path, resume::identity(&setup)).map_err(|error| setup::record_failure(&error))
    };
    measure(args, &setup, &Value::Null, record, &args.out, 0)
}

/// Uses the arguments that the session was begun with; those given now must not contradict them.
fn go_on(given: &TuneArgs, folder: &Path) -> Result<ExitCode, Failure> {
    let record = Record::open(&folder.join("session.json")).map_err(|error| setup::record_failure(&error))?;
    let (words, seed) = resume::stored(record.setup());
    let stored = Stored::try_parse_from([vec!["hasten tune".to_owned()], words].concat());
    let mut args = stored
        .map_err(|_| {
            Failure::new(
                "the session was begun by another version of hasten",
                "begin a new one, without --resume",
            )
        })?
        .args;
    args.json = given.json;
    // Only the budget may differ: more time only adds.
    if let Some(budget) = given.budget {
        args.budget = Some(budget.max(args.budget.unwrap_or(setup::BUDGET)));
    }
    let setup = Setup::new(&args, seed)?;
    resume::must_be_the_same(&setup, &record, &args, given)?;
    say(format!("{} measurements are there already", record.len()));
    let (knowledge, earlier) = (record.knowledge().clone(), record.len());
    measure(&args, &setup, &knowledge, || Ok(record), folder, earlier)
}

/// `record` is called once the service has proved measurable; by then it contains `earlier` measurements.
fn measure(
    args: &TuneArgs,
    setup: &Setup,
    knowledge: &Value,
    record: impl FnOnce() -> Result<Record, Failure>,
    folder: &Path,
    earlier: usize,
) -> Result<ExitCode, Failure> {
    let interrupted = interrupt::flag().map_err(|error| {
        Failure::new(format!("cannot watch for Ctrl-C: {error}"), "see that signals are not blocked")
    })?;
    setup.keep();
    // Before anything is started, and until everything is stopped.
    let _held = setup.take_over(args.allow_system)?;
    let logs = Logs::beside(folder)?;
    let mut subject = setup.subject(&logs.0, &interrupted)?;
    subject.remember(knowledge);
    output::announce(setup, args);
    let (start, mut begun) = (Instant::now(), output::facts());
    let clock = move || start.elapsed();
    if let Err(error) = subject.prepare() {
        return not_begun(&error, earlier);
    }
    let mut record = record()?;
    if let Some(warm_up) = subject.warm_up() {
        say(format!("warm-up: {}", warm_up.describe()));
        begun.push(("warm-up", warm_up.describe()));
    }
    let mut progress = Progress::start(&setup.space, &setup.settings);
    let (findings, halt) =
        session::run(&setup.space, &setup.settings, &mut subject, &mut record, &clock, &mut progress);
    progress.finish();
    drop(subject);
    if let (true, Some(Halt::Stopped(error))) = (findings.trials.is_empty(), &halt) {
        forget(folder);
        return not_begun(error, earlier);
    }
    let remarks = std::mem::take(&mut progress.remarks);
    let ending = halt.as_ref().map(|halt| output::Ending::of(halt, setup, &findings)).unwrap_or_default();
    let again = ending.resume(folder);
    let around = output::Around { facts: begun, remarks, ending };
    let written = output::write(args, setup, &findings, around, folder)?;
    conclude(args, &findings, halt, &written, &interrupted, &again)
}

/// Promises nothing that does not exist.
fn not_begun(error: &TrialError, earlier: usize) -> Result<ExitCode, Failure> {
    let TrialError::Interrupted = error else {
        return Err(Failure::new(error.to_string(), error.fix()));
    };
    say(match earlier {
        0 => "interrupted before the first measurement: nothing was measured yet, so there is nothing to go on \
              with; begin again without --resume"
            .to_owned(),
        earlier => format!("interrupted before another measurement: the {earlier} from before are kept"),
    });
    Ok(ExitCode::from(INTERRUPTED))
}

/// A session without a measurement is worthless, and would only be in the way of the next one.
fn forget(folder: &Path) {
    let _ = fs::remove_file(folder.join("session.json"));
    // Only if the folder is otherwise empty.
    let _ = fs::remove_dir(folder);
}

fn conclude(
    args: &TuneArgs,
    findings: &Findings,
    halt: Option<Halt<TrialError>>,
    written: &output::Written,
    interrupted: &AtomicBool,
    again: &str,
) -> Result<ExitCode, Failure> {
    output::print(args, written)?;
    match halt {
        Some(Halt::OutOfTime) if findings.noise.is_none() => Err(Failure::new(
            "the time was over before anything could be said",
            format!("give the session more time: {again}; or begin one with a shorter load"),
        )),
        None | Some(Halt::OutOfTime) if !written.says_something() => Ok(ExitCode::from(UNDECIDED)),
        None | Some(Halt::OutOfTime) => Ok(ExitCode::SUCCESS),
        Some(Halt::Stopped(TrialError::Interrupted)) => Ok(ExitCode::from(INTERRUPTED)),
        Some(_) if interrupted.load(Ordering::Relaxed) => Ok(ExitCode::from(INTERRUPTED)),
        Some(halt) => Err(setup::failure_of(halt, findings, again)),
    }
}

/// An existing session is kept, under another name.
fn make_room(folder: &Path) -> Result<(), Failure> {
    let failure = |error: std::io::Error| {
        Failure::new(
            format!("cannot write to {}: {error}", folder.display()),
            "choose another directory with --out",
        )
    };
    if folder.join("session.json").exists() {
        let other = (1..).map(|number| PathBuf::from(format!("{}.{number}", folder.display())));
        let free = other.into_iter().find(|path| !path.exists()).expect("numbers do not end");
        fs::rename(folder, &free).map_err(failure)?;
        say(format!("the session that was in {} is in {} now", folder.display(), free.display()));
    }
    fs::create_dir_all(folder).map_err(failure)
}

/// The service's logs, which may contain more than a report should: they stay with the session.
struct Logs(PathBuf);

impl Logs {
    /// Not in the folder itself: until the service has started, its contents belong to an earlier session.
    fn beside(folder: &Path) -> Result<Self, Failure> {
        let mut name = folder.as_os_str().to_owned();
        name.push(".logs");
        let logs = PathBuf::from(name);
        fs::create_dir_all(&logs).map_err(|error| {
            Failure::new(
                format!("cannot write to {}: {error}", logs.display()),
                "choose another directory with --out",
            )
        })?;
        Ok(Self(logs))
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
